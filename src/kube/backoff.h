/* SPDX-License-Identifier: Apache-2.0 */
/* backoff: computes how long to wait after the n-th failure in a row. */
#pragma once

/* Returns min_ms after the first failure, doubled for each further failure up to max_ms, and then spread by
 * +-25 %, so that many clients that failed together do not retry together. */
unsigned backoff_ms(unsigned min_ms, unsigned max_ms, unsigned failures);

/* Returns a random time between ms -25 % and ms +25 %. */
unsigned backoff_spread(unsigned ms);
