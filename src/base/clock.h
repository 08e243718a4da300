/* SPDX-License-Identifier: Apache-2.0 */
/* clock: reads the time of day, for timestamps in objects that other programs read, and a monotonic clock,
 * for durations. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds since 1970. */
static inline int64_t clock_wall_ns(void) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Seconds since 1970. */
static inline int64_t clock_wall_s(void) {
        return clock_wall_ns() / 1000000000;
}

/* Seconds since some moment before this process started. */
static inline int64_t clock_mono_s(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec;
}
