/* SPDX-License-Identifier: Apache-2.0 */
/* gpus: shared by the files of this measurement. A failure ends the part in which it occurs. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "world.h"

/* A node with all files of the driver of driver_tree.h, and the device nodes of BENCH_GPUS GPUs. */
enum { BENCH_GPUS = 9 };
struct world *bench_world(void);
/* Writes libnvidia-ml.conf; `mig`: additional lines. */
void bench_conf(struct world *w, unsigned gpus, const char *mig);
/* Starts the plugin on an unused node. Returns when the slice is at the server. `more`: as in
 * world_start(). */
void bench_start(struct world *w, const char *more);
/* Fails if the plugin refuses. */
void bench_asked(struct world *w, const char *what, const char *claim, const char *uid);

/* The parts. Each is a test whose state is a world. */
void bench_claims(void **state);
void bench_time_slices(void **state);
void bench_slice(void **state);
void bench_hooks(void **state);
