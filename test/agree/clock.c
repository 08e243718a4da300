/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the simulated server needs from the simulation: the time is real, and nothing is
 * random. */
#include <time.h>

#include "../simulate/sim.h"

int64_t sim_now_ms(void) {
        return 0;
}

int64_t sim_wall_s(void) {
        return (int64_t)time(NULL);
}

uint64_t sim_draw(uint64_t n) {
        static uint64_t last;
        return ++last % n;
}

void sim_log(const char *fmt, ...) {
}
