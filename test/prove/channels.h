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
        unsigned ids;     /* channels of a partition, at most 2 */
        unsigned owners;  /* ComputeDomains, at most 3 */
        unsigned slow; /* 1: between a controller's create of the object and its next write, others may act */
        /* 1: each owner has a shared claim, which two pods on the first node and one on the second one can
         * use. Their creations and deletions count as changes. */
        unsigned shared;
        unsigned old_kubelets; /* 1: the kubelets have the version 1.36 instead of 1.37 */
        unsigned forces;       /* force-deletions of a pod, or of a shared claim */
        unsigned lost;         /* lost answers of Unprepare, or of Prepare */
        unsigned cuts;         /* how often a node loses its network for a while */
        unsigned reboots;      /* restarts of a node */
};

/* Fills in *ret for this row, which is borrowed. */
void channels_describe(struct channels_row *row, struct search_world *ret);
