/* SPDX-License-Identifier: Apache-2.0 */
/* cd_requests: determines from the claim alone what it requests from this driver. An error that is found here
 * is permanent: waiting does not fix it. Pure. */
#pragma once

#include "cd_plugin/state.h"

/* The type of node_request.own. */
struct cd_request {
        bool is_daemon, is_own; /* is_own: the device is for our daemon, not for the Go driver's */
        bool is_shared;         /* the device of shared claims, which is on every node */
        bool admin_access;      /* no device of the claim is without admin access */
        struct opaque_config config;
        const char *domain_name, *domain_ns; /* NULL: not known yet */
        bool gated;                          /* the ComputeDomain may have a closed start gate */
        int64_t channel;                     /* the ID of the channel that the container gets */
        char edits[17];                      /* for our daemon: the name that daemon_claim_edits() returned */
        const char *clique; /* the clique ID of the partition in which the channel is assigned to the
                               ComputeDomain; NULL: the shared channel is used */
};
static inline struct cd_request *cd_request_of(const struct node_request *w) {
        return w->own;
}

/* Returns whether daemons may run in the namespace `ns`. */
bool cd_requests_manages(const struct cd_options *o, const char *ns);

/* For struct node_driver. */
int cd_requests_take(void *u, const struct op *op, struct node_request *w, struct err *e);
int cd_requests_check(void *u, const struct op *op, struct err *e);
