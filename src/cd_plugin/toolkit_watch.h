/* SPDX-License-Identifier: Apache-2.0 */
/* toolkit_watch: what the container toolkit of this node is told about IMEX channels (nvidia/toolkit), as its
 * configuration comes, changes and goes: by inotify, and where that is not to be had every 30 s. */
#pragma once

#include <uv.h>

#include "nvidia/toolkit.h"

enum { TOOLKIT_ROOTS_MAX = 2 };

struct toolkit_watch;

struct toolkit_watch_options {
        const struct driver_root *roots; /* at most TOOLKIT_ROOTS_MAX; their strings are borrowed */
        size_t n_roots;
        void (*changed)(void *u); /* the answer, or why; never from inside a call of ours */
        void *u;
};

struct toolkit_watch *toolkit_watch_new(uv_loop_t *loop, const struct toolkit_watch_options *o);
void toolkit_watch_free(struct toolkit_watch *w); /* NULL is allowed */
enum toolkit_answer toolkit_watch_get(const struct toolkit_watch *w, const char **ret_why);
