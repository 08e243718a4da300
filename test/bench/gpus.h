/* SPDX-License-Identifier: Apache-2.0 */
/* gpus: what the files of this measurement share. A failure ends the part in which it is. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "world.h"

/* A node with all that the driver of driver_tree.h leaves on a host, and the nodes of BENCH_GPUS. */
enum { BENCH_GPUS = 9 };
struct world *bench_world(void);
/* mig: lines of libnvidia-ml.conf. */
void bench_conf(struct world *w, unsigned gpus, const char *mig);
/* As a node that nobody has used; returns when the slice is at the server. more: as in world_start(). */
void bench_start(struct world *w, const char *more);
/* Fails where the plugin refuses. */
void bench_asked(struct world *w, const char *what, const char *claim, const char *uid);

/* The parts: a test each, whose state is a world. */
void bench_claims(void **state);
void bench_time_slices(void **state);
void bench_slice(void **state);
void bench_hooks(void **state);
