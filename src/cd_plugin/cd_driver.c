/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_driver.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/file.h"
#include "base/log.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/cd_requests.h"
#include "cd_plugin/cd_steps.h"
#include "cd_plugin/daemon_claim.h"
#include "cd_plugin/edits.h"
#include "cd_plugin/folders.h"
#include "cd_plugin/host_nodes.h"
#include "cd_plugin/prepare_inputs.h"
#include "cd_plugin/rebuild.h"
#include "cd_plugin/standing.h"
#include "cd_plugin/state.h"
#include "imex/imex_ctl.h"
#include "node/claims.h"

/* ---- plans ---- */

/* How preparing one of our devices changes the node and the containers, and how the device is recorded. */

static int edit_daemon(const struct cd *cd, const struct op *op, const struct cd_request *w, struct arena *a,
                       struct cdi_edits *ret, struct err *e) {
        const struct facts *f = facts_get(cd->o.facts);
        const char *domain = w->config.domain_id;
        _cleanup_(freep) char *dir = readiness_domain_dir(cd->o.plugin_dir, domain);
        struct edits_daemon d = {
                .domain_dir = dir,
                .clique_id = f->fabric.clique_id,
                .domain_uid = domain,
                .domain_name = str_or(w->domain_name, ""),
                .domain_ns = str_or(w->domain_ns, ""),
                .claim_uid = op->uid,
                .root = cd->o.root,
                .driver_version = f->driver_version,
                .dev_root = cd->o.dev_root,
                .proc_driver = cd->o.proc_driver,
        };
        if (*d.clique_id && facts_major(cd->o.facts, PROC_MAJOR_CAPS, &d.caps_major, e) < 0)
                return -1;
        return edits_for_daemon(a, &d, ret, e);
}

/* With host-managed IMEX and isolation by domain, the administrator makes channel 0 (cd_events_prepared). */
static void make_on_host(const struct cd *cd, const struct cdi_edits *channels) {
        struct err e;
        if (!*cd->o.channel_nodes || (!mode_runs_daemons(cd->o.mode) && !mode_assigns_channels(cd->o.mode)))
                return;
        if (host_nodes_make(cd->o.channel_nodes, channels, &e) < 0)
                log_warn("cannot make a channel's device node on the host: pods with hostUsers: false cannot "
                         "use the channel until the plugin's container may create device nodes there",
                         kv_err(&e));
}

static int edit_channel(const struct cd *cd, const struct cd_request *w, struct arena *a,
                        struct cdi_edits *ret, struct err *e) {
        unsigned major = 0, count = 1;
        if (!w->clique && !*facts_get(cd->o.facts)->fabric.clique_id)
                return 0; /* no partition: the pod runs without a channel */
        if (facts_major(cd->o.facts, PROC_MAJOR_IMEX_CHANNELS, &major, e) < 0)
                return -1;
        if (mode_forms_domains(cd->o.mode) &&
            opaque_allocation_mode(w->config.allocation_mode) == ALLOCATION_ALL)
                count = edits_channel_count(cd->o.proc_driver);
        edits_channels(a, major, (unsigned)w->channel, count, ret);
        make_on_host(cd, ret);
        return 0;
}

static int cd_plan_device(void *u, const struct op *op, const struct node_request *node_request,
                          struct arena *a, struct node_effect *ret, struct err *e) {
        struct cd_request *w = cd_request_of(node_request);
        struct cd *cd = u;
        if (w->clique)
                holdings_note(cd->o.holdings, op->uid, w->clique);
        if (!w->is_daemon)
                return edit_channel(u, w, a, &ret->edits, e);
        if (w->is_own)
                return daemon_claim_edits(cd, op->uid, a, &ret->edits, w->edits, e);
        ret->resource = arena_strdup(a, w->config.domain_id);
        return edit_daemon(u, op, w, a, &ret->edits, e);
}

static void cd_plan_record(const struct node_request *node_request, struct node_device *ret) {
        const struct cd_request *w = cd_request_of(node_request);
        ret->type = w->is_daemon ? DEVICE_DAEMON : DEVICE_CHANNEL;
        ret->domain = w->config.domain_id;
        ret->id = w->channel;
}

static const char *cd_plan_comment(const struct op *op, struct arena *a) {
        const struct cd_request *w = cd_request_of(&op->requests[0]);
        return rebuild_comment(a, w->config.domain_id, op->requests[0].result->device, w->channel, w->clique);
}

/* ---- Events of daemons ---- */

/* A daemon is not reported if it stops with its workload or is READY again within this time. */
enum { CD_EVENTS_GRACE_MS = 5000 };

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

static void cd_events_session_taken(void *u) {
        struct cd *cd = u;
        log_warn("the host's own nvidia-imex prevents the start of a ComputeDomain's nvidia-imex");
        event_record(cd->o.events, EVENT_NODE(cd->o.node), EVENT_WARNING, REASON_HOST_IMEX_CONFLICT,
                     IMEX_LOG_SESSION_TAKEN
                     ", so ComputeDomains cannot run theirs: stop and disable the host's "
                     "nvidia-imex.service. To use the host's IMEX instead, follow "
                     "docs/how-to/upgrade.md#changing-the-imex-mode");
}

/* Callbacks for struct readiness_options; u is the struct cd. */
static void cd_events_ready_lost(void *u, const char *domain_uid) {
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

static void cd_events_init(struct cd *cd) {
        LIST_INIT(&cd->lost);
        loop_timer_init(&cd->grace, cd->o.loop, on_grace, cd);
}

static void cd_events_done(struct cd *cd) {
        while (!LIST_EMPTY(&cd->lost)) {
                struct cd_unready *l = LIST_FIRST(&cd->lost);
                LIST_REMOVE(l, link);
                free(l);
        }
        loop_timer_done(&cd->grace);
}

/* ---- Events of channels ---- */

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

/* Reports problems of the channel of a claim that has just been prepared, if they do not prevent the pod from
 * running. */
static void cd_events_prepared(void *u, struct op *op) {
        const struct cd *cd = u;
        const struct facts *f = facts_get(cd->o.facts);
        _cleanup_(freep) char *node = file_join(cd->o.root.here, "dev/nvidia-caps-imex-channels/channel0");
        char msg[700];
        bool channel = false;
        for (size_t i = 0; i < op->n_requests; i++) {
                const struct cd_request *w = cd_request_of(&op->requests[i]);
                channel = channel || !w->is_daemon;
                if (!w->is_daemon && !w->is_shared && !op->claim.n_owners && w->domain_name)
                        report_shared(cd, op, w->domain_name);
        }
        if (channel && f->fabric.kind == GPU_FABRIC_NONE) {
                snprintf(msg, sizeof msg,
                         "node %s is in no NVLink partition (%s): the pod runs without an IMEX channel",
                         cd->o.node, f->fabric.reason);
                report_to_pods(cd, op, REASON_NO_IMEX_CHANNEL, msg);
        } else if (channel && !mode_runs_daemons(cd->o.mode) && !mode_assigns_channels(cd->o.mode) &&
                   driver_root_has_dev(&cd->o.root) && access(node, F_OK) < 0) {
                /* The container gets its own device node. The operator makes the one on the host, so its
                 * absence shows that the setup is incomplete. If the driver root has no dev/, the plugin
                 * sees only its container's /dev, which does not get the nodes that appear later. */
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

/* ---- the driver ---- */

struct cd *cd_driver_new(const struct cd_options *o) {
        struct cd *cd = xnew(struct cd);
        cd->o = *o;
        cd->o.more_ns = str_or(o->more_ns, "");
        cd_events_init(cd);
        cd_health_init(cd);
        daemon_claim_init(cd);
        return cd;
}

static void report_standing(const struct cd *cd) {
        if (cd->o.standing_changed)
                cd->o.standing_changed(cd->o.u);
        if (cd->o.health_changed)
                cd->o.health_changed(cd->o.u);
}

/* In a watch of domains or of the fabric object, or in a state file. */
static void cd_driver_on_changed(void *u) {
        struct cd *cd = u;
        struct op *op;
        report_standing(cd);
        claims_reevaluate(cd->claims);
        TAILQ_FOREACH (op, &cd->claims->ops, link) {
                if (op->phase == OP_WAITING)
                        prepare_inputs_recheck(op);
        }
}

/* The folder of the state file may have been removed together with the grants in it. */
static void cd_driver_on_state_file(void *u) {
        const struct cd *cd = u;
        grants_renew(cd->grants);
        cd_driver_on_changed(u);
}

static bool has_daemon(const struct cd *cd) {
        return cd_device_own_daemon_claim(&cd->claims->journal.table);
}

/* Without the node's daemon here, the fabric object has no assignment that serves a pod, and may not exist.
 */
static void follow_fabric(const struct cd *cd) {
        const struct facts *f = facts_get(cd->o.facts);
        if (mode_forms_domains(cd->o.mode))
                fabric_watch_follow(cd->o.fabric, f->usable && has_daemon(cd) ? f->fabric.clique_id : "");
}

/* A kept Prepare may have failed before it got a grant. Its ComputeDomain is followed after the check that it
 * is in the namespace of the claim. */
static void watch_domains(const struct cd *cd) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        const struct op_list *kept = &cd->claims->failed;
        const struct op *op;
        char standing[37];
        bool has_standing = standing_uid(cd, standing);
        size_t n, n_more = has_standing;
        TAILQ_FOREACH (op, kept, link)
                n_more += op->n_requests;
        const char **domains = grants_domains(cd->grants, n_more, a, &n);
        if (has_standing)
                domains[n++] = standing;
        TAILQ_FOREACH (op, kept, link) {
                for (size_t i = 0; !mode_is_standing(cd->o.mode) && i < op->n_requests; i++) {
                        const struct cd_request *w = cd_request_of(&op->requests[i]);
                        if (!w->is_daemon && w->domain_name)
                                domains[n++] = w->config.domain_id;
                }
        }
        domains[n] = NULL;
        readiness_follow(cd->readiness, mode_runs_daemons(cd->o.mode) ? domains : NULL);
}

void cd_driver_facts(struct cd *cd) {
        daemon_claim_facts(cd);
        follow_fabric(cd);
        if (cd->followed)
                watch_domains(cd);
        claims_reevaluate(cd->claims);
}

static void on_noted(void *u) {
        struct cd *cd = u;
        if (has_daemon(cd)) /* it may be about to join another domain */
                watch_domains(cd);
        claims_reevaluate(cd->claims);
}

static bool imex_domain_of(void *u, const struct checkpoint_claim *entry, const struct node_device *d,
                           char ret[static 37]) {
        return standing_domain_of(u, entry, d, ret);
}

static void cd_driver_attach(void *u, struct claims *c) {
        struct cd *cd = u;
        cd->claims = c;
        cd->readiness = readiness_new(cd->o.loop,
                                      &(struct readiness_options){ .plugin_dir = cd->o.plugin_dir,
                                                                   .node = cd->o.node,
                                                                   .boot_id = cd->o.boot_id,
                                                                   .table = &c->journal.table,
                                                                   .changed = cd_driver_on_state_file,
                                                                   .lost = cd_events_ready_lost,
                                                                   .session_taken = cd_events_session_taken,
                                                                   .u = cd });
        cd->grants = grants_new(cd->o.loop, c, cd->o.plugin_dir,
                                mode_runs_daemons(cd->o.mode) ? imex_domain_of : NULL, on_noted, cd);
        if (mode_forms_domains(cd->o.mode))
                cd->o.fabric = fabric_watch_new(cd->o.kube, cd_driver_on_changed, cd);
        cd->watches = lookup_watches_new(cd->o.kube, cd_driver_on_changed, cd);
}

static void cd_driver_release(void *u) {
        struct cd *cd = u;
        cd_events_done(cd);
        cd_health_done(cd);
        daemon_claim_done(cd);
        lookup_watches_free(cd->watches);
        grants_free(cd->grants);
        if (mode_forms_domains(cd->o.mode))
                fabric_watch_free(cd->o.fabric);
        readiness_free(cd->readiness);
        free(cd);
}

static void cd_driver_waits(void *u, const struct op *op) {
        const struct cd *cd = u;
        if (op->waits_for == WAITS_FOR_HOST)
                host_imex_poll_fast(cd->o.host);
}

/* Its files stay only if the claim is recorded, or another operation for the same claim exists. */
static void release_op(void *u, struct op *op) {
        const struct cd *cd = u;
        prepare_inputs_release(u, op);
        grants_follow(cd->grants);
}

/* The daemon may stop IMEX although these claims wait. */
static void note_waiting(const struct cd *cd) {
        const struct op *op;
        TAILQ_FOREACH (op, &cd->claims->ops, link) {
                const struct prepare_inputs *g = op->own;
                if (op->phase == OP_WAITING && g && !g->granting)
                        grants_wait(cd->grants, op->uid);
        }
        TAILQ_FOREACH (op, &cd->claims->failed, link) {
                if (!ops_active(cd->claims, op->uid))
                        grants_wait(cd->grants, op->uid);
        }
}

/* The allocation of a shared claim names no node, so the plugin reports for which ComputeDomains such claims
 * wait here. Prepares that failed and wait for a retry count, too: otherwise each retry of the kubelet would
 * change the report twice, and a start gate, which needs the nodes of all claims at the same time, could stay
 * closed. A claim that is known only from its record does not count, because its pod may not exist any more.
 */
static void ask_for_shared(const struct cd *cd) {
        const struct op_list *const lists[] = { &cd->claims->ops, &cd->claims->failed };
        const struct op *op;
        _cleanup_(freep) const char **asks = NULL;
        size_t n = 0, cap = 0;
        if (!cd->o.holdings)
                return;
        for (size_t l = 0; l < ARRAY_LEN(lists); l++)
                TAILQ_FOREACH (op, lists[l], link) {
                        bool waits = op->phase == OP_WAITING || (op->phase == OP_FAILED && !op->of_record);
                        for (size_t i = 0; waits && i < op->n_requests; i++) {
                                const struct cd_request *w = cd_request_of(&op->requests[i]);
                                if (!w->is_shared || !w->domain_name)
                                        continue;
                                GROW(asks, n, cap);
                                asks[n++] = w->config.domain_id;
                        }
                }
        GROW(asks, n, cap);
        asks[n] = NULL;
        holdings_asks(cd->o.holdings, asks);
}

static void cd_driver_waited_for(void *u, unsigned what) {
        const struct cd *cd = u;
        note_waiting(cd);
        ask_for_shared(cd);
        if (cd->followed && !TAILQ_EMPTY(&cd->claims->failed))
                watch_domains(cd);
        facts_poll_fast(cd->o.facts, what & 1U << WAITS_FOR_FACTS);
        if (cd->o.host && !(what & 1U << WAITS_FOR_HOST))
                host_imex_poll_slow(cd->o.host);
}

static void cd_driver_follow(void *u, const struct checkpoint *table) {
        struct cd *cd = u;
        cd->followed = true;
        grants_follow(cd->grants);
        if (cd->o.holdings)
                holdings_follow(cd->o.holdings, table);
        follow_fabric(cd);
        daemon_claim_follow(cd);
        daemon_claim_report(cd);
        watch_domains(cd);
        report_standing(cd);
}

static void prepared(void *u, struct op *op) {
        cd_events_prepared(u, op);
        for (size_t i = 0; i < op->n_requests; i++) {
                if (cd_request_of(&op->requests[i])->is_own)
                        daemon_claim_written(u, op->uid, cd_request_of(&op->requests[i])->edits);
        }
}

const struct node_driver cd_driver = {
        .name = CD_DRIVER,
        .peer = GPU_DRIVER,
        .cdi_kind = CD_CDI_KIND_CLAIM,
        .codec = &cd_device_codec,
        .attach = cd_driver_attach,
        .free = cd_driver_release,
        .fetch = prepare_inputs_fetch,
        .release = release_op,
        .take = cd_requests_take,
        .check = cd_requests_check,
        .await_inputs = prepare_inputs_start,
        .steps = cd_steps,
        .waits = cd_driver_waits,
        .waited_for = cd_driver_waited_for,
        .investigate = prepare_inputs_investigate,
        .plan = cd_plan_device,
        .record = cd_plan_record,
        .comment = cd_plan_comment,
        .set_up = readiness_prepare_dir,
        .undo = readiness_remove_dir,
        .undo_failed = folders_undo_failed,
        .each_resource = folders_each,
        .unprepare = daemon_claim_unprepare,
        .prepared = prepared,
        .follow = cd_driver_follow,
        .health = cd_health_list,
        .rebuild = rebuild_devices,
        .rebuild_config = rebuild_config,
        .may_collect = folders_may_collect,
        .remove_unused = folders_remove_unused,
};
