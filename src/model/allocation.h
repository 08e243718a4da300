/* SPDX-License-Identifier: Apache-2.0 */
/* allocation: describes an allocated claim with a channel device, which brings its node into a
 * ComputeDomain. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* claim_uid is NULL if there is no allocation. The ComputeDomain need not exist in the claim's namespace. */
struct allocation {
        const char *claim_uid, *ns, *domain_uid, *node;
        bool shared; /* the claim is for the shared device, so its allocation names no node. `node` is a node
                        whose plugin uses the ComputeDomain, or CD_POOL_SHARED: it may be any node */
        int64_t created; /* when the claim was created, in seconds since 1970 */
};
