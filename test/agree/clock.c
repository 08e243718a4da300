/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the simulated server needs from the simulation: the time is real, and nothing is
 * random. */
#include "clock.h"

#include <time.h>

#include "../simulate/sim.h"

static int64_t set_s;

void clock_set(int64_t unix_s) {
        set_s = unix_s;
}

int64_t sim_now_ms(void) {
        return 0;
}

int64_t sim_wall_s(void) {
        return set_s ? set_s : (int64_t)time(NULL);
}

uint64_t sim_draw(uint64_t n) {
        static uint64_t last;
        return ++last % n;
}

void sim_log(const char *fmt, ...) {
}
