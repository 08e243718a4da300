/* SPDX-License-Identifier: Apache-2.0 */
/* toolkit_watch: watches the settings for IMEX channels in the configuration of this node's container toolkit
 * (nvidia/toolkit). It uses inotify, or reads the configuration every 30 s where inotify is not available. */
#pragma once

#include <uv.h>

#include "nvidia/toolkit.h"

enum { TOOLKIT_ROOTS_MAX = 2 };

struct toolkit_watch;

struct toolkit_watch_options {
        const struct driver_root *roots; /* at most TOOLKIT_ROOTS_MAX; their strings are borrowed */
        size_t n_roots;
        void (*changed)(void *u); /* the answer or its reason has changed; never called from inside a function
                                     of this module */
        void *u;
};

struct toolkit_watch *toolkit_watch_new(uv_loop_t *loop, const struct toolkit_watch_options *o);
void toolkit_watch_free(struct toolkit_watch *w); /* NULL is allowed */
enum toolkit_answer toolkit_watch_get(const struct toolkit_watch *w, const char **ret_why);
