/* SPDX-License-Identifier: Apache-2.0 */
/* shortage: makes the condition ChannelAvailable, which reports why no channel device is free for a
 * ComputeDomain whose pods wait for one. A tenant may read neither the Nodes and ResourceSlices nor the
 * claims of others, so the message has only counts, racks and the reasons of plugins. Pure.
 *
 * Thousands of ComputeDomains may wait for one rack, so not every change of a count is written: a message
 * stays while its class does, and the class changes only after it has been another one for some time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/domain.h"

/* A node with a GPU, or with a ResourceSlice of the driver. */
struct shortage_node {
        const char *partition, *rack; /* clique ID and rack; NULL or "": none known */
        int64_t channels, used;       /* channel devices that it publishes, and those that are allocated */
        bool up;                      /* the Node is Ready and not cordoned */
        const char *withheld;         /* why it publishes no channel device, as one word; NULL: not known */
};

struct shortage_facts {
        const struct shortage_node *nodes;
        size_t n_nodes;
        const char *rack;       /* the only rack that the claim template allows; NULL: any */
        const char *const *own; /* partitions in which claims of the ComputeDomain are allocated */
        size_t n_own;
};

/* Fills type, status, reason and message of the condition. Returns false if a channel device is free, so that
 * there is nothing to report. The class of the message is its part in front of the first ": ". */
bool shortage_condition(const struct shortage_facts *f, struct arena *a, struct cd_condition *ret);
/* Checks that a condition is true of these facts: returns NULL, or a description of the violation, in the
 * arena. The counts in the message may be those of an earlier time. */
const char *shortage_check(const struct shortage_facts *f, const struct cd_condition *c, struct arena *a);

/* Most pods get their channel at once, so nothing is looked at in the first SHORTAGE_LOOKS_S. The first
 * condition is written when its class has lasted for SHORTAGE_WAITS_S. A class replaces another one, or ends,
 * after SHORTAGE_SETTLES_S: a channel that becomes free is usually taken at once. */
enum { SHORTAGE_LOOKS_S = 5, SHORTAGE_WAITS_S = 10, SHORTAGE_SETTLES_S = 30 };

/* What the controller remembers of one ComputeDomain. Zero at the start. Times are of one clock that never
 * goes back. */
struct shortage_memory {
        int64_t waiting_since; /* 0: no pod waits */
        uint64_t class;        /* of the last look; 0: none */
        int64_t class_since;
        bool changes; /* the change to this class has begun: the first decision to write it was made */
};
struct shortage_input {
        bool waits;                     /* a pod waits for a channel device */
        const struct cd_condition *is;  /* of the last look at the facts; NULL: nothing to report */
        const struct cd_condition *was; /* in the status of the object; NULL: none */
        bool may_change;                /* false: too many conditions were changed lately, so none begins */
        int64_t now;
};
/* Returns whether pods have waited for so long that the facts count. */
bool shortage_is_due(const struct shortage_memory *m, int64_t now);
/* Returns the condition that the status should have; NULL: none. `is` is NULL until shortage_is_due(), and
 * `was` stays until then. *ret_recheck_s: look again after this time;
 * 0: only after an event. */
const struct cd_condition *shortage_settle(struct shortage_memory *m, const struct shortage_input *in,
                                           int64_t *ret_recheck_s);
