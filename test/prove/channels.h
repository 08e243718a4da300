/* SPDX-License-Identifier: Apache-2.0 */
/* channels: a small cluster in which ComputeDomains have channels of their own. rules/channels decides who
 * gets which, and cd_plugin/may_prepare whether a pod may have it. Time passes in ticks of 40 s, so that each
 * limit of the rule (30 s, 60 s) lies between two of them; what is older than OLD ticks is as old as can be.
 */
#pragma once

#include "search.h"

struct channels_row {
        const char *name, *what;
        unsigned changes; /* claims and ComputeDomains that come or go */
        unsigned gone;    /* Nodes that are deleted, with their Pods and claims */
        unsigned deletes; /* of the ComputeDomainFabric */
        unsigned leaders; /* that go, so that nobody leads for a while */
        unsigned slow; /* 1: after a controller has created the object, others may act before it writes again
                        */
};

/* The row is borrowed. */
void channels_describe(struct channels_row *row, struct search_world *ret);
