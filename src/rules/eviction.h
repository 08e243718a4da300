/* SPDX-License-Identifier: Apache-2.0 */
/* eviction: decides whether pods with a channel are evicted from a node whose IMEX has failed. Pure.
 *
 * Only a present report of the node itself counts as a failure. A node that is silent may run its pods well,
 * so silence is no reason. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/kinds.h"
#include "model/daemon_report.h"

enum eviction_imex {
        EVICTION_IMEX_UNKNOWN, /* no report that counts, or IMEX does not have to run now */
        EVICTION_IMEX_WORKS,
        EVICTION_IMEX_FAILS,
};

/* Returns the state of the host's IMEX that the plugin of a node reports. `p` is the result of
 * plugin_pod_choose(). `n` or `p` NULL: it does not exist. IMEX that is READY, but misses other nodes, works.
 */
enum eviction_imex eviction_of_host(const struct node *n, const struct plugin_pod *p);
/* Returns the state of IMEX that the daemon of a node reports for its assignment; `r` is the report on its
 * Pod. Each of them may be NULL. It is unknown while the daemon is terminating, while it stops IMEX for the
 * controller, and while nvidia-imex does not answer it. */
enum eviction_imex eviction_of_daemon(const struct node *n, const struct daemon_pod *p,
                                      const struct daemon_report *r);

enum eviction_step {
        EVICTION_WAIT,     /* IMEX has not failed for long enough */
        EVICTION_TOO_MANY, /* IMEX has failed on more than half of the nodes that report it. The cause is then
                              not a node, and pods would find no better one */
        EVICTION_DUE,
};
/* `failing_s`: for how long this controller has seen the failure. `failing` and `reporting`:
 * the number of nodes whose IMEX fails, and of those plus the nodes whose IMEX works. */
enum eviction_step eviction_step(int64_t failing_s, int64_t after_s, size_t failing, size_t reporting);

/* A pod as the API server has it now. */
struct eviction_pod {
        const char *uid, *node, *phase; /* NULL: absent */
        bool deleted;                   /* it is being deleted */
        bool of_daemon_set;             /* a DaemonSet would create it on the same node again */
        size_t n_claims;                /* in spec.resourceClaims */
};
/* Returns NULL if the pod may be evicted, otherwise the reason why not. `uid`: the pod that the claim is
 * reserved for. `node`: the node whose IMEX has failed. */
const char *eviction_refusal(const struct eviction_pod *p, const char *uid, const char *node);
