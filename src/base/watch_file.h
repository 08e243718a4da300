/* SPDX-License-Identifier: Apache-2.0 */
/* watch_file: calls back when a file is created, replaced, changed or removed, by inotify on its folder. A
 * path that ends in '/' means all files of that folder.
 *
 * Its folder may be removed, made again, or have another one put in its place: the call comes, and the watch
 * is one of what bears the name then. Where the kernel has lost events, or tells one without saying of what,
 * the call comes as well: it says "look", never what there is to see. When the folder's own parent goes, the
 * last call finds `active` false; nothing is watched any more, and the owner may start again.
 *
 * It is embedded in its owner, who does not move it while it is active, and zero-initialised. The path is
 * copied. The callback runs in the loop's thread, never from inside watch_file_start, and at most once per
 * turn however many changes there were. After watch_file_stop it is not called any more, and the memory may
 * be freed, also inside it. A failed start leaves nothing behind. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/err.h"

struct watch_file;
struct watch_file__hub;
typedef void(watch_file_fn)(struct watch_file *w);

struct watch_file {
        void *u; /* the owner's, untouched */
        bool active;
        /* Ours, while it is active. */
        LIST_ENTRY(watch_file) link;
        struct watch_file__hub *hub;
        watch_file_fn *fn;
        char *dir, *name;        /* of the file; "" for each file of the folder */
        char *parent, *dir_name; /* NULL: a folder that nothing can replace */
        int wd, parent_wd;       /* -1: not watched; several watches may share one */
        bool due, moved;         /* the owner is to hear; the folder may be another one */
};

/* The folder of `path` and the folder that holds it must exist; the file need not. */
int watch_file_start(struct watch_file *w, uv_loop_t *loop, const char *path, watch_file_fn *fn,
                     struct err *e);
/* The same of the path, or, where folders on the way to it from `root` (a prefix of it, without a slash at
 * its end) are missing, of the first of them: whoever is called starts anew. */
int watch_file_start_below(struct watch_file *w, uv_loop_t *loop, const char *root, const char *path,
                           watch_file_fn *fn, struct err *e);
/* A watch that is not active is left alone. */
void watch_file_stop(struct watch_file *w);
