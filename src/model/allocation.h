/* SPDX-License-Identifier: Apache-2.0 */
/* allocation: describes an allocated claim with a channel device, which brings its node into a
 * ComputeDomain. */
#pragma once

#include <stdint.h>

/* claim_uid is NULL if there is no allocation. The ComputeDomain need not exist in the claim's namespace. */
struct allocation {
        const char *claim_uid, *ns, *domain_uid, *node;
        int64_t created; /* when the claim was created, in seconds since 1970 */
};
