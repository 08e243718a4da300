/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's rule (rules/assignment) and the daemons' decisions together, in random histories. Claims
 * appear and disappear, daemons are restarted, terminated and replaced, nodes reboot, etcd is restored, and
 * each of them acts on what it saw a while ago. No two nodes run IMEX with one index of a domain, and no IMEX
 * is stopped under a prepared claim. When no more events happen, each node serves the domain that its claims
 * need.
 *
 * HISTORIES is the number of histories, HISTORIES_FROM the first one. A failure names its history. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/decision.h"
#include "rules/assignment.h"

enum { NODES = 3, DOMAINS = 2, STEPS = 150, VERSIONS = 1024, ROUNDS = 80, NONE = -1 };

static const char *const uids[DOMAINS] = { "aaaaaaaa-0000-4000-8000-000000000001",
                                           "bbbbbbbb-0000-4000-8000-000000000002" };
static const char *const names[NODES] = { "n0", "n1", "n2" };
static const char *const ips[NODES] = { "10.0.0.1", "10.0.0.2", "10.0.0.3" };

/* imex/imex_grants.h */
enum granting { GRANTING_NOTHING, GRANTING_NOTED, GRANTING_JUDGED };

struct host {
        const char *pod, *claim, *boot; /* pod NULL: there is no daemon */
        const char *unprepared;         /* the claim of the last daemon that has ended */
        struct decision_memory m;       /* on the disk */
        bool inherited;
        enum decision_imex imex;
        bool withdrawn, paused, terminating, outdated, served;
        int wanted, prepared;   /* domains of its claims; NONE: no claim */
        enum granting granting; /* progress of the claim for `wanted` */
        bool has_read;          /* the daemon has read these */
        bool seen_withdrawn;
        enum imex_use seen_use;
        size_t view; /* the version of the fabric object that it has seen; 0: none */
        bool reported;
        struct assignment_report report; /* on the Pod */
};

/* The fabric object, and the reports that were in etcd together with it. */
struct version {
        struct compute_domain_fabric f;
        struct assignment_report reports[NODES];
        bool reported[NODES];
};

static struct arena *a;
static uint64_t seed, history;
static struct host nodes[NODES], cached[NODES]; /* cached: as in the controller's caches */
static struct version versions[VERSIONS];
static size_t n_versions;
static bool rolled_back;
static unsigned serial;

static unsigned below(unsigned n) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return (unsigned)((seed >> 11) % n);
}

#define promise(what, text)                                                                                  \
        do {                                                                                                 \
                if (!(what))                                                                                 \
                        fail_msg("history %llu: %s", (unsigned long long)history, text);                     \
        } while (0)

/* ---- etcd ---- */

static const struct compute_domain_fabric *latest(void) {
        return &versions[n_versions - 1].f;
}

static void publish(const struct compute_domain_fabric *f) {
        struct version *v = &versions[n_versions++];
        promise(n_versions < VERSIONS, "the controller writes forever");
        v->f = *f;
        for (int i = 0; i < NODES; i++) {
                v->reports[i] = nodes[i].report;
                v->reported[i] = nodes[i].reported;
        }
}

static void restore(void) {
        const struct version v = versions[below((unsigned)n_versions)];
        for (int i = 0; i < NODES; i++)
                /* Pods created later do not exist any longer and are recreated, as if there were no report
                 * yet. */
                if (v.reported[i] && streq(v.reports[i].pod_uid, nodes[i].pod)) {
                        nodes[i].report = v.reports[i];
                        nodes[i].reported = true;
                } else {
                        nodes[i].reported = false;
                }
        memcpy(cached, nodes, sizeof cached);
        rolled_back = true;
        publish(&v.f);
}

/* ---- the nodes ---- */

static bool runs(const struct host *n) {
        return n->imex != DECISION_IMEX_NONE && n->imex != DECISION_IMEX_ENDED &&
               n->imex != DECISION_IMEX_KILLED;
}

static void report(struct host *n) {
        int64_t *left = arena_alloc(a, (n->m.n_left + 1) * sizeof *left);
        if (!n->pod || n->inherited)
                return;
        if (n->m.n_left)
                memcpy(left, n->m.left, n->m.n_left * sizeof *left);
        n->report = (struct assignment_report){ .pod_uid = n->pod,
                                                .claim = n->claim,
                                                .boot_id = n->boot,
                                                .object = n->view ? "object" : "",
                                                .domain = n->m.now.domain,
                                                .index = n->m.now.index,
                                                .epoch = n->m.now.epoch,
                                                .left = left,
                                                .n_left = n->m.n_left,
                                                .seen = n->m.seen,
                                                .recount = n->m.recount,
                                                .ready = n->m.ready,
                                                .served = n->served };
        n->reported = true;
}

/* The process ends, and IMEX with it. */
static void crash(struct host *n) {
        n->imex = DECISION_IMEX_NONE;
        n->withdrawn = n->paused = n->terminating = n->outdated = n->has_read = false;
        n->view = 0;
}

static void pod_comes(struct host *n) {
        crash(n);
        n->pod = arena_printf(a, "pod-%u", ++serial);
        n->claim = arena_printf(a, "claim-%u", serial);
        n->inherited = n->m.now.domain != NULL;
        n->served = n->reported = false;
}

static void pod_goes(struct host *n) {
        crash(n);
        n->unprepared = n->claim;
        n->pod = n->claim = NULL;
        n->reported = false;
}

static void reboot(struct host *n) {
        crash(n);
        n->boot = arena_printf(a, "boot-%u", ++serial);
        n->m = (struct decision_memory){ 0 };
        n->inherited = false;
        n->prepared = NONE;
        n->granting = GRANTING_NOTHING;
}

static bool is_used(const struct host *n) {
        return n->prepared != NONE && streq(uids[n->prepared], n->m.now.domain);
}

/* The plugin has found IMEX ready, and will prepare the claim next. */
static bool is_judged(const struct host *n) {
        return n->granting == GRANTING_JUDGED && streq(uids[n->wanted], n->m.now.domain);
}

/* The daemon reads the state, and acts on it after other events. */
static void read_state(struct host *n) {
        n->has_read = n->pod;
        n->seen_withdrawn = n->withdrawn;
        n->seen_use = is_used(n)                                               ? IMEX_USE_PREPARED
                      : n->granting && streq(uids[n->wanted], n->m.now.domain) ? IMEX_USE_GRANTING
                                                                               : IMEX_USE_NONE;
}

static void stop(struct host *n, bool pause) {
        promise(!is_used(n) && !is_judged(n), "IMEX is stopped under a prepared claim");
        n->imex = DECISION_IMEX_STOPS;
        n->paused = pause;
        n->withdrawn = true;
}

static void exit_process(struct host *n) {
        promise(!runs(n), "the daemon ends before its IMEX");
        promise(!n->terminating || !n->m.ready || !(is_used(n) || is_judged(n)),
                "a daemon ends under a prepared claim");
        if (n->terminating)
                pod_goes(n);
        else
                crash(n);
}

/* True: it did something. */
static bool act(struct host *n, int i) {
        struct decision d;
        if (!n->has_read)
                return false;
        n->has_read = false;
        const struct decision_input in = {
                .fabric = n->view ? &versions[n->view - 1].f : NULL,
                .current = n->view == n_versions,
                .node = names[i],
                .claim = n->claim,
                .boot_id = n->boot,
                .memory = &n->m,
                .inherited = n->inherited,
                .imex = n->imex,
                .paused = n->paused,
                .withdrawn = n->seen_withdrawn,
                .use = n->seen_use,
                .terminating = n->terminating,
                .outdated = n->outdated,
        };
        decision_make(&in, a, &d);
        n->m = d.memory;
        bool was_withdrawn = n->withdrawn;
        switch (d.step) {
        case DECISION_STAY:
                n->withdrawn = n->imex == DECISION_IMEX_STOPS;
                break;
        case DECISION_ENTER:
                n->m.now = d.assignment;
                n->imex = DECISION_IMEX_RUNS;
                n->withdrawn = false;
                break;
        case DECISION_START:
                n->imex = DECISION_IMEX_RUNS;
                n->withdrawn = n->paused = false;
                break;
        case DECISION_WITHDRAW:
                n->withdrawn = true;
                break;
        case DECISION_LEAVE:
        case DECISION_PAUSE:
                stop(n, d.step == DECISION_PAUSE);
                break;
        case DECISION_FORGET:
                decision_left(&d.memory, a, &n->m);
                n->inherited = n->paused = n->withdrawn = false;
                n->imex = DECISION_IMEX_NONE;
                break;
        case DECISION_EXIT:
                exit_process(n);
                return true;
        }
        report(n);
        return d.step != DECISION_STAY || was_withdrawn != n->withdrawn;
}

static bool imex_goes_on(struct host *n, bool clean) {
        if (n->imex == DECISION_IMEX_RUNS) {
                n->imex = DECISION_IMEX_READY;
                n->m.ready = n->served = true;
        } else if (n->imex == DECISION_IMEX_STOPS) {
                n->imex = clean ? DECISION_IMEX_ENDED : DECISION_IMEX_KILLED;
        } else {
                return false;
        }
        report(n);
        return true;
}

/* The plugin reads the state file, and the fabric object from the API server. */
static bool is_ready_for(const struct host *n, int i) {
        const struct fabric_domain *d = fabric_domain_of(latest(), uids[n->wanted]);
        const struct fabric_assignment *x = d ? fabric_assignment_of(d, names[i]) : NULL;
        return n->pod && n->imex == DECISION_IMEX_READY && !n->withdrawn &&
               streq(n->m.now.domain, uids[n->wanted]) && x && fabric_is_active(x) &&
               x->epoch == n->m.now.epoch && streq(x->claim, n->claim);
}

/* The plugin's next step. True: it did something that lasts. */
static bool prepare(struct host *n, int i) {
        if (n->wanted == NONE || n->prepared != NONE)
                return false;
        if (n->granting == GRANTING_NOTHING) {
                n->granting = GRANTING_NOTED;
        } else if (n->granting == GRANTING_NOTED) {
                n->granting = is_ready_for(n, i) ? GRANTING_JUDGED : GRANTING_NOTHING;
        } else {
                n->prepared = n->wanted;
                n->granting = GRANTING_NOTHING;
        }
        return n->granting == GRANTING_JUDGED || n->prepared != NONE;
}

/* ---- the controller ---- */

static void update_cache(int i) {
        cached[i] = nodes[i];
}

static bool control(void) {
        const struct compute_domain_fabric *f = latest();
        struct assignment_node list[NODES];
        struct assignment_domain domains[DOMAINS];
        struct assignment r;
        for (int i = 0; i < NODES; i++) {
                const struct host *n = &cached[i];
                list[i] = (struct assignment_node){
                        .name = names[i],
                        .ip = ips[i],
                        .boot_id = nodes[i].boot, /* read from the API server */
                        .wanted = nodes[i].wanted == NONE ? NULL : uids[nodes[i].wanted],
                        .released = nodes[i].wanted == NONE,
                        .expected = true,
                        .ending = n->terminating,
                        .unprepared = n->unprepared,
                        .trust = ASSIGNMENT_TRUST_FULL,
                };
                if (n->reported)
                        list[i].report = n->report;
        }
        for (int d = 0; d < DOMAINS; d++)
                domains[d] = (struct assignment_domain){ .owner = { .kind = "ComputeDomain", .uid = uids[d] },
                                                         .imex.slots = NODES };
        const struct assignment_input in = { .old = f->domains,
                                             .n_old = f->n_domains,
                                             .epoch = f->epoch,
                                             .recount = f->recount,
                                             .object = "object",
                                             .rolled_back = rolled_back,
                                             .nodes = list,
                                             .n_nodes = NODES,
                                             .domains = domains,
                                             .n_domains = DOMAINS,
                                             .slots = NODES };
        assignment_make(&in, a, &r);
        const char *broken = assignment_check(&in, &r, a);
        promise(!broken, broken);
        rolled_back = false;
        if (!r.changed)
                return false;
        struct compute_domain_fabric next = *f;
        next.domains = r.domains;
        next.n_domains = r.n_domains;
        next.epoch = r.epoch;
        next.recount = r.recount;
        publish(&next);
        return true;
}

/* ---- the promises ---- */

static void promises(void) {
        for (int i = 0; i < NODES; i++)
                for (int j = 0; j < i; j++)
                        if (runs(&nodes[i]) && runs(&nodes[j]) &&
                            streq(nodes[i].m.now.domain, nodes[j].m.now.domain))
                                promise(nodes[i].m.now.index != nodes[j].m.now.index,
                                        "two nodes run IMEX with one index");
        for (int i = 0; i < NODES; i++)
                for (size_t j = 0; runs(&nodes[i]) && nodes[i].reported && j < nodes[i].report.n_left; j++)
                        promise(nodes[i].report.left[j] != nodes[i].m.now.epoch,
                                "an epoch that was reported as left runs");
}

/* ---- histories ---- */

static void begin(void) {
        memset(nodes, 0, sizeof nodes);
        n_versions = 0;
        rolled_back = false;
        serial = 0;
        for (int i = 0; i < NODES; i++) {
                nodes[i].wanted = nodes[i].prepared = NONE;
                nodes[i].boot = arena_printf(a, "boot-%u", ++serial);
                pod_comes(&nodes[i]);
        }
        memcpy(cached, nodes, sizeof cached);
        publish(&(struct compute_domain_fabric){ .o.meta.uid = "object", .table_of = "object" });
}

static void claims_change(struct host *n) {
        switch (below(4)) {
        case 0:
                if (n->wanted == NONE)
                        n->wanted = (int)below(DOMAINS);
                break;
        case 1: /* the pod has ended */
                n->prepared = NONE;
                break;
        case 2:
                if (n->prepared == NONE && !n->granting)
                        n->wanted = NONE;
                break;
        default: /* the claim is force-deleted while it is prepared */
                if (below(4) == 0 && !n->granting)
                        n->wanted = NONE;
                break;
        }
}

static void fault(struct host *n, bool restores) {
        switch (below(6)) {
        case 0:
                crash(n);
                n->terminating = below(2);
                break;
        case 1:
                n->terminating = true;
                break;
        case 2: /* the Pod is force-deleted, and the kubelet has ended it */
                if (n->pod)
                        pod_goes(n);
                break;
        case 3:
                reboot(n);
                break;
        case 4:
                n->outdated = true;
                break;
        default:
                if (restores)
                        restore();
                break;
        }
}

static void step(bool restores) {
        int i = (int)below(NODES);
        struct host *n = &nodes[i];
        switch (below(16)) {
        case 0:
        case 1:
                claims_change(n);
                break;
        case 2:
                read_state(n);
                break;
        case 3:
        case 4:
                act(n, i);
                break;
        case 5:
                read_state(n);
                act(n, i);
                break;
        case 6:
        case 7:
                imex_goes_on(n, below(3));
                break;
        case 8:
        case 9:
                if (n->pod && n->view < n_versions)
                        n->view += 1 + below((unsigned)(n_versions - n->view));
                break;
        case 10:
        case 11:
                prepare(n, i);
                break;
        case 12:
                update_cache(i);
                break;
        case 13:
        case 14:
                control();
                break;
        default:
                if (!n->pod)
                        pod_comes(n);
                else
                        fault(n, restores);
                break;
        }
        promises();
}

/* All components see the present state, and no more events happen. */
static void settle(void) {
        for (int i = 0; i < NODES; i++) {
                nodes[i].outdated = false;
                if (nodes[i].prepared != nodes[i].wanted)
                        nodes[i].prepared = NONE;
        }
        for (int round = 0, quiet = 0; quiet < 2; round++) {
                bool any = false;
                promise(round < ROUNDS, "the history does not settle");
                for (int i = 0; i < NODES; i++) {
                        struct host *n = &nodes[i];
                        if (n->terminating && n->prepared != NONE)
                                n->prepared = NONE; /* a drain: its pods end, too */
                        if (!n->pod)
                                pod_comes(n);
                        n->view = n_versions;
                        read_state(n);
                        any = act(n, i) || any;
                        promises();
                        any = imex_goes_on(n, true) || any;
                        for (int j = 0; j < 3; j++)
                                any = prepare(n, i) || any;
                        update_cache(i);
                }
                any = control() || any;
                promises();
                quiet = any ? 0 : quiet + 1;
        }
        for (int i = 0; i < NODES; i++) {
                const struct host *n = &nodes[i];
                const char *uid = n->wanted == NONE ? NULL : uids[n->wanted];
                promise(streq(n->m.now.domain, uid), "a node is not in the domain that its claims need");
                promise((n->imex == DECISION_IMEX_READY) == (uid != NULL), "IMEX is not READY");
                promise(n->prepared == n->wanted, "a claim waits");
        }
}

static void run_histories(bool restores) {
        const char *from = getenv("HISTORIES_FROM"), *n = getenv("HISTORIES");
        uint64_t first = from ? strtoull(from, NULL, 10) : 1, count = n ? strtoull(n, NULL, 10) : 3000;
        for (history = first; history < first + count; history++) {
                a = arena_new(1 << 16);
                seed = history * 2654435761u + 88172645463325252u + restores;
                begin();
                for (int i = 0; i < STEPS; i++)
                        step(restores);
                settle();
                arena_free(a);
        }
}

/* failure: daemons, controllers and nodes fail at random -> no two nodes run IMEX with one index */
static void random_histories_keep_every_promise(void **state) {
        run_histories(false);
}

/* failure: etcd is restored at random times -> no two nodes run IMEX with one index [etcd] */
static void restores_of_etcd_keep_every_promise(void **state) {
        run_histories(true);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_histories_keep_every_promise),
                cmocka_unit_test(restores_of_etcd_keep_every_promise),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
