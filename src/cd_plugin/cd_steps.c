/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_steps.h"

#include <inttypes.h>

#include "api/names.h"
#include "cd_plugin/daemon_claim.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/prepare_inputs.h"
#include "cd_plugin/may_prepare.h"
#include "cd_plugin/unprepared_claims.h"
#include "cd_plugin/standing.h"
#include "cd_plugin/cd_requests.h"
#include "node/prepare_verdict.h"

/* The message while the disk is slow. */
#define DISK_IS_SLOW "%s: the disk under '%s' has not stored %s in time: check the disk and its load"

/* The controller may have given the index of that daemon to another node. */
static enum verdict released_or_not(void *u, struct op *op, struct node_request *node_request) {
        const struct cd *cd = u;
        struct err e;
        bool released;
        if (!cd_request_of(node_request)->is_daemon || op_prepared_before(op))
                return VERDICT_GO;
        if (unprepared_claims_has(cd->o.plugin_dir, cd->o.boot_id, op->uid, &released, &e) < 0)
                return prepare_verdict_set(op, VERDICT_FAIL, "%s: %s", cd->o.node, e.msg);
        if (!released)
                return VERDICT_GO;
        /* Etcd was restored from a backup with the Pod of an earlier daemon. The controller replaces it when
         * it reads this. */
        const struct claim_consumer *consumer = op->claim.n_consumers ? op->claim.consumers : NULL;
        const char *pod = consumer ? consumer->name : NULL;
        if (unprepared_claims_add(cd->o.plugin_dir, cd->o.boot_id, op->uid, &e) == 0)
                daemon_claim_report(cd);
        own_pod_set(cd->o.own_pod, IMEX_ANNOTATION_REFUSED, consumer ? consumer->uid : NULL, 0);
        return prepare_verdict_set(
                op, VERDICT_REFUSE,
                "%s: ResourceClaim '%s/%s' (%s) was unprepared earlier in this boot of the node, and this "
                "was reported to the controller, which may have given the index of its IMEX daemon to "
                "another node: the controller replaces the daemon's Pod%s%s%s, and the next one gets a new "
                "claim; if that lasts, delete the Pod",
                cd->o.node, op->ns, op->name, op->uid, pod ? " '" : "", str_or(pod, ""), pod ? "'" : "");
}

static enum verdict cd_steps_holder(void *u, struct op *op, struct node_request *node_request) {
        const struct cd *cd = u;
        struct prepare_inputs *g = op->own;
        /* Any number of claims use the shared device. */
        const struct checkpoint_claim *other =
                cd_request_of(node_request)->is_shared ? NULL : prepare_verdict_holder(op, node_request);
        g->granting = false;
        if (!other)
                return VERDICT_GO;
        g->renewed = false;
        if (mode_assigns_channels(cd->o.mode))
                return prepare_verdict_set(
                        op, VERDICT_WAIT,
                        "%s: device '%s', a place for one pod, is still held by %s: wait for that "
                        "pod to end",
                        cd->o.node, node_request->result->device,
                        streq(other->ns, op->ns) ? arena_printf(op->arena, "claim '%s/%s'", other->ns,
                                                                str_or(other->name, "?"))
                                                 : "a claim of another namespace");
        if (cd_request_of(node_request)->is_own)
                return prepare_verdict_set(
                        op, VERDICT_WAIT,
                        "%s: another IMEX daemon still runs here (claim '%s/%s'): this one takes over when "
                        "the last pod that uses the other one has ended on this node",
                        cd->o.node, str_or(other->ns, "?"), str_or(other->name, "?"));
        /* The owner of the pod need not know names of another namespace; SIGUSR2 logs them. */
        if (!streq(other->ns, op->ns))
                return prepare_verdict_set(
                        op, VERDICT_WAIT,
                        "%s: device '%s' is still held by a claim of another namespace: a node has one "
                        "channel for one pod at a time, so wait for that pod to end, or choose another node",
                        cd->o.node, node_request->result->device);
        return prepare_verdict_set(
                op, VERDICT_WAIT,
                "%s: device '%s' is still held by claim '%s/%s' (%s): a node has one channel for "
                "one pod at a time, so wait for that pod to end, delete it, or choose another node",
                cd->o.node, node_request->result->device, other->ns, str_or(other->name, "?"), other->uid);
}

/* The name outlives the list. */
static void keep_name(struct op *op, struct cd_request *w, const struct lookup_domain *d) {
        w->domain_name = arena_strdup(op->arena, d->name);
        w->domain_ns = arena_strdup(op->arena, d->ns);
        w->gated = d->gated;
}

static enum verdict which_domain(void *u, struct op *op, struct node_request *node_request) {
        const struct cd *cd = u;
        const struct prepare_inputs *g = op->own;
        struct cd_request *w = cd_request_of(node_request);
        const struct lookup_domain *d = lookup_find(g->domains, w->config.domain_id);
        if (w->is_own)
                return VERDICT_GO;
        if (op_prepared_before(op) && !w->is_daemon)
                return VERDICT_GO; /* a granted channel stays although its domain is deleted */
        if (w->is_daemon) {
                if (d && !w->domain_name)
                        keep_name(op, w, d);
                return w->domain_name
                               ? VERDICT_GO
                               : prepare_verdict_set(
                                         op, VERDICT_REFUSE,
                                         "there is no ComputeDomain %s: this daemon is of a deleted one, "
                                         "and is deleted together with it; if it stays, delete its pod",
                                         w->config.domain_id);
        }
        if (!d && w->domain_name) /* an earlier list had it */
                return prepare_verdict_set(op, VERDICT_REFUSE, "ComputeDomain '%s/%s' has been deleted",
                                           w->domain_ns, w->domain_name);
        if (!d || !streq(d->ns, op->ns))
                return prepare_verdict_set(
                        op, VERDICT_REFUSE,
                        "there is no ComputeDomain %s in namespace '%s' of the claim; if another one of "
                        "the same name has been created since, recreate the pod",
                        w->config.domain_id, op->ns);
        if (!w->domain_name)
                keep_name(op, w, d);
        if (d->mode && !streq(d->mode, cd->o.mode->name))
                return prepare_verdict_set(
                        op, VERDICT_REFUSE,
                        "ComputeDomain '%s/%s' was formed with %s IMEX, but this installation is %s "
                        "(%s): delete and recreate it",
                        d->ns, d->name, d->mode, cd->o.mode->name, cd->o.mode->chosen_by);
        if (d->deleting || lookup_watch_deleting(g->watch, w->config.domain_id))
                return prepare_verdict_set(op, VERDICT_REFUSE, "ComputeDomain '%s/%s' is being deleted",
                                           d->ns, d->name);
        return VERDICT_GO;
}

static enum verdict which_node(void *u, struct op *op, struct node_request *node_request) {
        const struct cd *cd = u;
        const struct cd_request *w = cd_request_of(node_request);
        const struct facts *f = facts_get(cd->o.facts);
        if (!f->usable) {
                op->waits_for = WAITS_FOR_FACTS;
                return prepare_verdict_set(op, VERDICT_WAIT, "%s: %s", cd->o.node, f->message);
        }
        if (mode_needs_clique(cd->o.mode) && !w->is_daemon && !*f->fabric.clique_id)
                return prepare_verdict_set(
                        op, VERDICT_REFUSE,
                        "%s: %s requires an NVLink clique on this node; NVML reports none (%s)", cd->o.node,
                        mode_runs_daemons(cd->o.mode) ? "an assigned channel (imex.isolation=channel)"
                                                      : "host-managed IMEX",
                        f->fabric.reason);
        return VERDICT_GO;
}

/* A prepared claim keeps its channel, even if the table or the node's clique ID has changed. */
static enum verdict keep_channel(const struct cd *cd, struct op *op, struct node_request *node_request) {
        const struct checkpoint_claim *entry = checkpoint_find(&op->c->journal.table, op->uid);
        struct cd_request *w = cd_request_of(node_request);
        const char *clique = holdings_clique(cd->o.holdings, op->uid);
        for (size_t i = 0; i < entry->n_devices; i++) {
                if (streq(entry->devices[i].name, node_request->result->device))
                        w->channel = entry->devices[i].id;
        }
        w->clique = arena_strdup(op->arena, clique ? clique : fabric_watch_clique(cd->o.fabric));
        return VERDICT_GO;
}

/* False: the claim waits for the object. *ret NULL: it does not exist. */
static bool see_fabric(const struct cd *cd, struct op *op, const struct compute_domain_fabric **ret) {
        const struct prepare_inputs *g = op->own;
        const char *clique = facts_get(cd->o.facts)->fabric.clique_id;
        op->waits_for = WAITS_FOR_FABRIC;
        if (streq(clique, fabric_watch_clique(cd->o.fabric)) && fabric_ask_see(g->fabric, ret))
                return true;
        prepare_verdict_set(op, VERDICT_WAIT, "%s: ComputeDomainFabric '%s' has not been read yet",
                            cd->o.node, clique);
        return false;
}

static struct prepare_question question(const struct cd *cd, const struct cd_request *w,
                                        const struct compute_domain_fabric *fabric) {
        const struct facts *f = facts_get(cd->o.facts);
        return (struct prepare_question){ .node = cd->o.node,
                                          .boot_id = cd->o.boot_id,
                                          .clique_id = f->fabric.clique_id,
                                          .domain_ns = w->domain_ns,
                                          .domain_name = w->domain_name,
                                          .domain_uid = w->config.domain_id,
                                          .admin_access = w->admin_access,
                                          .channel_count = f->channel_count,
                                          .fabric = fabric };
}

/* A claim on this node has this channel for another ComputeDomain. The object may be older than that claim if
 * etcd was restored. If the partition of the claim's channel is unknown, it is that of the node. */
static bool is_used_by_another(const struct cd *cd, const struct op *op, const struct cd_request *w) {
        const char *clique = facts_get(cd->o.facts)->fabric.clique_id;
        CHECKPOINT_EACH_DEVICE (&op->c->journal.table, claim, device) {
                if (device->id == w->channel && *str_or(device->domain, "") &&
                    !streq(device->domain, w->config.domain_id) &&
                    streq(str_or(holdings_clique(cd->o.holdings, claim->uid), clique), clique))
                        return true;
        }
        return false;
}

static enum verdict which_channel(void *u, struct op *op, struct node_request *node_request) {
        const struct cd *cd = u;
        struct cd_request *w = cd_request_of(node_request);
        const struct compute_domain_fabric *fabric = NULL;
        const struct facts *f = facts_get(cd->o.facts);
        if (w->is_daemon || !mode_assigns_channels(cd->o.mode))
                return VERDICT_GO;
        if (op_prepared_before(op))
                return keep_channel(cd, op, node_request);
        if (!see_fabric(cd, op, &fabric))
                return VERDICT_WAIT;
        const struct prepare_question q = question(cd, w, fabric);
        if (!may_prepare_channel(&q, &w->channel, op->msg, sizeof op->msg))
                return VERDICT_WAIT;
        if (is_used_by_another(cd, op, w)) {
                op->waits_for = WAITS_FOR_CLAIM;
                return prepare_verdict_set(op, VERDICT_WAIT,
                                           "%s: channel %" PRId64 " is still held by a claim of another "
                                           "ComputeDomain, for example because etcd was restored from a "
                                           "backup: wait for that pod to end, or delete it",
                                           cd->o.node, w->channel);
        }
        op->waits_for = WAITS_FOR_NOTHING;
        w->clique = arena_strdup(op->arena, f->fabric.clique_id);
        return VERDICT_GO;
}

/* True: the daemon on this node serves the IMEX domain. Otherwise op->msg has the reason, and op->waits_for
 * the event that may change it. */
static bool daemon_serves(const struct cd *cd, struct op *op, const struct cd_request *w,
                          const char *domain) {
        const struct compute_domain_fabric *fabric = NULL;
        struct prepare_daemon d;
        readiness_get(cd->readiness, domain, &d);
        bool own = d.runner == PREPARE_RUNNER_OWN, go = d.runner == PREPARE_RUNNER_GO,
             other = go && !streq(d.go_domain, w->config.domain_id);
        op->waits_for = other ? WAITS_FOR_CLAIM : WAITS_FOR_NOTHING;
        if (own && !see_fabric(cd, op, &fabric))
                return false;
        struct prepare_question q = question(cd, w, fabric);
        q.imex_uid = domain;
        q.is_standing = mode_is_standing(cd->o.mode);
        if (go && !other && !prepare_inputs_get_clique(op, &d, &q))
                return false;
        bool serves = may_prepare(&q, &d, op->msg, sizeof op->msg);
        if (serves)
                op->waits_for = WAITS_FOR_NOTHING;
        return serves;
}

/* True: the ComputeDomain has no start gate, or it is open. Otherwise op->msg has the reason. */
static bool gate_is_open(const struct cd *cd, struct op *op, const struct cd_request *w) {
        const struct gated_domain *d;
        if (!w->gated)
                return true;
        const struct prepare_question q = question(cd, w, NULL);
        op->waits_for = WAITS_FOR_NOTHING;
        if (prepare_inputs_get_gate(op, w, &d))
                return may_prepare_start(&q, d, op->msg, sizeof op->msg);
        prepare_verdict_set(op, VERDICT_WAIT, "%s: ComputeDomain '%s/%s' has not been read yet", cd->o.node,
                            w->domain_ns, w->domain_name);
        return false;
}

/* The daemon must see that the claim is about to use it before the claim is judged. Otherwise it could stop
 * IMEX between the judgement and the CDI file. So if the daemon looks ready, the claim gets the grant
 * `granting`, and is judged again when that is on the disk. */
static enum verdict imex_ready_or_not(const struct cd *cd, struct op *op, const struct cd_request *w) {
        struct prepare_inputs *g = op->own;
        char standing[37];
        const char *domain = w->config.domain_id, *why;
        if (mode_is_standing(cd->o.mode) && !standing_uid(cd, standing)) {
                op->waits_for = WAITS_FOR_FACTS;
                return prepare_verdict_set(op, VERDICT_WAIT, "%s: %s", cd->o.node,
                                           facts_get(cd->o.facts)->message);
        }
        if (mode_is_standing(cd->o.mode))
                domain = standing;
        if (op->kept) /* it gets a grant when the kubelet retries */
                return daemon_serves(cd, op, w, domain) && gate_is_open(cd, op, w) ? VERDICT_GO
                                                                                   : VERDICT_WAIT;
        enum grant_state state = grants_get(cd->grants, domain, op->uid, &why);
        if (state == GRANT_FAILED && g->noted)
                return prepare_verdict_set(
                        op, VERDICT_FAIL,
                        "%s: cannot write the grant of the claim into the folder of its IMEX "
                        "domain, under '%s': %s",
                        cd->o.node, cd->o.plugin_dir, why);
        g->granting = daemon_serves(cd, op, w, domain) && gate_is_open(cd, op, w);
        g->noted = true;
        if (g->granting && state == GRANT_GRANTING)
                return VERDICT_GO;
        if (g->granting)
                grants_put(cd->grants, domain, op->uid, IMEX_GRANT_GRANTING);
        else if (state == GRANT_ABSENT || state == GRANT_FAILED)
                grants_put(cd->grants, domain, op->uid, IMEX_GRANT_WAITING);
        /* The grant goes back to `waiting` when the operation waits (cd_driver). */
        if (!g->granting)
                return VERDICT_WAIT;
        return prepare_verdict_set(op, VERDICT_WAIT, DISK_IS_SLOW, cd->o.node, cd->o.plugin_dir,
                                   "the grant of this claim");
}

/* When the previous daemon ended, it may have removed the grants of the claims that use IMEX here. */
static enum verdict successor_or_not(const struct cd *cd, struct op *op) {
        struct prepare_inputs *g = op->own;
        const char *why;
        if (op->kept)
                return VERDICT_GO;
        if (!g->renewed)
                grants_renew(cd->grants);
        g->renewed = true;
        enum grant_state state = grants_renewed(cd->grants, &why);
        if (state == GRANT_GRANTING)
                return VERDICT_GO;
        if (state == GRANT_FAILED)
                return prepare_verdict_set(
                        op, VERDICT_FAIL,
                        "%s: cannot write the grants of the claims that use IMEX here for its new "
                        "daemon, under '%s': %s",
                        cd->o.node, cd->o.plugin_dir, why);
        return prepare_verdict_set(op, VERDICT_WAIT, DISK_IS_SLOW, cd->o.node, cd->o.plugin_dir,
                                   "the grants of the claims that use IMEX here");
}

static enum verdict ready_or_not(void *u, struct op *op, struct node_request *node_request) {
        const struct cd *cd = u;
        const struct cd_request *w = cd_request_of(node_request);
        if (op_prepared_before(op))
                return VERDICT_GO;
        if (w->is_daemon && !w->is_own && grants_clearing(cd->grants, w->config.domain_id)) {
                op->waits_for = WAITS_FOR_NOTHING;
                return prepare_verdict_set(
                        op, VERDICT_WAIT,
                        "%s: the old content of the domain's folder, under '%s', is still being removed: "
                        "check the disk and its load",
                        cd->o.node, cd->o.plugin_dir);
        }
        if (w->is_daemon)
                return w->is_own ? successor_or_not(cd, op) : VERDICT_GO;
        bool needs_imex = facts_get(cd->o.facts)->fabric.kind != GPU_FABRIC_NONE;
        if (needs_imex && mode_runs_daemons(cd->o.mode))
                return imex_ready_or_not(cd, op, w);
        if (!needs_imex || !cd->o.wait_for_host)
                return gate_is_open(cd, op, w) ? VERDICT_GO : VERDICT_WAIT;
        /* An answer from before the claim's arrival may be from an IMEX that has ended since. */
        bool ready = host_imex_ready(cd->o.host, op->began_ns, op->msg, sizeof op->msg);
        op->waits_for = ready ? WAITS_FOR_NOTHING : WAITS_FOR_HOST;
        return ready && gate_is_open(cd, op, w) ? VERDICT_GO : VERDICT_WAIT;
}

node_step_fn *const cd_steps[] = { released_or_not, cd_steps_holder, which_domain, which_node,
                                   which_channel,   ready_or_not,    NULL };
