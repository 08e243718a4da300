/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated server takes from the simulation around it: here its time is ours, and nothing is drawn.
 */
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
