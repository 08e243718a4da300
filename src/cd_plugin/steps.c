/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/steps.h"

#include "api/names.h"
#include "cd_plugin/devices.h"
#include "cd_plugin/gather.h"
#include "cd_plugin/own_channel.h"
#include "cd_plugin/own_seat.h"
#include "cd_plugin/standing.h"
#include "cd_plugin/wants.h"
#include "node/judge.h"

static enum verdict who_holds(void *u, struct op *op, struct node_want *node_want) {
        const struct cd *cd = u;
        const struct checkpoint_claim *other = judge_holder(op, node_want);
        if (!other)
                return VERDICT_GO;
        if (mode_assigns_channels(cd->o.mode))
                return judge_say(op, VERDICT_WAIT,
                                 "%s: device '%s', a place for one pod, is still held by %s: wait for that "
                                 "pod to end",
                                 cd->o.node, node_want->result->device,
                                 streq(other->ns, op->ns) ? arena_printf(op->arena, "claim '%s/%s'",
                                                                         other->ns, str_or(other->name, "?"))
                                                          : "a claim of another namespace");
        if (want_of(node_want)->is_agent)
                return judge_say(op, VERDICT_WAIT,
                                 "%s: an IMEX daemon that is not this agent still runs here (claim '%s/%s'): "
                                 "this agent takes over when the last pod of that daemon's ComputeDomain has "
                                 "ended on this node",
                                 cd->o.node, other->ns, str_or(other->name, "?"));
        /* The names of another namespace are not the pod's owner's to know; SIGUSR2 logs them. */
        if (!streq(other->ns, op->ns))
                return judge_say(
                        op, VERDICT_WAIT,
                        "%s: device '%s' is still held by a claim of another namespace: a node has one "
                        "channel for one pod at a time, so wait for that pod to end, or choose another node",
                        cd->o.node, node_want->result->device);
        return judge_say(op, VERDICT_WAIT,
                         "%s: device '%s' is still held by claim '%s/%s' (%s): a node has one channel for "
                         "one pod at a time, so wait for that pod to end, delete it, or choose another node",
                         cd->o.node, node_want->result->device, other->ns, str_or(other->name, "?"),
                         other->uid);
}

/* Lists come and go. */
static void keep_name(struct op *op, struct want *w, const struct lookup_domain *d) {
        w->domain_name = arena_strdup(op->arena, d->name);
        w->domain_ns = arena_strdup(op->arena, d->ns);
}

static enum verdict which_domain(void *u, struct op *op, struct node_want *node_want) {
        const struct cd *cd = u;
        const struct gathered *g = op->own;
        struct want *w = want_of(node_want);
        const struct lookup_domain *d = lookup_find(g->domains, w->config.domain_id);
        if (w->is_agent)
                return VERDICT_GO;
        if (op_prepared_before(op) && !w->is_daemon)
                return VERDICT_GO; /* a channel that was granted is not taken back because its domain goes */
        if (w->is_daemon) {
                if (d && (!w->domain_name || !w->domain_ns))
                        keep_name(op, w, d);
                return w->domain_name && w->domain_ns
                               ? VERDICT_GO
                               : judge_say(op, VERDICT_REFUSE,
                                           "there is no ComputeDomain %s: this daemon is of one that has "
                                           "been deleted, and goes with it; if it stays, delete its pod",
                                           w->config.domain_id);
        }
        if (!d && w->domain_name) /* lists have shown it, and do not any more */
                return judge_say(op, VERDICT_REFUSE, "ComputeDomain '%s/%s' has been deleted", w->domain_ns,
                                 w->domain_name);
        if (!d || !streq(d->ns, op->ns))
                return judge_say(op, VERDICT_REFUSE,
                                 "there is no ComputeDomain %s in namespace '%s' of the claim; if one of the "
                                 "same name has been made since, make the pod anew",
                                 w->config.domain_id, op->ns);
        if (!w->domain_name)
                keep_name(op, w, d);
        if (d->mode && !streq(w->mode, d->mode))
                w->mode = arena_strdup(op->arena, d->mode);
        if (d->mode && !mode_serves(cd->o.mode, d->mode))
                return judge_say(op, VERDICT_REFUSE,
                                 "ComputeDomain '%s/%s' was formed with %s IMEX, but this installation is %s "
                                 "(%s): delete and recreate it",
                                 d->ns, d->name, d->mode, cd->o.mode->name, cd->o.mode->chosen_by);
        if (d->deleting || lookup_watch_deleting(g->watch, w->config.domain_id))
                return judge_say(op, VERDICT_REFUSE, "ComputeDomain '%s/%s' is being deleted", d->ns,
                                 d->name);
        return VERDICT_GO;
}

static enum verdict which_node(void *u, struct op *op, struct node_want *node_want) {
        const struct cd *cd = u;
        const struct want *w = want_of(node_want);
        const struct facts *f = facts_get(cd->o.facts);
        if (!f->usable) {
                op->waits_for = WAITS_FOR_FACTS;
                return judge_say(op, VERDICT_WAIT, "%s: %s", cd->o.node, f->message);
        }
        if (mode_needs_clique(cd->o.mode) && !w->is_daemon && !*f->fabric.clique_id)
                return judge_say(op, VERDICT_REFUSE,
                                 "%s: %s requires an NVLink clique on this node; NVML reports "
                                 "none (%s)",
                                 cd->o.node,
                                 mode_runs_daemons(cd->o.mode)
                                         ? "a channel of the ComputeDomain's own (imex.isolation=channel)"
                                         : "host-managed IMEX",
                                 f->fabric.reason);
        return VERDICT_GO;
}

/* Before readiness is judged, whoever runs IMEX here must be able to see that its end would be noticed. */
static enum verdict noted_or_not(struct op *op, const struct cd *cd, const char *domain) {
        const char *why;
        enum grant_state state = grants_get(cd->grants, domain, op->uid, &why);
        if (state == GRANT_THERE)
                return VERDICT_GO;
        if (state == GRANT_FAILED)
                return judge_say(
                        op, VERDICT_FAIL,
                        "%s: the claim cannot be noted in the folder of its IMEX domain, under '%s': %s",
                        cd->o.node, cd->o.plugin_dir, why);
        /* Which domain the node is in was not known when the claim came. */
        if (state == GRANT_ABSENT)
                grants_put(cd->grants, domain, op->uid);
        return judge_say(op, VERDICT_WAIT, "%s: the claim is being noted under '%s'", cd->o.node,
                         cd->o.plugin_dir);
}

/* A claim that is prepared keeps what it has, whatever has become of the table and of this node's clique. */
static enum verdict keep_channel(const struct cd *cd, struct op *op, struct node_want *node_want) {
        const struct checkpoint_claim *entry = checkpoint_find(&op->c->journal.table, op->uid);
        struct want *w = want_of(node_want);
        const char *clique = holdings_clique(cd->o.holdings, op->uid);
        for (size_t i = 0; i < entry->n_devices; i++) {
                if (streq(entry->devices[i].name, node_want->result->device))
                        w->channel = entry->devices[i].id;
        }
        w->clique = arena_strdup(op->arena, clique ? clique : fabric_watch_clique(cd->o.fabric));
        return VERDICT_GO;
}

/* False: it waits for that. *ret NULL: the fabric has no object. */
static bool see_fabric(const struct cd *cd, struct op *op, const struct compute_domain_fabric **ret) {
        const struct gathered *g = op->own;
        const char *clique = facts_get(cd->o.facts)->fabric.clique_id;
        op->waits_for = WAITS_FOR_FABRIC;
        if (streq(clique, fabric_watch_clique(cd->o.fabric)) && fabric_ask_see(g->fabric, ret))
                return true;
        judge_say(op, VERDICT_WAIT, "%s: ComputeDomainFabric '%s' has not been read yet", cd->o.node, clique);
        return false;
}

static enum verdict which_channel(void *u, struct op *op, struct node_want *node_want) {
        const struct cd *cd = u;
        struct want *w = want_of(node_want);
        const struct compute_domain_fabric *fabric = NULL;
        const struct facts *f = facts_get(cd->o.facts);
        if (w->is_daemon || !mode_assigns_channels(cd->o.mode))
                return VERDICT_GO;
        if (op_prepared_before(op))
                return keep_channel(cd, op, node_want);
        if (!see_fabric(cd, op, &fabric))
                return VERDICT_WAIT;
        const struct own_channel_question q = {
                .node = cd->o.node,
                .clique_id = f->fabric.clique_id,
                .domain_ns = w->domain_ns,
                .domain_name = w->domain_name,
                .domain_uid = w->config.domain_id,
                .channel_count = f->channel_count,
        };
        if (!own_channel(fabric, &q, &w->channel, op->msg, sizeof op->msg))
                return VERDICT_WAIT;
        op->waits_for = WAITS_FOR_NOTHING;
        w->clique = arena_strdup(op->arena, f->fabric.clique_id);
        return VERDICT_GO;
}

/* Of an agent, which runs IMEX for one domain after the other, the fabric's object must still want that it is
 * in this one. */
static enum verdict agent_ready_or_not(const struct cd *cd, struct op *op, const struct want *w) {
        const struct compute_domain_fabric *fabric = NULL;
        const struct own_seat_question q = {
                .node = cd->o.node,
                .clique_id = facts_get(cd->o.facts)->fabric.clique_id,
                .domain_ns = w->domain_ns,
                .domain_name = w->domain_name,
                .domain_uid = w->config.domain_id,
        };
        struct agent_seat ready = { 0 };
        bool in_the_way;
        if (streq(w->mode, MODE_DRIVER_MANAGED)) {
                op->waits_for = WAITS_FOR_CLAIM;
                return judge_say(
                        op, VERDICT_WAIT,
                        "%s: ComputeDomain '%s/%s' was formed with daemon pods, and its daemon starts "
                        "here when the IMEX agent of this node has made way, which the controller "
                        "asks of it",
                        cd->o.node, w->domain_ns, w->domain_name);
        }
        if (!see_fabric(cd, op, &fabric))
                return VERDICT_WAIT;
        const struct fabric_seat *seat = own_seat(fabric, &q, op->msg, sizeof op->msg);
        if (!seat)
                return VERDICT_WAIT;
        op->waits_for = WAITS_FOR_NOTHING;
        return readiness_check(cd->readiness, &op->c->journal.table, w->config.domain_id, &in_the_way, &ready,
                               op->msg, sizeof op->msg) &&
                               own_seat_is(seat, &ready, &q, op->msg, sizeof op->msg)
                       ? VERDICT_GO
                       : VERDICT_WAIT;
}

/* For a ComputeDomain whose IMEX agents run. */
static enum verdict no_agent(const struct cd *cd, struct op *op, bool daemon_here) {
        return judge_say(op, VERDICT_WAIT,
                         daemon_here ? "%s: the IMEX daemon of another ComputeDomain, which was formed with "
                                       "daemon pods, is still on this node: an IMEX agent comes when that "
                                       "domain's last pod here has ended; wait, or choose another node"
                                     : "%s: no IMEX agent runs on this node yet; if that lasts, look whether "
                                       "the Node has the label " CD_LABEL_AGENT
                                       "=true, which the controller sets, and what DaemonSet " CD_AGENT_OBJECT
                                       " in the driver's namespace says of its pod here",
                         cd->o.node);
}

/* Of the domain that agents run in the node's fabric for all ComputeDomains. */
static enum verdict stands_or_not(const struct cd *cd, struct op *op) {
        const struct compute_domain_fabric *fabric = NULL;
        const struct facts *f = facts_get(cd->o.facts);
        char domain[37];
        if (!standing_uid(cd, domain)) {
                op->waits_for = WAITS_FOR_FACTS;
                return judge_say(op, VERDICT_WAIT, "%s: %s", cd->o.node, f->message);
        }
        enum verdict noted = noted_or_not(op, cd, domain);
        if (noted != VERDICT_GO)
                return noted;
        if (!device_agent_claim(&op->c->journal.table))
                return no_agent(cd, op, device_daemon_claim(&op->c->journal.table));
        if (!see_fabric(cd, op, &fabric))
                return VERDICT_WAIT;
        if (!standing_serves(cd, fabric, op->msg, sizeof op->msg))
                return VERDICT_WAIT;
        op->waits_for = WAITS_FOR_NOTHING;
        return VERDICT_GO;
}

static enum verdict ready_or_not(void *u, struct op *op, struct node_want *node_want) {
        const struct cd *cd = u;
        const struct want *w = want_of(node_want);
        bool ready = true, in_the_way = false;
        struct agent_seat none;
        if (w->is_daemon && !op_prepared_before(op) && grants_clearing(cd->grants, w->config.domain_id)) {
                op->waits_for = WAITS_FOR_NOTHING;
                return judge_say(op, VERDICT_WAIT,
                                 "%s: the folder of the domain, under '%s', is being cleared of what was "
                                 "there before: look at the disk and its load",
                                 cd->o.node, cd->o.plugin_dir);
        }
        if (op_prepared_before(op) || w->is_daemon || facts_get(cd->o.facts)->fabric.kind == FABRIC_NONE)
                return VERDICT_GO;
        if (mode_is_standing(cd->o.mode))
                return stands_or_not(cd, op);
        if (mode_runs_daemons(cd->o.mode)) {
                enum verdict noted = noted_or_not(op, cd, w->config.domain_id);
                if (noted != VERDICT_GO)
                        return noted;
                if (device_agent_claim(&op->c->journal.table))
                        return agent_ready_or_not(cd, op, w);
                ready = readiness_check(cd->readiness, &op->c->journal.table, w->config.domain_id,
                                        &in_the_way, &none, op->msg, sizeof op->msg);
                op->waits_for = in_the_way ? WAITS_FOR_CLAIM : WAITS_FOR_NOTHING;
                if (!ready && streq(w->mode, MODE_DRIVER_AGENTS))
                        return no_agent(cd, op, in_the_way);
        } else if (mode_waits_for_host(cd->o.mode)) {
                /* An answer from before the claim came may be of an IMEX that has ended since. */
                ready = host_imex_ready(cd->o.host, op->began_ns, op->msg, sizeof op->msg);
                op->waits_for = ready ? WAITS_FOR_NOTHING : WAITS_FOR_HOST;
        }
        return ready ? VERDICT_GO : VERDICT_WAIT;
}

node_step_fn *const cd_steps[] = { who_holds, which_domain, which_node, which_channel, ready_or_not, NULL };
