/* SPDX-License-Identifier: Apache-2.0 */
/* grant: a claim that brings a node into a domain, because it has a channel there. */
#pragma once

#include <stdint.h>

/* claim_uid NULL: none. Whether the domain exists in the claim's namespace is not known here. */
struct grant {
        const char *claim_uid, *ns, *domain_uid, *node;
        int64_t created; /* the claim; seconds since 1970 */
};
