/* SPDX-License-Identifier: Apache-2.0 */
/* own_seat: whether a pod may count on the seat that this node has in its ComputeDomain's IMEX domain, where
 * a resident agent runs nvidia-imex. Pure.
 *
 * An agent that is ready says in which seat it is. That may be one that the fabric's object does not name any
 * more: the node has been given another, or is leaving the domain, and the agent has not looked yet. */
#pragma once

#include <stdbool.h>

#include "model/agent_seat.h"
#include "model/fabric.h"

struct own_seat_question {
        const char *node, *clique_id;
        const char *domain_ns, *domain_name, *domain_uid;
        bool stands; /* the domain is that of the fabric itself, which has no name but the clique's */
};

/* NULL: not now, and `msg` says why, beginning with the node's name. `f` NULL: the fabric has no object. */
const struct fabric_seat *own_seat(const struct compute_domain_fabric *f, const struct own_seat_question *q,
                                   char *msg, size_t n);
/* Why this node has no place in the IMEX domain of the fabric itself, in the words of the fabric's object,
 * which owns them. NULL: it has one, or the object says nothing of the kind. */
const char *own_seat_none(const struct compute_domain_fabric *f, const char *node);
/* The agent is ready in `ready`: is that the seat which the object names? False: `msg` says it. */
bool own_seat_is(const struct fabric_seat *s, const struct agent_seat *ready,
                 const struct own_seat_question *q, char *msg, size_t n);
