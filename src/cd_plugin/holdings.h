/* SPDX-License-Identifier: Apache-2.0 */
/* holdings: reports to the controller which channels the claims of this node hold, and their owners, in an
 * annotation of the plugin's own Pod (model/channel_report). A channel that a node holds is assigned to no
 * other ComputeDomain.
 *
 * The report is complete each time. It is written at the start, and after a change of the holdings, the
 * node's partition, or the fabric object, at most once a second. It is not written before everything is
 * known, because a channel that is missing in a report counts as free. */
#pragma once

#include "cd_plugin/own_pod.h"
#include "model/channel_report.h"
#include "node/checkpoint.h"

struct holdings;

struct holdings_options {        /* the strings are borrowed until holdings_free() */
        struct own_pod *own_pod; /* borrowed, too */
        const char *cdi_root, *cdi_kind;
};

struct holdings *holdings_new(const struct holdings_options *o);
void holdings_free(struct holdings *h); /* NULL is allowed */

/* A claim is being prepared with a channel of the partition with this clique ID. */
void holdings_note(struct holdings *h, const char *claim_uid, const char *clique);
/* The clique ID of the partition of the channel that a recorded claim holds. For claims that an earlier
 * process prepared, it is read from the CDI file. NULL: not known. */
const char *holdings_clique(struct holdings *h, const char *claim_uid);

/* The table has changed. */
void holdings_follow(struct holdings *h, const struct checkpoint *table);
struct holdings_node {
        const char *clique;          /* the node's clique ID; "": none, or not known yet */
        const char *fabric_uid;      /* of its fabric object; "": none, or not seen yet */
        unsigned channel_count;      /* of its driver */
        const char *imex, *withheld; /* as in the report; NULL: not reported */
};
void holdings_node(struct holdings *h, const struct holdings_node *place);

/* Pure, for tests: the report, with all memory in the arena. False: it cannot be made, because the partition
 * of a held channel is not known. */
struct held_channel {
        const char *clique; /* NULL: unknown */
        int64_t id;
        const char *owner;
};
bool holdings_report(const struct held_channel *held, size_t n, const struct holdings_node *place,
                     struct arena *a, struct channel_report *ret);
