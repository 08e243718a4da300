/* SPDX-License-Identifier: Apache-2.0 */
/* watch_file: calls back when a file is created, replaced, changed or removed, with inotify on its folder. A
 * path that ends in '/' means all files of that folder.
 *
 * The folder may be removed, recreated or replaced: then the callback runs, and the watch continues on the
 * folder that has the name now. The callback also runs when the kernel has lost events, or reports one
 * without a name. It means that the owner should look, not what has changed. When the folder's own parent is
 * removed, the last callback finds `active` false. Then nothing is watched any more, and the owner may start
 * the watch again.
 *
 * The owner embeds it, zero-initialised, and does not move it while it is active. The path is copied. The
 * callback runs in the loop's thread, never from inside watch_file_start(), and at most once per turn for any
 * number of changes. After watch_file_stop() it is not called any more, and the memory may be freed, also
 * inside the callback. A failed start leaves nothing behind. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/err.h"

struct watch_file;
struct watch_file__hub;
typedef void(watch_file_fn)(struct watch_file *w);

struct watch_file {
        void *u; /* the owner's */
        bool active;
        /* The module's, while it is active. */
        LIST_ENTRY(watch_file) link;
        struct watch_file__hub *hub;
        watch_file_fn *fn;
        char *dir, *name;        /* of the file; name is "" for each file of the folder */
        char *parent, *dir_name; /* NULL: a folder that nothing can replace */
        int wd, parent_wd;       /* -1: not watched; several watches may share one */
        bool due, moved;         /* the callback is due; the folder may be another one */
};

/* The folder of `path` and the folder that holds it must exist; the file need not. */
int watch_file_start(struct watch_file *w, uv_loop_t *loop, const char *path, watch_file_fn *fn,
                     struct err *e);
/* The same. If folders between `root` (a prefix of the path, without a slash at its end) and the file are
 * missing, it watches for the first of them: the callback then starts the watch again. */
int watch_file_start_below(struct watch_file *w, uv_loop_t *loop, const char *root, const char *path,
                           watch_file_fn *fn, struct err *e);
/* Does nothing if the watch is not active. */
void watch_file_stop(struct watch_file *w);
