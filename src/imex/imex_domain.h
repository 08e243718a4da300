/* SPDX-License-Identifier: Apache-2.0 */
/* imex_domain: defines the settings of an IMEX domain. All nodes of the domain need the same settings, so
 * they are set when the first node joins, and do not change while nodes are assigned. They travel in the
 * fabric object from the controller to the daemons. */
#pragma once

#include <stdint.h>

#include "base/json.h"

/* No IMEX domain has more nodes: a limit for numbers and lists from outside. */
enum { IMEX_SLOTS_MAX = 4096 };

struct imex_domain {
        const char *infix; /* a part of the names that its nodes use for each other; "" or NULL: none, as in
                              the Go driver */
        int64_t slots;     /* the maximum number of nodes */
        int64_t port;      /* the TCP port of nvidia-imex */
};
extern const struct jd_field imex_domain_fields[];
