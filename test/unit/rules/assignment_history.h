/* SPDX-License-Identifier: Apache-2.0 */
/* assignment_history: random histories for rules/assignment. Claims are created and deleted. Daemons follow
 * the object, restart, are replaced, or are force-deleted while they run. Nodes reboot and vanish, reports
 * are late, one node lies, and etcd is restored. In each history: no two honest nodes run one IMEX domain
 * with the same index, each decision passes its check, the address of a node without a claim is not published
 * in an IMEX domain that did not show it before, and at the end each node runs the IMEX domain that it is
 * wanted in. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "rules/assignment.h"

enum { NODES = 5, DOMAINS = 3, SLOTS = 4, STEPS = 200, QUIET_STEPS = 60, LEFT_MAX = 32 };

static const char *const names[NODES] = { "n0", "n1", "n2", "n3", "n4" };
static const char *const uids[DOMAINS] = { "d0", "d1", "d2" };

/* ---- chance ---- */

static uint64_t state_of_chance;

static unsigned draw(unsigned n) {
        state_of_chance = state_of_chance * 6364136223846793005u + 1442695040888963407u;
        return (unsigned)(state_of_chance >> 33) % n;
}

static bool chance(unsigned percent) {
        return draw(100) < percent;
}

/* ---- the world ---- */

/* The report of a daemon: its assignment, and what it reports about epochs. */
struct report {
        bool is;      /* there is a report */
        unsigned pod; /* the Pod; its claim has the same number */
        unsigned boot;
        int domain; /* -1: none */
        int64_t index, epoch, seen, recount;
        int64_t left[LEFT_MAX];
        size_t n_left;
        bool ready, served;
};

struct host {
        bool exists; /* its Node object */
        unsigned boot;
        int wanted;          /* -1: no claim */
        bool runs;           /* a daemon's process runs */
        struct report own;   /* its assignment */
        bool has_pod;        /* the API server has the Pod of that process */
        bool cut;            /* it neither sends nor receives anything */
        unsigned unprepared; /* the claim that its plugin unprepared last; 0: none */
};

struct object {
        struct fabric_domain *domains;
        size_t n_domains;
        struct fabric_removal *removals;
        size_t n_removals;
        int64_t epoch, recount;
};

/* The content of etcd. */
struct stored {
        struct object object;
        struct report reports[NODES];
        unsigned unprepared[NODES];
};

struct history {
        struct arena *a;
        struct host nodes[NODES];
        struct stored now, backup;
        bool has_backup, rolled_back;
        unsigned pods, boots;
        int liar; /* -1: none */
        uint64_t seed;
        unsigned step;
        void (*on_decision)(void *u, const struct assignment_input *in, const struct assignment *out);
        void *u;
};

static const char *number(struct history *h, const char *what, unsigned n) {
        return arena_printf(h->a, "%s-%u", what, n);
}

static void broken_at(const struct history *h, const char *what) {
        fail_msg("history %llu, step %u: %s", (unsigned long long)h->seed, h->step, what);
}

/* ---- daemons ---- */

static bool has_left(const struct report *r, int64_t epoch) {
        for (size_t i = 0; i < r->n_left; i++)
                if (r->left[i] == epoch)
                        return true;
        return false;
}

static bool may_take(struct history *h, const struct report *r, const struct fabric_assignment *x) {
        return fabric_is_active(x) && !has_left(r, x->epoch) && streq(x->claim, number(h, "claim", r->pod)) &&
               streq(x->boot_id, number(h, "boot", r->boot));
}

/* The daemon sees the object and follows it. Sometimes it has not stopped its IMEX yet. */
static void obey(struct history *h, int i) {
        struct host *n = &h->nodes[i];
        struct report *r = &n->own;
        const struct object *o = &h->now.object;
        int next = -1;
        const struct fabric_assignment *take = NULL;
        if (!n->runs || n->cut)
                return;
        for (size_t d = 0; d < o->n_domains; d++) {
                const struct fabric_assignment *x = fabric_assignment_of(&o->domains[d], names[i]);
                int domain = 0;
                if (!x)
                        continue;
                while (!streq(uids[domain], o->domains[d].owner.uid))
                        domain++;
                if (r->domain == domain && r->epoch == x->epoch) {
                        /* IMEX is in use until the claims are deleted. */
                        if (fabric_is_leaving(x) && n->wanted != domain && chance(70)) {
                                r->domain = -1;
                                r->ready = false;
                                r->left[r->n_left++] = x->epoch;
                        }
                        continue;
                }
                if (fabric_is_reserved(x) || has_left(r, x->epoch))
                        continue;
                if (may_take(h, r, x)) {
                        take = x;
                        next = domain;
                } else if (r->n_left < LEFT_MAX) {
                        r->left[r->n_left++] = x->epoch;
                }
        }
        if (take && r->domain < 0) {
                r->domain = next;
                r->index = take->index;
                r->epoch = take->epoch;
                r->ready = r->served = true;
        }
        if (o->epoch > r->seen)
                r->seen = o->epoch;
        r->recount = o->recount > r->recount ? o->recount : r->recount;
        /* A left epoch that the object no longer lists need not be reported any more. */
        if (r->n_left == LEFT_MAX)
                r->n_left = 0;
}

static void send_report(struct history *h, int i) {
        struct host *n = &h->nodes[i];
        if (n->runs && n->has_pod && !n->cut)
                h->now.reports[i] = n->own;
        if (!n->cut)
                h->now.unprepared[i] = n->unprepared;
}

/* A new Pod with its own claim is created. The claim of the earlier one has been unprepared. */
static void start_daemon(struct history *h, int i) {
        struct host *n = &h->nodes[i];
        n->runs = n->has_pod = true;
        n->own = (struct report){ .is = true, .pod = ++h->pods, .boot = n->boot, .domain = -1 };
}

static void end_daemon(struct history *h, int i) {
        struct host *n = &h->nodes[i];
        n->runs = false;
        n->unprepared = n->own.pod;
        if (n->has_pod)
                h->now.reports[i].is = false;
        n->has_pod = false;
}

/* ---- the controller ---- */

static bool is_listed(const struct object *o, const char *node) {
        for (size_t i = 0; i < o->n_domains; i++)
                if (fabric_assignment_of(&o->domains[i], node))
                        return true;
        return false;
}

static void observe(struct history *h, int i, struct assignment_node *ret) {
        const struct host *n = &h->nodes[i];
        const struct report *r = &h->now.reports[i];
        *ret = (struct assignment_node){ .name = names[i],
                                         .ip = "ip",
                                         .boot_id = n->exists ? number(h, "boot", n->boot) : NULL,
                                         .wanted = n->wanted < 0 ? NULL : uids[n->wanted],
                                         .released = n->wanted < 0,
                                         .dead = !n->exists,
                                         .expected = n->exists,
                                         .trust = chance(95) ? ASSIGNMENT_TRUST_FULL
                                                             : ASSIGNMENT_TRUST_RESERVE };
        if (h->now.unprepared[i])
                ret->unprepared = number(h, "claim", h->now.unprepared[i]);
        if (!r->is)
                return;
        ret->report = (struct assignment_report){ .pod_uid = number(h, "pod", r->pod),
                                                  .claim = number(h, "claim", r->pod),
                                                  .boot_id = number(h, "boot", r->boot),
                                                  .object = "object",
                                                  .domain = r->domain < 0 ? NULL : uids[r->domain],
                                                  .index = r->index,
                                                  .epoch = r->epoch,
                                                  .left = r->left,
                                                  .n_left = r->n_left,
                                                  .seen = r->seen,
                                                  .recount = r->recount,
                                                  .ready = r->ready,
                                                  .served = r->served };
        if (i == h->liar) {
                ret->report.domain = uids[draw(DOMAINS)];
                ret->report.index = draw(SLOTS + 2);
                ret->report.epoch = (int64_t)draw((unsigned)h->now.object.epoch + 3);
                ret->report.recount = chance(50) ? INT64_MAX : r->recount;
                ret->released = n->wanted < 0 && is_listed(&h->now.object, names[i]);
        }
}

static bool shows(const struct fabric_domain *list, size_t n, const char *uid, const char *node) {
        for (size_t i = 0; i < n; i++) {
                const struct fabric_assignment *x = fabric_assignment_of(&list[i], node);
                if (x && streq(list[i].owner.uid, uid))
                        return x->ip && *x->ip;
        }
        return false;
}

static void check_addresses(const struct history *h, const struct assignment_input *in,
                            const struct assignment *out) {
        for (int i = 0; i < NODES; i++)
                for (int d = 0; d < DOMAINS; d++)
                        if (shows(out->domains, out->n_domains, uids[d], names[i]) &&
                            !streq(in->nodes[i].wanted, uids[d]) &&
                            !shows(in->old, in->n_old, uids[d], names[i]))
                                broken_at(h, arena_printf(h->a, "the address of %s is published in %s",
                                                          names[i], uids[d]));
}

static void decide(struct history *h) {
        struct assignment_node nodes[NODES];
        struct assignment_domain domains[DOMAINS];
        struct object *o = &h->now.object;
        struct assignment out;
        for (int i = 0; i < NODES; i++)
                observe(h, i, &nodes[i]);
        for (int i = 0; i < DOMAINS; i++)
                domains[i] = (struct assignment_domain){ .owner = { "ComputeDomain", "ns", uids[i], uids[i] },
                                                         .imex.slots = SLOTS,
                                                         .idle = chance(20) };
        const struct assignment_input in = { .old = o->domains,
                                             .n_old = o->n_domains,
                                             .removals = o->removals,
                                             .n_removals = o->n_removals,
                                             .epoch = o->epoch,
                                             .recount = o->recount,
                                             .object = "object",
                                             .rolled_back = h->rolled_back,
                                             .nodes = nodes,
                                             .n_nodes = NODES,
                                             .domains = domains,
                                             .n_domains = DOMAINS,
                                             .slots = SLOTS };
        assignment_make(&in, h->a, &out);
        const char *wrong = assignment_check(&in, &out, h->a);
        if (h->on_decision)
                h->on_decision(h->u, &in, &out);
        if (wrong)
                broken_at(h, wrong);
        check_addresses(h, &in, &out);
        *o =
                (struct object){ out.domains,    out.n_domains, out.removals,
                                 out.n_removals, out.epoch,     out.recount };
        h->rolled_back = false;
}

/* ---- the invariants ---- */

static void check(const struct history *h) {
        for (int i = 0; i < NODES; i++)
                for (int j = 0; j < i; j++) {
                        const struct report *x = &h->nodes[i].own, *y = &h->nodes[j].own;
                        if (i != h->liar && j != h->liar && h->nodes[i].runs && h->nodes[j].runs &&
                            x->domain >= 0 && x->domain == y->domain && x->index == y->index)
                                broken_at(h, "two nodes run a domain with one index");
                }
}

/* ---- the events ---- */

/* The leader sees that the resource version of the object has decreased. Or there is a new leader, which is
 * started after the daemons: each daemon has seen the earlier object, sees the restored one, and reports. A
 * new leader cannot know of a daemon that is cut off, so the procedure for a restore requires a check of such
 * a node (docs/reference/failures.md). */
static void restore(struct history *h) {
        int64_t epoch = h->now.object.epoch;
        h->now = h->backup;
        h->rolled_back = chance(50);
        for (int i = 0; i < NODES; i++)
                h->rolled_back =
                        h->rolled_back || (h->nodes[i].runs && (h->nodes[i].cut || !h->nodes[i].has_pod));
        for (int i = 0; i < NODES && !h->rolled_back; i++) {
                struct host *n = &h->nodes[i];
                if (n->runs && n->own.seen < epoch)
                        n->own.seen = epoch;
                send_report(h, i);
        }
}

static void happen(struct history *h, int i) {
        struct host *n = &h->nodes[i];
        switch (draw(14)) {
        case 0:
        case 1:
        case 2:
                /* A node that is in an IMEX domain with claims loses the claims first. */
                n->wanted = n->wanted >= 0 ? -1 : (int)draw(DOMAINS);
                break;
        case 3: /* the Pod is deleted and ends, or a new one is created */
                if (n->runs && n->has_pod && (n->own.domain < 0 || n->wanted != n->own.domain))
                        end_daemon(h, i);
                break;
        case 4:
                if (!n->runs && n->exists)
                        start_daemon(h, i);
                break;
        case 5: /* its container restarts, and keeps its memory */
                break;
        case 6: /* power fails: the same Pod runs again, without its memory */
                if (n->exists && chance(50)) {
                        n->boot = ++h->boots;
                        n->unprepared = 0;
                        if (n->runs) {
                                unsigned pod = n->own.pod;
                                n->own = (struct report){
                                        .is = true, .pod = pod, .boot = n->boot, .domain = -1
                                };
                        }
                }
                break;
        case 7: /* force-deleted: the process continues, and nobody receives its reports */
                if (n->runs && n->has_pod && chance(30)) {
                        n->has_pod = false;
                        h->now.reports[i].is = false;
                }
                break;
        case 8: /* the kubelet ends processes without a Pod */
                if (n->runs && !n->has_pod && !n->cut)
                        end_daemon(h, i);
                break;
        case 9:
                n->cut = n->exists && chance(20);
                break;
        case 10: /* the node is off permanently and its Node is deleted; or it returns */
                if (!n->exists) {
                        n->exists = true;
                        n->boot = ++h->boots;
                } else if (chance(10)) {
                        n->exists = n->runs = n->has_pod = n->cut = false;
                        n->wanted = -1;
                        n->unprepared = 0;
                        h->now.reports[i].is = false;
                        h->now.unprepared[i] = 0;
                }
                break;
        case 11:
                if (chance(20)) {
                        h->backup = h->now;
                        h->has_backup = true;
                }
                break;
        case 12:
                if (h->has_backup && chance(10))
                        restore(h);
                break;
        default:
                break;
        }
}

/* The kubelets end and replace Pods that a restore has brought back, or that the restored state lacks. */
static void settle_pods(struct history *h) {
        for (int i = 0; i < NODES; i++) {
                struct host *n = &h->nodes[i];
                n->cut = false;
                if (n->runs && !n->has_pod)
                        end_daemon(h, i);
                if (!n->runs && n->exists)
                        start_daemon(h, i);
                if (!n->exists)
                        h->now.reports[i].is = false;
        }
}

/* There are more nodes than slots, so some wait. */
static bool is_full(const struct history *h, int domain) {
        int n = 0;
        for (int i = 0; i < NODES; i++)
                n += h->nodes[i].exists && h->nodes[i].wanted == domain;
        return n > SLOTS;
}

static void check_quiet(const struct history *h) {
        for (int i = 0; i < NODES; i++) {
                const struct host *n = &h->nodes[i];
                if (i != h->liar && n->exists && n->runs && n->own.domain != n->wanted &&
                    !(n->own.domain < 0 && is_full(h, n->wanted)))
                        broken_at(h, arena_printf(h->a, "%s is in domain %d and is wanted in %d", names[i],
                                                  n->own.domain, n->wanted));
        }
}

static void run_history(uint64_t seed, bool lies,
                        void (*fn)(void *u, const struct assignment_input *in, const struct assignment *out),
                        void *u) {
        struct history h = { .a = arena_new(1 << 20), .seed = seed, .liar = -1, .on_decision = fn, .u = u };
        state_of_chance = seed * 2654435761u + 12345;
        for (int i = 0; i < NODES; i++) {
                h.nodes[i] = (struct host){ .exists = true, .boot = ++h.boots, .wanted = -1 };
                start_daemon(&h, i);
        }
        if (lies)
                h.liar = NODES - 1;
        for (h.step = 0; h.step < STEPS; h.step++) {
                int i = (int)draw(NODES);
                happen(&h, i);
                if (chance(60))
                        obey(&h, (int)draw(NODES));
                check(&h);
                if (chance(60))
                        send_report(&h, (int)draw(NODES));
                if (chance(60))
                        decide(&h);
                check(&h);
        }
        h.liar = -1;
        if (lies)
                end_daemon(&h, NODES - 1);
        settle_pods(&h);
        for (int i = 0; i < QUIET_STEPS; i++) {
                decide(&h);
                for (int k = 0; k < NODES; k++) {
                        obey(&h, k);
                        check(&h);
                        send_report(&h, k);
                }
        }
        check_quiet(&h);
        arena_free(h.a);
}
