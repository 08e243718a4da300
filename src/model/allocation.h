/* SPDX-License-Identifier: Apache-2.0 */
/* allocation: a claim with a channel, which brings its node into a ComputeDomain. */
#pragma once

#include <stdint.h>

/* claim_uid NULL: none. The ComputeDomain need not exist in the claim's namespace. */
struct allocation {
        const char *claim_uid, *ns, *domain_uid, *node;
        int64_t created; /* creation of the claim, seconds since 1970 */
};
