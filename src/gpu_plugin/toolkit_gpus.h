/* SPDX-License-Identifier: Apache-2.0 */
/* toolkit_gpus: does the container toolkit of this node give GPUs to pods without a claim (nvidia/toolkit.h)?
 * Asked at the start and when one of the configurations changes, by inotify. Loop thread only. */
#pragma once

#include <uv.h>

#include "nvidia/toolkit.h"

struct toolkit_gpus_watch;

/* At most two roots, whose strings are borrowed. `told` is called at the start, from a turn of the loop, and
 * when the answer or the reason has changed. */
struct toolkit_gpus_watch *toolkit_gpus_new(uv_loop_t *loop, const struct driver_root *roots, size_t n_roots,
                                            void (*told)(void *u, enum toolkit_gpus answer, const char *why),
                                            void *u);
void toolkit_gpus_free(struct toolkit_gpus_watch *w); /* NULL is allowed */
