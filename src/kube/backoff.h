/* SPDX-License-Identifier: Apache-2.0 */
/* backoff: how long to wait after the n-th failure in a row. */
#pragma once

/* min_ms after the first failure, doubled after each further one up to max_ms, then spread by +-25 %, so that
 * many clients that failed together do not retry together. */
unsigned backoff_ms(unsigned min_ms, unsigned max_ms, unsigned failures);

/* ms +-25 %. */
unsigned backoff_spread(unsigned ms);
