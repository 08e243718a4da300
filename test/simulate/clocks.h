/* SPDX-License-Identifier: Apache-2.0 */
/* clocks: with --clocks, gives each machine its own wall clock, up to five minutes ahead of the world's or
 * behind it. A program reads the clock of its machine. The callbacks of its requests, timers and turns run
 * with the clock that was set when the program started them. CLOCK_MONOTONIC is the same on all machines. */
#pragma once

#include <stdint.h>

/* Draws the clocks at random, and returns the largest possible difference between two of them, in seconds.
 * Call it before the world begins; without it all machines have the world's clock. */
int64_t clocks_use(void);
/* Returns how far the machine's clock is ahead, in seconds; negative if it is behind. `machine`: the number
 * of a controller's replica, or REPLICAS + n for node n. */
int64_t clocks_ahead_s(unsigned machine);
