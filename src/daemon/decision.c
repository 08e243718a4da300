/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/decision.h"

#include <string.h>

#include "base/stderr.h"
#include "model/daemon_report.h"

/* ---- the assignments of this node in the fabric object ---- */

struct listed {
        const struct fabric_domain *domain;
        const struct fabric_assignment *assignment; /* NULL: not listed */
};

struct view {
        const struct decision_input *in;
        int64_t *left;
        size_t n_left;
        int64_t closed;
        struct listed own;   /* the present assignment */
        struct listed rival; /* another one in the same domain */
        struct listed next;  /* the earliest that the daemon may accept */
};

static bool may_take(const struct decision_input *in, const struct fabric_assignment *x) {
        return fabric_is_active(x) && streq(x->claim, in->claim) && streq(x->boot_id, in->boot_id) &&
               x->epoch > in->memory->closed;
}

static void decision_add_left(struct view *l, int64_t epoch) {
        if (l->n_left < DAEMON_REPORT_LEFT_MAX)
                l->left[l->n_left++] = epoch;
        if (epoch > l->closed)
                l->closed = epoch;
}

static void decision_add_assignment(struct view *l, const struct fabric_domain *d,
                                    const struct fabric_assignment *x) {
        const struct decision_assignment *now = &l->in->memory->now;
        bool same_domain = streq(now->domain, d->owner.uid);
        if (fabric_is_reserved(x))
                return;
        /* The epoch that runs has not been left, whatever else is listed with it. */
        if (now->domain && x->epoch == now->epoch) {
                if (same_domain)
                        l->own = (struct listed){ d, x };
                return;
        }
        if (!may_take(l->in, x) || l->in->restored) {
                decision_add_left(l, x->epoch);
                return;
        }
        if (same_domain)
                l->rival = (struct listed){ d, x };
        if (!l->next.assignment || x->epoch < l->next.assignment->epoch)
                l->next = (struct listed){ d, x };
}

static void read_object(struct view *l, struct arena *a) {
        const struct compute_domain_fabric *f = l->in->fabric;
        l->left = arena_alloc(a, DAEMON_REPORT_LEFT_MAX * sizeof *l->left);
        l->closed = l->in->memory->closed;
        for (size_t i = 0; i < f->n_domains; i++)
                for (size_t j = 0; j < f->domains[i].n_assignments; j++)
                        if (streq(f->domains[i].assignments[j].node, l->in->node))
                                decision_add_assignment(l, &f->domains[i], &f->domains[i].assignments[j]);
}

/* The controller ignores the epochs of this node, and the daemon accepts no lower one. */
static bool has_seen_too_much(const struct decision_input *in, struct decision *d) {
        if (!in->fabric || in->memory->seen - in->fabric->epoch <= DAEMON_REPORT_EPOCHS_AHEAD)
                return false;
        d->why = "this node has seen an epoch far above that of its ComputeDomainFabric, so it gets no "
                 "assignment until it reboots";
        d->needs_reboot = true;
        return true;
}

static bool decision_is_ending(const struct view *l) {
        return l->own.assignment && fabric_is_ending(l->own.assignment);
}

/* By the fabric object, the node must leave its present assignment. */
static bool is_unwanted(const struct view *l) {
        const struct decision_assignment *now = &l->in->memory->now;
        const struct fabric_assignment *own = l->own.assignment;
        if (!own)
                return l->rival.assignment != NULL;
        return fabric_is_leaving(own) || own->index != now->index ||
               !streq(str_or(l->own.domain->imex.infix, ""), str_or(now->imex.infix, ""));
}

/* No other node is in the domain, or will return to it. */
static bool is_alone(const struct decision_input *in) {
        const struct fabric_domain *d =
                in->fabric && in->current ? fabric_domain_of(in->fabric, in->memory->now.domain) : NULL;
        return d && d->n_assignments == 1 && streq(d->assignments[0].node, in->node);
}

/* ---- while IMEX runs ---- */

static const char *const held_by[] = {
        [IMEX_USE_NONE] = "its readiness cannot be withdrawn",
        [IMEX_USE_GRANTING] = "a claim of it is about to be prepared on this node",
        [IMEX_USE_PREPARED] = "a claim of it is prepared on this node",
        [IMEX_USE_UNKNOWN] = "it is not known whether a claim of it is prepared on this node",
};

/* Readiness is withdrawn first; only then does the absence of claims count (imex/imex_grants.h). A claim that
 * is about to be prepared changes in a moment: with readiness withdrawn, either it waits, or it found IMEX
 * ready before and is prepared. */
static void decision_stop(const struct decision_input *in, enum decision_step step, struct decision *d) {
        if (in->use == IMEX_USE_NONE && in->withdrawn) {
                d->step = step;
                return;
        }
        d->waits_for = held_by[in->use];
        if (in->use == IMEX_USE_NONE || (in->use == IMEX_USE_GRANTING && in->withdrawn))
                d->step = DECISION_WITHDRAW;
}

/* Other nodes may map this node's memory. After an unclean end IMEX is started once more, so that they
 * recover, even if the ComputeDomain is deleted. */
static bool has_recovered(const struct decision_input *in) {
        return in->imex == DECISION_IMEX_READY || !in->memory->ready || is_alone(in);
}

static void decision_leave(const struct view *l, struct decision *d) {
        if (!has_recovered(l->in))
                d->waits_for =
                        "IMEX ended uncleanly here, and waits for the nodes that had imported its memory";
        else if (decision_is_ending(l))
                d->step = DECISION_LEAVE;
        else
                decision_stop(l->in, DECISION_LEAVE, d);
}

/* A deleted Pod serves while claims are prepared. An IMEX that has never been READY has no users. */
static void terminate(const struct view *l, struct decision *d) {
        if (!l->in->memory->ready || decision_is_ending(l))
                d->step = DECISION_PAUSE;
        else
                decision_stop(l->in, DECISION_PAUSE, d);
}

/* An IMEX that has never been READY, or that fails, can be stopped without loss. No node waits for this one
 * to leave, so `held` stays empty. */
static void renew(const struct decision_input *in, struct decision *d) {
        struct decision renewed = *d;
        if (!in->memory->ready || in->imex == DECISION_IMEX_FAILS)
                renewed.step = DECISION_PAUSE;
        else
                decision_stop(in, DECISION_PAUSE, &renewed);
        d->step = renewed.step;
}

static void decide_running(const struct view *l, struct decision *d) {
        const struct decision_input *in = l->in;
        if (in->terminating) {
                terminate(l, d);
                return;
        }
        if (in->moved || is_unwanted(l))
                decision_leave(l, d);
        else if (in->fabric && !l->own.assignment && !has_seen_too_much(in, d))
                d->why = "the fabric object of the partition does not list the assignment of this node: IMEX "
                         "continues";
        if (d->step == DECISION_STAY && in->outdated)
                renew(in, d);
}

/* ---- while IMEX does not run ---- */

/* A deleted Pod starts IMEX again for the claims that use it. Without such claims, the next daemon of the
 * node reports the epoch as left. A claim that is about to be prepared may have found IMEX ready before it
 * ended. */
static void decide_end_of_pod(const struct view *l, struct decision *d) {
        const struct decision_input *in = l->in;
        if (!in->memory->ready || in->use == IMEX_USE_NONE || decision_is_ending(l)) {
                d->step = DECISION_EXIT;
                return;
        }
        d->waits_for = held_by[in->use];
        if (in->use != IMEX_USE_GRANTING)
                d->step = DECISION_START;
}

static void decide_ended(const struct view *l, struct decision *d) {
        const struct decision_input *in = l->in;
        if (in->terminating)
                decide_end_of_pod(l, d);
        else if (in->paused)
                d->step = DECISION_EXIT;
        else if (in->imex == DECISION_IMEX_KILLED && in->memory->ready && !is_alone(in))
                d->step = DECISION_START;
        else
                d->step = DECISION_FORGET;
}

/* For claims that use the domain, IMEX starts in this container: `outdated` is wrong if the plugin could not
 * report the edits that the container has. If IMEX cannot start here, renew() ends the container. */
static void decide_not_started(const struct view *l, struct decision *d) {
        const struct decision_input *in = l->in;
        bool may_renew = in->outdated && (!in->memory->ready || in->use == IMEX_USE_NONE);
        if (in->inherited)
                d->step = DECISION_FORGET; /* another node may have the index by now */
        else if (in->terminating)
                decide_end_of_pod(l, d);
        else
                d->step = may_renew ? DECISION_EXIT : DECISION_START;
}

bool decision_assignment_valid(const struct decision_assignment *x) {
        const struct imex_domain *d = &x->imex;
        return str_is_uuid(x->domain) && imex_infix_valid(str_or(d->infix, "")) && d->slots > 0 &&
               d->slots <= IMEX_SLOTS_MAX && x->index >= 0 && x->index < d->slots && d->port > 0 &&
               d->port <= 65535;
}

static void decision_enter(const struct listed *next, struct decision *d) {
        d->assignment = (struct decision_assignment){ .domain = next->domain->owner.uid,
                                                      .index = next->assignment->index,
                                                      .epoch = next->assignment->epoch,
                                                      .imex = next->domain->imex };
        if (!decision_assignment_valid(&d->assignment)) {
                d->why = "the fabric object of the partition has an invalid assignment for this node: its "
                         "domain is not a UID, or a number is out of range";
                return;
        }
        d->step = DECISION_ENTER;
        d->memory.ready = false;
        if (d->memory.closed < d->assignment.epoch)
                d->memory.closed = d->assignment.epoch;
}

static void decide_idle(const struct view *l, struct decision *d) {
        const struct decision_input *in = l->in;
        const struct listed *next = &l->next;
        const struct compute_domain_fabric *f = in->fabric;
        if (in->terminating || in->moved || in->outdated) {
                d->step = DECISION_EXIT;
        } else if (next->assignment) {
                decision_enter(next, d);
        } else if (!f) {
                d->why = "the fabric object of the partition does not exist yet";
        } else if (condition_true(f->conditions, f->n_conditions, FABRIC_DOMAIN_FULL)) {
                d->why = "the IMEX domain of the partition has no index for this node: the condition "
                         "DomainFull of its ComputeDomainFabric explains what to do";
        } else if (!has_seen_too_much(in, d)) {
                d->why = "no IMEX domain needs this node";
        }
}

void decision_make(const struct decision_input *in, struct arena *a, struct decision *ret) {
        const struct decision_memory *m = in->memory;
        const struct compute_domain_fabric *f = in->fabric;
        struct view l = { .in = in };
        BUG_ON(!in->node || !in->claim || !in->boot_id || m->n_left > DAEMON_REPORT_LEFT_MAX);
        BUG_ON(!m->now.domain && in->imex != DECISION_IMEX_NONE);
        BUG_ON(m->now.domain && m->now.epoch > m->closed);
        *ret = (struct decision){ .step = DECISION_STAY, .why = "", .waits_for = "", .memory = *m };
        if (f) {
                read_object(&l, a);
                ret->memory.closed = l.closed;
                ret->memory.left = l.left;
                ret->memory.n_left = l.n_left;
                ret->memory.seen = f->epoch > m->seen ? f->epoch : m->seen;
                /* During a recount, from before or after the restore, this would only increase the object's
                 * epoch. */
                if (in->restored && !f->recount && ret->memory.seen == f->epoch)
                        ret->memory.seen++;
                ret->memory.recount = f->recount > m->recount ? f->recount : m->recount;
        }
        if (!m->now.domain)
                decide_idle(&l, ret);
        else if (in->imex == DECISION_IMEX_NONE)
                decide_not_started(&l, ret);
        else if (in->imex == DECISION_IMEX_ENDED || in->imex == DECISION_IMEX_KILLED)
                decide_ended(&l, ret);
        else if (in->imex != DECISION_IMEX_STOPS)
                decide_running(&l, ret);
}

/* ---- the other nodes ---- */

/* Two nodes may have the same index while one of them leaves. */
static bool lists(const struct imex_peer *peers, size_t n, const struct fabric_assignment *x) {
        for (size_t i = 0; i < n; i++)
                if (streq(peers[i].node, x->node) || peers[i].index == x->index)
                        return true;
        return false;
}

bool decision_peers(const struct compute_domain_fabric *f, const char *node,
                    const struct decision_assignment *now, struct arena *a, struct imex_peer **ret,
                    size_t *ret_n) {
        BUG_ON(!now->domain);
        const struct fabric_domain *d = fabric_domain_of(f, now->domain);
        size_t n = 0;
        if (!d)
                return false;
        struct imex_peer *peers = arena_alloc(a, (d->n_assignments + 1) * sizeof *peers);
        for (int pass = 0; pass < 2; pass++)
                for (size_t i = 0; i < d->n_assignments; i++) {
                        const struct fabric_assignment *x = &d->assignments[i];
                        bool active = fabric_is_active(x);
                        if (active != (pass == 0) || streq(x->node, node) || x->index == now->index ||
                            lists(peers, n, x))
                                continue;
                        peers[n++] = (struct imex_peer){ .index = x->index,
                                                         .ip = active ? str_or(x->ip, "") : "",
                                                         .node = x->node,
                                                         .boot_id = str_or(x->boot_id, "") };
                }
        *ret = peers;
        *ret_n = n;
        return true;
}

void decision_left(const struct decision_memory *m, struct arena *a, struct decision_memory *ret) {
        bool full = m->n_left == DAEMON_REPORT_LEFT_MAX;
        int64_t *left = arena_alloc(a, (m->n_left + 1) * sizeof *left);
        size_t n = 0, lowest = 0;
        BUG_ON(!m->now.domain || m->n_left > DAEMON_REPORT_LEFT_MAX);
        for (size_t i = 1; i < m->n_left; i++)
                if (m->left[i] < m->left[lowest])
                        lowest = i;
        for (size_t i = 0; i < m->n_left; i++)
                if (!full || i != lowest)
                        left[n++] = m->left[i];
        left[n] = m->now.epoch;
        *ret = *m;
        ret->left = left;
        ret->n_left = n + 1;
        ret->closed = m->closed > m->now.epoch ? m->closed : m->now.epoch;
        ret->now = (struct decision_assignment){ 0 };
        ret->ready = false;
}
