/* SPDX-License-Identifier: Apache-2.0 */
/* clocks: with --clocks each machine has its own wall clock, up to five minutes ahead of the world's or
 * behind it. A program reads the clock of its machine: what it starts (requests, timers, turns) calls back
 * with the clock that was set when it was started. Time that is waited for (CLOCK_MONOTONIC) is the same
 * everywhere. */
#pragma once

#include <stdint.h>

/* Draws the clocks, and returns by how many seconds two of them can differ. Before the world begins; without
 * it all machines have the world's clock. */
int64_t clocks_use(void);
/* In seconds, negative for a clock that is behind. The machines: a replica of the controller has its own
 * number, node n has REPLICAS + n. */
int64_t clocks_ahead_s(unsigned machine);
