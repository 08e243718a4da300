/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/backoff.h"

#include <stdint.h>
#include <sys/random.h>

unsigned backoff_spread(unsigned ms) {
        uint32_t r = UINT32_MAX / 2; /* the middle, if the kernel has no randomness yet */
        uint64_t span = ms / 2;

        (void)!getrandom(&r, sizeof r, GRND_NONBLOCK);
        return ms - (unsigned)(span / 2) + (unsigned)(span * r / UINT32_MAX);
}

unsigned backoff_ms(unsigned min_ms, unsigned max_ms, unsigned failures) {
        uint64_t ms = min_ms;

        for (unsigned i = 1; i < failures && ms < max_ms; i++)
                ms *= 2;
        return backoff_spread(ms < max_ms ? (unsigned)ms : max_ms);
}
