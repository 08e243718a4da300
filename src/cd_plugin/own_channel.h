/* SPDX-License-Identifier: Apache-2.0 */
/* own_channel: which channel of its own a ComputeDomain has on this node's fabric, as the fabric's object
 * says it. Pure. */
#pragma once

#include <stdbool.h>

#include "model/fabric.h"

struct own_channel_question {
        const char *node, *clique_id;
        const char *domain_ns, *domain_name, *domain_uid;
        unsigned channel_count; /* of this node's driver */
};

/* *ret: its id. False: not yet, and `msg` says why, beginning with the node's name. `f` NULL: the fabric has
 * no object. */
bool own_channel(const struct compute_domain_fabric *f, const struct own_channel_question *q, int64_t *ret,
                 char *msg, size_t n);
