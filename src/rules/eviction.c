/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/eviction.h"

#include "api/states.h"
#include "base/stderr.h"
#include "base/str.h"

enum eviction_imex eviction_of_host(const struct node *n, const struct plugin_pod *p) {
        if (!n || !p || !node_ready(n) || !plugin_pod_reports(p))
                return EVICTION_IMEX_UNKNOWN;
        switch (host_state_decode(p->host_state)) {
        case HOST_DOWN:
                return EVICTION_IMEX_FAILS;
        case HOST_DEGRADED:
        case HOST_UP:
                return EVICTION_IMEX_WORKS;
        case HOST_UNKNOWN:
        case HOST_STATES:
                break;
        }
        return EVICTION_IMEX_UNKNOWN;
}

enum eviction_imex eviction_of_daemon(const struct node *n, const struct daemon_pod *p,
                                      const struct daemon_report *r) {
        if (!n || !p || !r || !node_ready(n) || p->pod.o.meta.deleted || pod_ended(&p->pod) ||
            !condition_true(p->pod.conditions, p->pod.n_conditions, "Ready") || !r->has_assignment ||
            !streq(r->boot_id, node_boot_id(n)))
                return EVICTION_IMEX_UNKNOWN;
        if (pod_imex_ready(&p->pod))
                return EVICTION_IMEX_WORKS;
        switch (imex_status_decode(p->pod.state)) {
        case IMEX_STATE_STARTING:
        case IMEX_STATE_BACKOFF:
        case IMEX_STATE_INITIALIZING:
        case IMEX_STATE_STARTING_AUTH_SERVER:
        case IMEX_STATE_WAITING_FOR_PEERS:
        case IMEX_STATE_WAITING_FOR_RECOVERY:
        case IMEX_STATE_INIT_GPU:
                return EVICTION_IMEX_FAILS;
        case IMEX_STATE_NONE:
        case IMEX_STATE_UNKNOWN:
        case IMEX_STATE_IDLE:
        case IMEX_STATE_STOPPED:
        case IMEX_STATE_LEAVING:
        case IMEX_STATE_READY: /* with another index */
        case IMEX_STATE_SHUTTING_DOWN:
        case IMEX_STATE_UNAVAILABLE:
        case IMEX_STATES:
                break;
        }
        return EVICTION_IMEX_UNKNOWN;
}

enum eviction_step eviction_step(int64_t failing_s, int64_t after_s, size_t failing, size_t reporting) {
        BUG_ON(after_s <= 0 || failing > reporting);
        if (failing_s < after_s)
                return EVICTION_WAIT;
        return 2 * failing > reporting ? EVICTION_TOO_MANY : EVICTION_DUE;
}

const char *eviction_refusal(const struct eviction_pod *p, const char *uid, const char *node) {
        BUG_ON(!uid || !node);
        if (!streq(p->uid, uid))
                return "another pod has its name";
        if (!streq(p->node, node))
                return "it is on another node";
        if (p->deleted)
                return "it is being deleted";
        if (streq(p->phase, "Succeeded") || streq(p->phase, "Failed"))
                return "it has ended";
        if (!p->n_claims)
                return "it has no claims";
        return p->of_daemon_set ? "its DaemonSet would create it on this node again" : NULL;
}
