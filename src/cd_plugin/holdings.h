/* SPDX-License-Identifier: Apache-2.0 */
/* holdings: which channels the claims of this node hold, and whose they are, told to the controller in an
 * annotation of the plugin's own Pod (model/channel_report). What a node holds is given to nobody else.
 *
 * It is told whole at each start and whenever it, the node's fabric, or the fabric's object has changed, at
 * most once a second; and not before all of it is known, because what is missing in a report is free. */
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

/* A claim is being prepared with a channel of this clique's fabric. */
void holdings_note(struct holdings *h, const char *claim_uid, const char *clique);
/* Of which clique's fabric the channel is that a recorded claim holds; what an earlier process has prepared
 * is looked up in the CDI file. NULL: nobody knows. */
const char *holdings_clique(struct holdings *h, const char *claim_uid);

/* The table is what holds now. */
void holdings_follow(struct holdings *h, const struct checkpoint *table);
struct holdings_place {
        const char *clique;          /* that the node is in; "": in none, or it is not known yet */
        const char *fabric_uid;      /* of its fabric's object; "": there is none, or it has not been seen */
        unsigned channel_count;      /* of its driver */
        const char *imex, *withheld; /* as in the report; NULL: not told */
};
void holdings_place(struct holdings *h, const struct holdings_place *place);

/* Pure, for tests: the report, with all memory in the arena. False: it cannot be made, because a channel is
 * held of which nobody knows the fabric. */
struct holding {
        const char *clique; /* NULL: unknown */
        int64_t id;
        const char *owner;
};
bool holdings_report(const struct holding *held, size_t n, const struct holdings_place *place,
                     struct arena *a, struct channel_report *ret);
