/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_events.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/reasons.h"
#include "base/file.h"
#include "base/log.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/standing.h"
#include "cd_plugin/cd_requests.h"
#include "imex/imex_log.h"

/* ---- daemons ---- */

static void report_lost(const struct cd *cd, const char *domain, const char *reason) {
        char counts_on[37];
        CHECKPOINT_EACH_DEVICE (&cd->claims->journal.table, e, d) {
                if (!e->name || cd_device_is_daemon(d) || !standing_domain_of(cd, e, d, counts_on) ||
                    !streq(counts_on, domain))
                        continue;
                struct event_about about = { "resource.k8s.io/v1", "ResourceClaim", e->ns, e->name, e->uid };
                event_record(cd->o.events, &about, EVENT_WARNING, REASON_IMEX_DAEMON_NOT_READY,
                             "the channel is in use, but is not served: %s", reason);
        }
}

static void on_grace(void *u) {
        struct cd *cd = u;
        struct prepare_daemon d;
        char reason[400];
        while (!LIST_EMPTY(&cd->lost)) {
                struct cd_unready *l = LIST_FIRST(&cd->lost);
                if (!readiness_check(cd->readiness, l->domain, &d, reason, sizeof reason))
                        report_lost(cd, l->domain, reason);
                LIST_REMOVE(l, link);
                free(l);
        }
}

void cd_events_session_taken(void *u) {
        struct cd *cd = u;
        struct event_about node = { "v1", "Node", NULL, cd->o.node, cd->o.node };
        log_warn("the host's own nvidia-imex prevents the start of a ComputeDomain's nvidia-imex");
        event_record(cd->o.events, &node, EVENT_WARNING, REASON_HOST_IMEX_CONFLICT,
                     IMEX_LOG_SESSION_TAKEN
                     ", so ComputeDomains cannot run theirs: stop and disable the host's "
                     "nvidia-imex.service, or install with featureGates.HostManagedIMEX=true");
}

void cd_events_ready_lost(void *u, const char *domain_uid) {
        struct cd *cd = u;
        struct cd_unready *l;
        LIST_FOREACH (l, &cd->lost, link) {
                if (streq(l->domain, domain_uid))
                        return;
        }
        l = xnew(struct cd_unready);
        snprintf(l->domain, sizeof l->domain, "%s", domain_uid);
        LIST_INSERT_HEAD(&cd->lost, l, link);
        if (!loop_timer_waits(&cd->grace))
                loop_timer_start(&cd->grace, CD_EVENTS_GRACE_MS);
}

void cd_events_init(struct cd *cd) {
        LIST_INIT(&cd->lost);
        loop_timer_init(&cd->grace, cd->o.loop, on_grace, cd);
}

void cd_events_done(struct cd *cd) {
        while (!LIST_EMPTY(&cd->lost)) {
                struct cd_unready *l = LIST_FIRST(&cd->lost);
                LIST_REMOVE(l, link);
                free(l);
        }
        loop_timer_done(&cd->grace);
}

/* ---- channels ---- */

static void report_to_pods(const struct cd *cd, const struct op *op, const char *reason, const char *msg) {
        for (size_t i = 0; i < op->claim.n_consumers; i++) {
                const struct claim_consumer *pod = &op->claim.consumers[i];
                struct event_about about = { "v1", "Pod", op->ns, pod->name, pod->uid };
                if (streq(pod->resource, "pods"))
                        event_record(cd->o.events, &about, EVENT_WARNING, reason, "%s", msg);
        }
}

/* Its other pods may wait for another node forever: the scheduler only reports that the claim is not
 * available there. */
static void report_shared(const struct cd *cd, const struct op *op, const char *domain) {
        const struct event_about claim = { "resource.k8s.io/v1", "ResourceClaim", op->ns,
                                           op->claim.o.meta.name, op->claim.o.meta.uid };
        event_record(cd->o.events, &claim, EVENT_NORMAL, REASON_SHARED_ON_ONE_NODE,
                     "the channel of this claim is on node %s: all pods that name the claim run only there; "
                     "for pods on several nodes use the claim template of ComputeDomain '%s', which makes "
                     "one claim for each of them",
                     cd->o.node, domain);
}

void cd_events_prepared(void *u, struct op *op) {
        const struct cd *cd = u;
        const struct facts *f = facts_get(cd->o.facts);
        _cleanup_(freep) char *node = file_join(cd->o.dev_root, "dev/nvidia-caps-imex-channels/channel0");
        char msg[700];
        bool channel = false;
        for (size_t i = 0; i < op->n_requests; i++) {
                const struct cd_request *w = cd_request_of(&op->requests[i]);
                channel = channel || !w->is_daemon;
                if (!w->is_daemon && !op->claim.n_owners && w->domain_name)
                        report_shared(cd, op, w->domain_name);
        }
        if (channel && f->fabric.kind == GPU_FABRIC_NONE) {
                snprintf(msg, sizeof msg,
                         "node %s is in no NVLink partition (%s): the pod runs without an IMEX channel",
                         cd->o.node, f->fabric.reason);
                report_to_pods(cd, op, REASON_NO_IMEX_CHANNEL, msg);
        } else if (channel && !mode_runs_daemons(cd->o.mode) && !mode_assigns_channels(cd->o.mode) &&
                   access(node, F_OK) < 0) {
                /* The container gets its own device node. The operator makes the one on the host, so its
                 * absence shows that the setup is incomplete. */
                snprintf(
                        msg, sizeof msg,
                        "node %s has no /dev/nvidia-caps-imex-channels/channel0: a pod with hostUsers: false "
                        "cannot start, any other pod gets its channel; check the host's IMEX setup (the "
                        "driver's option NVreg_CreateImexChannel0, or nvidia-modprobe)",
                        cd->o.node);
                log_warn("the host has no device node of channel 0", kv_str("path", node));
                report_to_pods(cd, op, REASON_IMEX_CHANNEL_NODE_MISSING, msg);
        }
}
