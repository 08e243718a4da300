/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_driver.h"

#include "api/names.h"
#include "cd_plugin/daemon_claim.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/folders.h"
#include "cd_plugin/prepare_inputs.h"
#include "cd_plugin/cd_events.h"
#include "cd_plugin/cd_plan.h"
#include "cd_plugin/rebuild.h"
#include "cd_plugin/standing.h"
#include "cd_plugin/cd_steps.h"
#include "cd_plugin/cd_requests.h"
#include "node/claims.h"

struct cd *cd_driver_new(const struct cd_options *o) {
        struct cd *cd = xnew(struct cd);
        cd->o = *o;
        cd->o.more_ns = str_or(o->more_ns, "");
        cd_events_init(cd);
        daemon_claim_init(cd);
        return cd;
}

static void report_standing(const struct cd *cd) {
        if (cd->o.standing_changed)
                cd->o.standing_changed(cd->o.u);
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

static void watch_domains(const struct cd *cd) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        char standing[37];
        const char *own = standing_uid(cd, standing) ? standing : NULL;
        readiness_follow(cd->readiness,
                         mode_runs_daemons(cd->o.mode) ? grants_domains(cd->grants, own, a) : NULL);
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
                                                                   .changed = cd_driver_on_changed,
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
}

static void cd_driver_waited_for(void *u, unsigned what) {
        const struct cd *cd = u;
        note_waiting(cd);
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
        .rebuild = rebuild_devices,
        .may_collect = folders_may_collect,
        .remove_unused = folders_remove_unused,
};
