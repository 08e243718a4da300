/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/host_report.h"

#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/log.h"

enum { REASON_MS = 3000 };

struct host_report {
        struct host_report_options o;
        bool any;        /* something was reported */
        bool in_the_way; /* of our daemons, as last reported */
        struct host_imex_status reported;
};

/* A change of state is written at once. A change of its reason, which names nodes as they come and go, waits
 * for other writes. */
static void annotate(const struct host_report *r, const struct host_imex_status *s, bool state) {
        own_pod_set(r->o.own_pod, IMEX_ANNOTATION_HOST_STATE,
                    s->state == HOST_UNKNOWN ? NULL : host_state_name(s->state), 0);
        own_pod_set(r->o.own_pod, IMEX_ANNOTATION_HOST_REASON, *s->reason ? s->reason : NULL,
                    state ? 0 : REASON_MS);
}

/* The host runs IMEX. */
static void report_state(struct host_report *r, const struct event_about *node,
                         const struct host_imex_status *s) {
        switch (s->state) {
        case HOST_UP:
                if (r->any) /* the first answer after a start is no change */
                        event_record(r->o.events, node, EVENT_NORMAL, REASON_HOST_IMEX_UP,
                                     "the host's nvidia-imex is READY, and its domain is %s",
                                     str_or(s->domain, "not known"));
                break;
        case HOST_DEGRADED:
                event_record(r->o.events, node, EVENT_WARNING, REASON_HOST_IMEX_DEGRADED, "%s", s->reason);
                break;
        case HOST_DOWN:
                event_record(r->o.events, node, EVENT_WARNING, REASON_HOST_IMEX_DOWN,
                             "%s; the driver does not start nvidia-imex on hosts: start it with systemctl, "
                             "or with the tool that runs it on this host",
                             s->reason);
                break;
        case HOST_UNKNOWN:
        case HOST_STATES:
                event_record(r->o.events, node, EVENT_WARNING, REASON_HOST_IMEX_UNKNOWN,
                             "the state of the host's nvidia-imex is not known: %s", s->reason);
                break;
        }
}

/* We run IMEX in pods: the host's nvidia-imex would hold the driver's only session. One that does not answer
 * may still hold it. */
static void report_conflict(struct host_report *r, const struct event_about *node,
                            const struct host_imex_status *s) {
        bool gone = s->imex == IMEX_STATE_UNAVAILABLE || (!s->imex && s->state == HOST_UNKNOWN),
             runs = s->imex && !gone;
        if (runs && !r->in_the_way)
                event_record(r->o.events, node, EVENT_WARNING, REASON_HOST_IMEX_CONFLICT,
                             "nvidia-imex runs on this host (%s) and holds the driver's only IMEX session, "
                             "so that ComputeDomains cannot run theirs here: stop and disable "
                             "nvidia-imex.service, or install with featureGates.HostManagedIMEX=true",
                             imex_status_name(s->imex));
        else if (gone && r->in_the_way)
                event_record(r->o.events, node, EVENT_NORMAL, REASON_HOST_IMEX_STOPPED,
                             "nvidia-imex no longer runs on this host");
        r->in_the_way = runs || (r->in_the_way && !gone);
}

void host_report_update(struct host_report *r, const struct host_imex_status *s) {
        struct event_about node = { "v1", "Node", NULL, r->o.node, r->o.node };
        if (s->state == HOST_UNKNOWN && !*s->reason)
                return; /* the state is not known yet */
        bool state = !r->any || s->state != r->reported.state;
        bool reason = !r->any || !streq(s->reason, r->reported.reason);
        cd_metrics_host(r->o.metrics, s);
        if (state || reason)
                log_info("the host's nvidia-imex", kv_str("state", host_state_name(s->state)),
                         kv_str("status", imex_status_name(s->imex)), kv_str("domain", s->domain),
                         kv_int("nodes", s->nodes), kv_int("ready", s->nodes_ready),
                         kv_str("why", s->reason));
        if (mode_runs_daemons(r->o.mode))
                report_conflict(r, &node, s);
        else if (state)
                report_state(r, &node, s);
        if ((state || reason) && r->o.own_pod && !mode_runs_daemons(r->o.mode))
                annotate(r, s, state);
        r->reported = *s;
        r->any = true;
}

struct host_report *host_report_new(const struct host_report_options *o) {
        struct host_report *r = xnew(struct host_report);
        r->o = *o;
        return r;
}

void host_report_free(struct host_report *r) {
        free(r);
}
