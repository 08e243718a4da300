/* SPDX-License-Identifier: Apache-2.0 */
/* channels: models a small cluster in which ComputeDomains have assigned channels. rules/channels assigns the
 * channels, and cd_plugin/may_prepare decides whether a pod may have one. Time passes in ticks of 40 s, so
 * that each limit of the rule (30 s, 60 s) lies between two ticks. Ages above OLD ticks count as OLD. */
#pragma once

#include "search.h"

struct channels_row {
        const char *name, *what;
        unsigned changes; /* creations and deletions of claims, and deletions of ComputeDomains */
        unsigned gone;    /* deletions of a Node, with its Pods and claims */
        unsigned deletes; /* deletions of the ComputeDomainFabric */
        unsigned leaders; /* how often a leader ends, so that no controller leads for a while */
        unsigned slow; /* 1: between a controller's create of the object and its next write, others may act */
};

/* Fills in *ret for this row, which is borrowed. */
void channels_describe(struct channels_row *row, struct search_world *ret);
