/* SPDX-License-Identifier: Apache-2.0 */
/* watch_file: calls back when a file is created, replaced, changed or removed, with inotify on its folder. A
 * path that ends in '/' means all files of that folder.
 *
 * If the folder is removed, recreated or replaced, the callback runs, and the watch continues on the folder
 * that has the name now. The callback also runs when the kernel has lost events, or reports an event without
 * a name. The callback does not state what has changed: the owner must read the file. When the parent of the
 * folder is removed, or the kernel refuses the new watch, the last callback finds `active` false. Then
 * nothing is watched any more, and the owner may start the watch again.
 *
 * The owner embeds the struct, zero-initialised, and does not move it while it is active. The path is copied.
 * The callback runs in the loop's thread, never from inside watch_file_start(), and at most once per turn for
 * any number of changes. After watch_file_stop() the callback does not run any more, and the memory may be
 * freed, also inside the callback. A failed start leaves nothing behind. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/err.h"

struct watch_file;
struct watch_file__hub;
typedef void(watch_file_fn)(struct watch_file *w);

struct watch_file {
        void *u; /* for the owner */
        bool active;
        /* Used only by the module, while the watch is active. */
        LIST_ENTRY(watch_file) link;
        struct watch_file__hub *hub;
        watch_file_fn *fn;
        char *dir, *name;        /* folder and name of the file; name is "" for all files of the folder */
        char *parent, *dir_name; /* NULL: the folder cannot be replaced */
        int wd, parent_wd;       /* -1: not watched; several watches may share a descriptor */
        bool due, moved;         /* the callback is due; the folder may have been replaced */
};

/* Starts the watch. The folder of `path` and the parent of that folder must exist; the file need not. Fails
 * with ERR_RETRY while the user's inotify instances or watches are used up (inotify(7)): all containers of a
 * node share those of root. */
int watch_file_start(struct watch_file *w, uv_loop_t *loop, const char *path, watch_file_fn *fn,
                     struct err *e);
/* Like watch_file_start(), but folders between `root` (a prefix of the path, without a slash at its end) and
 * the file may be missing: then the module watches for the first missing folder, and the owner's callback
 * must start the watch again. */
int watch_file_start_below(struct watch_file *w, uv_loop_t *loop, const char *root, const char *path,
                           watch_file_fn *fn, struct err *e);
/* Does nothing if the watch is not active. */
void watch_file_stop(struct watch_file *w);
