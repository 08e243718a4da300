/* SPDX-License-Identifier: Apache-2.0 */
/* wants: what a claim asks of us, as far as the claim alone can tell: waiting does not fix what is
 * wrong here. Pure. */
#pragma once

#include "cd_plugin/state.h"

/* node_want.own */
struct want {
        bool is_daemon, is_own; /* own: of our daemon, and not of the Go driver's */
        struct opaque_config config;
        const char *domain_name, *domain_ns; /* NULL: not known yet */
        int64_t channel;                     /* that the container gets: its id */
        char edits[17];                      /* of our daemon: daemon_claim_edits() */
        const char *clique; /* in whose fabric the ComputeDomain has been given it as its own; NULL: it is the
                               one that all share */
};
static inline struct want *want_of(const struct node_want *w) {
        return w->own;
}

/* `ns` is one in which daemons may run. */
bool wants_manages(const struct cd_options *o, const char *ns);

/* For node_driver. */
int wants_take(void *u, const struct op *op, struct node_want *w, struct err *e);
int wants_check(void *u, const struct op *op, struct err *e);
