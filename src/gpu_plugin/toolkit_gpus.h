/* SPDX-License-Identifier: Apache-2.0 */
/* toolkit_gpus: watches whether the container toolkit of this node gives GPUs to pods without a claim
 * (nvidia/toolkit.h). It reads the toolkit's and the runtimes' configuration files at the start, and when one
 * of them changes (inotify). Loop thread only. */
#pragma once

#include <uv.h>

#include "nvidia/toolkit.h"

struct toolkit_gpus_watch;

/* Starts to watch the files in at most two roots. The strings of the roots are borrowed. Calls `changed` in
 * the next turn of the loop, and whenever the answer or the reason has changed. */
struct toolkit_gpus_watch *
toolkit_gpus_new(uv_loop_t *loop, const struct driver_root *roots, size_t n_roots,
                 void (*changed)(void *u, enum toolkit_gpus answer, const char *why), void *u);
void toolkit_gpus_free(struct toolkit_gpus_watch *w); /* NULL is allowed */
