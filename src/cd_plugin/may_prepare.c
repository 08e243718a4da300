/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/may_prepare.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/names.h"

struct answer {
        const struct prepare_question *q;
        char *msg;
        size_t n;
};

__attribute__((format(printf, 2, 3))) static bool no(const struct answer *a, const char *fmt, ...) {
        int at = a->q->node ? snprintf(a->msg, a->n, "%s: ", a->q->node) : 0;
        va_list ap;
        va_start(ap, fmt);
        if (at >= 0 && (size_t)at < a->n)
                vsnprintf(a->msg + at, a->n - (size_t)at, fmt, ap);
        va_end(ap);
        return false;
}

/* Why the controller assigns nothing, in its words, by the first of two conditions that is True. NULL: the
 * fabric object gives no reason. */
static const char *standstill(const struct compute_domain_fabric *f, const char *type, const char *other) {
        const char *const types[] = { type, other };
        const struct condition *c =
                f ? condition_first_true(f->conditions, f->n_conditions, types, ARRAY_LEN(types)) : NULL;
        return c ? str_or(c->message, c->type) : NULL;
}

static const char *rack_of(const struct prepare_question *q) {
        return q->fabric ? str_or(q->fabric->rack, q->clique_id) : q->clique_id;
}

/* Waiting is right: the node is in the ComputeDomain while another claim brings it there. */
static bool brings_no_node(const struct answer *a) {
        return no(a,
                  "this claim has admin access, which brings no node into ComputeDomain '%s/%s': it gets a "
                  "channel only while another claim does; remove adminAccess from the claim",
                  a->q->domain_ns, a->q->domain_name);
}

/* ---- the channel ---- */

bool may_prepare_channel(const struct prepare_question *q, int64_t *ret, char *msg, size_t n) {
        const struct answer a = { q, msg, n };
        const struct fabric_channel *c = q->fabric ? fabric_channel_of(q->fabric, q->domain_uid) : NULL;
        const char *why = standstill(q->fabric, FABRIC_CHANNELS_INCOMPLETE, FABRIC_CHANNELS_EXHAUSTED);
        if (!c && q->admin_access)
                return brings_no_node(&a);
        if (!c)
                return no(&a, "no channel has been assigned to ComputeDomain '%s/%s' on %s yet%s%s",
                          q->domain_ns, q->domain_name, rack_of(q), why ? ": " : "",
                          why ? why
                              : "; if that lasts, check that a compute-domain-controller leads, and read its "
                                "log");
        if (c->releasing)
                return no(
                        &a,
                        "the channel of ComputeDomain '%s/%s' on %s is being reclaimed because no claim used "
                        "it; it is kept as soon as the controller has seen this claim",
                        q->domain_ns, q->domain_name, rack_of(q));
        if (c->id < 1 || c->id >= FABRIC_CHANNELS_MAX || (uint64_t)c->id >= q->channel_count)
                return no(&a,
                          "ComputeDomain '%s/%s' has channel %" PRId64
                          " on %s, which this node's driver does not have: it has %u, numbered from 0 "
                          "(NVreg_ImexChannelCount must be the same on all nodes of a partition)",
                          q->domain_ns, q->domain_name, c->id, rack_of(q), q->channel_count);
        *ret = c->id;
        return true;
}

/* ---- the daemon ---- */

static bool no_state(const struct answer *a, const struct prepare_daemon *d) {
        if (d->unread.kind != ERR_NOT_FOUND)
                return no(a, "the IMEX daemon's state cannot be read: %s", d->unread.msg);
        return no(
                a,
                "the IMEX daemon of this node has not joined this IMEX domain yet; if it is in another one, "
                "it leaves that one first");
}

/* If the daemon's file is valid, it has the best reason for not being READY. */
static bool may_prepare_is_ready(const struct answer *a, const struct prepare_daemon *d,
                                 struct assignment_id *ret_assignment) {
        struct imex_state s = d->state;
        bool ready = s.ready;
        s.ready = true;
        const char *why = imex_state_refusal(&s, d->held, a->q->boot_id, d->claim_uid);
        if (!why && (!assignment_id_parse(s.assignment, ret_assignment) ||
                     !streq(ret_assignment->domain_uid, a->q->imex_uid)))
                why = "the IMEX daemon of this node is in another IMEX domain";
        if (why)
                return no(a, "%s", why);
        return ready ||
               no(a, "IMEX daemon is %s%s%s", str_or(s.status, "not ready"), *s.reason ? ": " : "", s.reason);
}

bool may_prepare_daemon(const struct prepare_question *q, const struct prepare_daemon *d,
                        struct assignment_id *ret_assignment, char *msg, size_t n) {
        const struct answer a = { q, msg, n };
        *ret_assignment = (struct assignment_id){ 0 };
        if (d->runner != PREPARE_RUNNER_OWN)
                return no(
                        &a,
                        "no IMEX daemon runs on this node yet; if that lasts, check that the Node has the "
                        "label " CD_LABEL_DAEMON
                        "=true, which the controller sets, and look at the pod of DaemonSet " CD_DAEMON_OBJECT
                        " on this node, in the driver's namespace");
        if (d->unread.kind != ERR_NONE)
                return no_state(&a, d);
        return may_prepare_is_ready(&a, d, ret_assignment);
}

bool may_prepare_terminating(const struct prepare_question *q, const struct prepare_daemon *d) {
        return d->runner == PREPARE_RUNNER_OWN && d->unread.kind == ERR_NONE && d->state.terminating &&
               streq(d->state.boot_id, q->boot_id) && streq(d->state.claim_uid, d->claim_uid);
}

/* ---- the assignment ---- */

/* The owner of the IMEX domain, for people. */
static const char *owner(const struct prepare_question *q, char *text, size_t n) {
        if (q->is_standing)
                return "its NVLink partition";
        snprintf(text, n, "ComputeDomain '%s/%s'", q->domain_ns, q->domain_name);
        return text;
}

static bool not_assigned(const struct answer *a, const char *owner_name) {
        const struct prepare_question *q = a->q;
        const char *why = standstill(q->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE,
                                     q->is_standing ? FABRIC_DOMAIN_FULL : FABRIC_DOMAINS_EXHAUSTED);
        char otherwise[400];
        if (!q->is_standing && q->admin_access)
                return brings_no_node(a);
        if (q->is_standing)
                snprintf(otherwise, sizeof otherwise,
                         "look at the conditions of ComputeDomainFabric %s, and check whether the node is "
                         "cordoned",
                         q->clique_id);
        else
                snprintf(otherwise, sizeof otherwise,
                         "look at the conditions of the ComputeDomain (one that the Go driver formed accepts "
                         "new nodes after its last pod has ended), check that a compute-domain-controller "
                         "leads, and read its log");
        return no(a, "this node has no assignment in the IMEX domain of %s on %s yet%s%s", owner_name,
                  rack_of(q), why ? ": " : "; if that lasts, ", why ? why : otherwise);
}

/* Why an assignment serves no pods in its state. */
static bool is_active(const struct answer *a, const struct fabric_assignment *x, const char *owner_name) {
        if (fabric_is_reserved(x))
                return no(a,
                          "the IMEX daemon of this node has been replaced; the node's index in the IMEX "
                          "domain of %s is reserved until the new daemon reports",
                          owner_name);
        if (fabric_is_ending(x))
                return no(a, "%s is being deleted, and this node leaves its IMEX domain", owner_name);
        if (fabric_is_leaving(x))
                return no(a,
                          "this node is leaving the IMEX domain of %s, because %s; it stays, or joins again, "
                          "as soon as the controller has seen this claim",
                          owner_name,
                          a->q->is_standing ? "it is cordoned, and no claim used it"
                                            : "no claim used it here");
        return fabric_is_active(x) || no(a,
                                         "the assignment of this node in the IMEX domain of %s has the state "
                                         "'%.40s', which this version of the driver does not know",
                                         owner_name, x->state);
}

/* The controller may still know only the daemon of an earlier claim or an earlier boot. */
static bool may_prepare_is_for(const struct answer *a, const struct fabric_assignment *x,
                               const struct prepare_daemon *d, const char *owner_name) {
        return (streq(x->claim, d->claim_uid) && streq(x->boot_id, a->q->boot_id)) ||
               no(a,
                  "the assignment of this node in the IMEX domain of %s is for an earlier IMEX daemon of "
                  "this node; the present daemon gets its own after its report",
                  owner_name);
}

static bool may_prepare_own(const struct answer *a, const struct prepare_daemon *d) {
        const struct prepare_question *q = a->q;
        const struct fabric_domain *domain = q->fabric ? fabric_domain_of(q->fabric, q->imex_uid) : NULL;
        const struct fabric_assignment *x = domain ? fabric_assignment_of(domain, q->node) : NULL;
        struct assignment_id ready;
        char text[400];
        const char *owner_name = owner(q, text, sizeof text);
        if (q->is_standing && may_prepare_terminating(q, d))
                return no(a,
                          "the IMEX daemon of this node is terminating, because its Pod is being deleted: it "
                          "serves the pods that have channels here, and ends after the last of them. This "
                          "pod gets its channel when the next daemon of the node is READY");
        if (!x)
                return not_assigned(a, owner_name);
        if (!is_active(a, x, owner_name) || !may_prepare_is_for(a, x, d, owner_name) ||
            !may_prepare_daemon(q, d, &ready, a->msg, a->n))
                return false;
        return (streq(ready.clique_id, q->clique_id) && ready.index == x->index && ready.epoch == x->epoch) ||
               no(a,
                  "the IMEX daemon of this node still has an earlier assignment to the IMEX domain of %s "
                  "(epoch %" PRId64 ", now %" PRId64
                  "): it takes the new one when no pod uses the earlier one",
                  owner_name, ready.epoch, x->epoch);
}

/* ---- a domain of the Go driver ---- */

/* NULL: the clique has no entry for this node. */
static const struct domain_node *entry_in(const struct clique *c, const char *node) {
        for (size_t i = 0; c && i < c->n_nodes; i++)
                if (streq(c->nodes[i].node, node))
                        return &c->nodes[i];
        return NULL;
}

/* Why it does not serve yet; NULL: it does. The state in an entry of an earlier boot does not count. */
static const char *go_lacks(const struct domain_node *entry, const char *address) {
        if (!entry)
                return "has not joined the ComputeDomainClique of this node";
        if (!*address)
                return "has not started yet";
        if (!streq(entry->ip, address))
                return "has not written its address into the ComputeDomainClique of this node yet";
        return domain_status_decode(entry->status) == DOMAIN_READY ? NULL : "is not ready";
}

static bool may_prepare_go(const struct answer *a, const struct prepare_daemon *d) {
        const struct prepare_question *q = a->q;
        /* That daemon's claim is named after its domain, which this claim's owner need not know. */
        if (q->is_standing || !streq(d->go_domain, q->domain_uid))
                return no(a,
                          "the IMEX daemon of another ComputeDomain, which the Go driver formed, is still on "
                          "this node: it leaves after the last pod of that ComputeDomain here has ended; "
                          "wait, or choose another node");
        if (q->go_unlabelled)
                return no(a,
                          "the IMEX daemon that the Go driver runs here for ComputeDomain '%s/%s' ends, "
                          "because the last pod that used it here has ended: this node can join again after "
                          "the other pods of the ComputeDomain have ended",
                          q->domain_ns, q->domain_name);
        const char *lacks = go_lacks(entry_in(q->clique, q->node), d->go_address);
        return !lacks ||
               no(a,
                  "the IMEX daemon that the Go driver runs here for ComputeDomain '%s/%s' %s; if that lasts, "
                  "look at its Pod, in namespace '%s'",
                  q->domain_ns, q->domain_name, lacks, d->go_ns);
}

bool may_prepare(const struct prepare_question *q, const struct prepare_daemon *d, char *msg, size_t n) {
        const struct answer a = { q, msg, n };
        struct assignment_id none;
        switch (d->runner) {
        case PREPARE_RUNNER_NONE:
                break;
        case PREPARE_RUNNER_OWN:
                return may_prepare_own(&a, d);
        case PREPARE_RUNNER_GO:
                return may_prepare_go(&a, d);
        }
        return may_prepare_daemon(q, d, &none, msg, n);
}

/* ---- the start gate ---- */

bool may_prepare_start(const struct prepare_question *q, const struct gated_domain *d, char *msg, size_t n) {
        const struct answer a = { q, msg, n };
        const struct cd_condition *c = NULL;
        if (d && !domain_is_gated(d->start_gate))
                return true;
        for (size_t i = 0; d && i < d->n_conditions; i++)
                if (streq(d->conditions[i].type, CONDITION_START_GATE_OPEN))
                        c = &d->conditions[i];
        if (c && condition_status_decode(c->status) == STATUS_TRUE)
                return true;
        return no(&a, "the pod waits for the start gate of ComputeDomain '%s/%s': %s", q->domain_ns,
                  q->domain_name,
                  !d  ? "it no longer exists"
                  : c ? str_or(c->message, str_or(c->reason, "it is closed"))
                      : "the controller has not written the condition StartGateOpen yet. If this lasts, "
                        "check that a compute-domain-controller of this version leads, and that the "
                        "CustomResourceDefinition has status.conditions");
}

const char *may_prepare_no_index(const struct compute_domain_fabric *f, const char *node) {
        for (size_t i = 0; f && i < f->n_domains; i++)
                if (fabric_domain_is_standing(&f->domains[i]) && fabric_assignment_of(&f->domains[i], node))
                        return NULL;
        return standstill(f, FABRIC_ASSIGNMENTS_INCOMPLETE, FABRIC_DOMAIN_FULL);
}
