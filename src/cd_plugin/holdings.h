/* SPDX-License-Identifier: Apache-2.0 */
/* holdings: reports to the controller which channels the claims of this node hold, and which ComputeDomains
 * own them, in an annotation of the plugin's own Pod (model/channel_report). While a node holds a channel,
 * the controller assigns that channel to no other ComputeDomain.
 *
 * Each report is complete. The plugin writes it at the start and after each change of the holdings, of the
 * node's partition or of the fabric object, at most once a second. It writes no report before everything is
 * known, because a channel that is missing in a report counts as free.
 *
 * The allocation of a shared claim names no node, so the report also has the ComputeDomains of shared claims
 * that wait here. A new one is reported at once, because a pod waits for the answer. */
#pragma once

#include "cd_plugin/own_pod.h"
#include "model/channel_report.h"
#include "node/checkpoint.h"

struct holdings;

struct holdings_options {        /* the strings are borrowed until holdings_free() */
        struct own_pod *own_pod; /* borrowed until holdings_free() */
        const char *cdi_root, *cdi_kind;
};

struct holdings *holdings_new(const struct holdings_options *o);
void holdings_free(struct holdings *h); /* NULL is allowed */

/* Notes that a claim is being prepared with a channel of the partition with this clique ID. */
void holdings_note(struct holdings *h, const char *claim_uid, const char *clique);
/* Returns the clique ID of the partition of the channel that a recorded claim holds; NULL: not known. For
 * claims that an earlier process prepared, reads it from the CDI file. */
const char *holdings_clique(struct holdings *h, const char *claim_uid);

/* Updates the report after a change of the table. */
void holdings_follow(struct holdings *h, const struct checkpoint *table);
/* Updates the ComputeDomains of shared claims that wait here, as UIDs in a list that ends with NULL. */
void holdings_asks(struct holdings *h, const char *const *uids);
struct holdings_node {
        const char *clique;          /* the node's clique ID; "": none, or not known yet */
        const char *fabric_uid;      /* UID of the fabric object of this partition; "": none, or not seen
                                        yet */
        unsigned channel_count;      /* as the node's NVIDIA driver states it */
        const char *imex, *withheld; /* as in the report; NULL: not reported */
        const char *const *asks;     /* see holdings_asks(), which sets it; NULL: none */
};
void holdings_node(struct holdings *h, const struct holdings_node *place);

/* Makes the report, with all memory in the arena. False: the partition of a held channel is not known, so
 * there is no report. Pure, for tests. */
struct held_channel {
        const char *clique; /* NULL: unknown */
        int64_t id;
        const char *owner;
};
bool holdings_report(const struct held_channel *held, size_t n, const struct holdings_node *place,
                     struct arena *a, struct channel_report *ret);
