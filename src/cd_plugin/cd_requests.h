/* SPDX-License-Identifier: Apache-2.0 */
/* cd_requests: what a claim requests from this driver, as far as the claim itself shows it. Waiting does not
 * fix an error that is found here. Pure. */
#pragma once

#include "cd_plugin/state.h"

/* node_request.own */
struct cd_request {
        bool is_daemon, is_own; /* own: our daemon, not the Go driver's */
        struct opaque_config config;
        const char *domain_name, *domain_ns; /* NULL: not known yet */
        int64_t channel;                     /* the ID of the channel that the container gets */
        char edits[17];                      /* for our daemon: daemon_claim_edits() */
        const char *clique; /* the partition in which the channel is assigned to the ComputeDomain; NULL: the
                               shared channel */
};
static inline struct cd_request *cd_request_of(const struct node_request *w) {
        return w->own;
}

/* `ns` is a namespace in which daemons may run. */
bool cd_requests_manages(const struct cd_options *o, const char *ns);

/* For node_driver. */
int cd_requests_take(void *u, const struct op *op, struct node_request *w, struct err *e);
int cd_requests_check(void *u, const struct op *op, struct err *e);
