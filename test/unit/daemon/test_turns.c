/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of one agreement: the controller's rule of seats (rules/rosters) and the agent's
 * (daemon/turns), in random histories in which the one hears late of the other, agents are killed, claims are
 * removed by force and the object is lost or restored. A process of nvidia-imex is a line here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/turns.h"
#include "rules/rosters.h"

enum { NODES = 5, DOMAINS = 4, SLOTS = 5, STEPS = 60, VERSIONS = STEPS * 4 + 64, EPOCHS = 4096 };

static const char *const node_names[NODES] = { "n0", "n1", "n2", "n3", "n4" };
static const char *const node_ips[NODES] = { "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5" };
static const char *const uids[DOMAINS] = { "A", "B", "C", "D" };
static const char *const infixes[DOMAINS] = { "aa", "bb", "cc", "dd" };

static uint64_t seed;
static unsigned random_below(unsigned n) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return (unsigned)(seed % n);
}

/* ---- the world ---- */

struct agent {
        struct turns_memory m; /* of the object's versions, which all live until the end */
        size_t view;           /* the version that it knows */
        bool known;            /* it knows one */
        bool runs;             /* a process is there, for m.now */
        bool ready;
        bool gone;                        /* no Pod */
        bool ends;                        /* its Pod is being deleted, as the controller sees */
        bool granted;                     /* a claim is prepared, or being prepared, */
        int granted_by;                   /* of this domain */
        struct rosters_report said, told; /* as it says it, as the controller has heard it */
        size_t said_of;                   /* the version that it had seen */
};

static struct arena *memory;
static struct compute_domain_fabric versions[VERSIONS];
static size_t n_versions;
static struct agent agents[NODES];
static int wanted[NODES]; /* -1: nobody */
static bool ending[DOMAINS];
static bool lost;
static size_t lost_at;    /* the version in which nothing is left */
static bool heard[NODES]; /* since the object was lost */
static signed char epoch_node[EPOCHS], epoch_domain[EPOCHS];

static int domain_of(const char *uid) {
        for (int i = 0; i < DOMAINS; i++)
                if (streq(uids[i], uid))
                        return i;
        return -1;
}

static const struct compute_domain_fabric *latest(void) {
        return &versions[n_versions - 1];
}

static void publish(const struct fabric_domain *domains, size_t n, int64_t epoch) {
        assert_true(n_versions < VERSIONS);
        versions[n_versions++] = (struct compute_domain_fabric){
                .domains = (struct fabric_domain *)(uintptr_t)domains, .n_domains = n, .epoch = epoch
        };
}

/* ---- promises ---- */

static void no_index_has_two(void) {
        for (int i = 0; i < NODES; i++)
                for (int j = 0; j < i; j++)
                        if (agents[i].runs && agents[j].runs &&
                            streq(agents[i].m.now.domain, agents[j].m.now.domain))
                                assert_int_not_equal(agents[i].m.now.index, agents[j].m.now.index);
}

/* Nobody dials a node that runs another domain. */
static void no_address_is_told_too_early(void) {
        const struct compute_domain_fabric *f = latest();
        for (size_t d = 0; d < f->n_domains; d++)
                for (size_t s = 0; s < f->domains[d].n_seats; s++) {
                        const struct fabric_seat *seat = &f->domains[d].seats[s];
                        const struct agent *a = &agents[seat->node[1] - '0'];
                        if (*seat->ip && a->runs)
                                assert_string_equal(a->m.now.domain, f->domains[d].owner.uid);
                }
}

/* An epoch is of one node and one domain, for whoever takes it. */
static void take_epoch(int node, const struct turns_seat *s) {
        signed char domain = (signed char)domain_of(s->domain);
        assert_in_range(s->epoch, 1, EPOCHS - 1);
        if (epoch_node[s->epoch] < 0) { /* nobody who lives remembers it */
                epoch_node[s->epoch] = (signed char)node;
                epoch_domain[s->epoch] = domain;
        }
        assert_int_equal(epoch_node[s->epoch], node);
        assert_int_equal(epoch_domain[s->epoch], domain);
}

static bool had_place(const struct compute_domain_fabric *f, int node, int64_t epoch) {
        bool leaving, had = agents[node].told.epoch == epoch;
        for (size_t d = 0; d < f->n_domains; d++) {
                const struct fabric_seat *s = fabric_seat_of(&f->domains[d], node_names[node], &leaving);
                had = had || (s && s->epoch == epoch);
        }
        return had;
}

/* A place that it is given goes with it. */
static void who_ends_takes_no_place(const struct compute_domain_fabric *f, const struct rosters *r) {
        bool leaving;
        for (size_t d = 0; d < r->n_domains; d++)
                for (int i = 0; i < NODES; i++) {
                        const struct fabric_seat *s = fabric_seat_of(&r->domains[d], node_names[i], &leaving);
                        if (s && agents[i].ends)
                                assert_true(had_place(f, i, s->epoch));
                }
}

static void promises(void) {
        no_index_has_two();
        no_address_is_told_too_early();
}

/* ---- the controller ---- */

/* A report names the object that the agent sees. */
static void controller_hears(int i) {
        agents[i].told = agents[i].said;
        heard[i] = heard[i] || agents[i].said_of >= lost_at;
}

static bool controller_writes(bool stale) {
        struct rosters_node nodes[NODES];
        struct rosters_domain domains[DOMAINS];
        struct rosters r;
        for (int i = 0; i < DOMAINS; i++)
                domains[i] = (struct rosters_domain){ .owner = { .kind = "ComputeDomain", .uid = uids[i] },
                                                      .infix = infixes[i],
                                                      .ending = ending[i] };
        for (int i = 0; i < NODES; i++) {
                nodes[i] = (struct rosters_node){ .name = node_names[i],
                                                  .ip = node_ips[i],
                                                  .wanted = wanted[i] >= 0 ? uids[wanted[i]] : NULL,
                                                  .released = wanted[i] < 0 && !stale,
                                                  .quiet = agents[i].gone,
                                                  .ending = agents[i].ends };
                if (!agents[i].gone)
                        nodes[i].report = agents[i].told;
        }
        bool all = true;
        for (int i = 0; i < NODES; i++)
                all = all && (heard[i] || agents[i].gone);
        lost = lost && !all;
        const struct compute_domain_fabric *f = latest();
        rosters_make(&(struct rosters_input){ .old = f->domains,
                                              .n_old = f->n_domains,
                                              .epoch = f->epoch,
                                              .nodes = nodes,
                                              .n_nodes = NODES,
                                              .domains = domains,
                                              .n_domains = DOMAINS,
                                              .slots = SLOTS,
                                              .lost = lost },
                     memory, &r);
        who_ends_takes_no_place(f, &r);
        if (r.changed)
                publish(r.domains, r.n_domains, r.epoch);
        return r.changed;
}

/* ---- an agent ---- */

static void say(struct agent *a) {
        a->said = (struct rosters_report){ .domain = a->m.now.domain,
                                           .infix = a->m.now.infix,
                                           .index = a->m.now.index,
                                           .epoch = a->m.now.epoch,
                                           .left = a->m.left,
                                           .n_left = a->m.n_left,
                                           .seen = a->m.seen };
        a->said_of = a->view;
}

static void end_imex(struct agent *a, bool ordered) {
        /* Running workloads are not disturbed on the word of the API. */
        if (a->runs && a->granted && streq(uids[a->granted_by], a->m.now.domain))
                assert_true(ordered);
        a->runs = a->ready = false;
        turns_left(&a->m, memory, &a->m);
        say(a);
}

static bool agent_acts(struct agent *a, const char *node) {
        struct turns t;
        turns_decide(a->known ? &versions[a->view] : NULL, node, &a->m, memory, &t);
        bool granted = a->granted && streq(uids[a->granted_by], a->m.now.domain);
        bool news = t.memory.n_left != a->m.n_left || t.memory.seen != a->m.seen ||
                    (t.memory.n_left &&
                     memcmp(t.memory.left, a->m.left, t.memory.n_left * sizeof *t.memory.left));
        a->m = t.memory;
        switch (t.step) {
        case TURNS_STAY:
                break;
        case TURNS_LEAVE:
                if (granted)
                        break;
                end_imex(a, false);
                news = true;
                break;
        case TURNS_END:
                end_imex(a, true);
                news = true;
                break;
        case TURNS_ENTER:
                take_epoch(node[1] - '0', &t.seat);
                a->m.now = t.seat;
                a->runs = a->ready = true;
                news = true;
                break;
        }
        say(a);
        return news;
}

/* The container starts again: IMEX is gone, what is remembered is not. */
static void agent_restarts(struct agent *a) {
        a->runs = a->m.now.domain != NULL;
        a->known = false;
}

static void agent_sees(struct agent *a, size_t version) {
        if (a->gone || version < a->view)
                return;
        a->view = version;
        a->known = true;
}

/* The node reboots, or the Pod is removed by force and the kubelet has ended it: nothing runs, nothing is
 * remembered, and what comes then reads the object as it is. */
static void agent_goes(struct agent *a, signed char node) {
        for (int e = 0; e < EPOCHS; e++)
                epoch_node[e] = epoch_node[e] == node ? -1 : epoch_node[e];
        *a = (struct agent){ .gone = true };
}

static void agent_comes(struct agent *a, int i) {
        *a = (struct agent){ .view = n_versions - 1, .known = true };
        say(a);
        a->told = a->said;
        heard[i] = true;
}

/* ---- histories ---- */

static void begin(uint64_t s) {
        seed = s * 2654435761u + 88172645463325252u;
        memory = arena_new(1 << 16);
        n_versions = 0;
        memset(agents, 0, sizeof agents);
        memset(ending, 0, sizeof ending);
        memset(heard, 0, sizeof heard);
        memset(epoch_node, -1, sizeof epoch_node);
        memset(epoch_domain, -1, sizeof epoch_domain);
        lost = false;
        lost_at = 0;
        for (int i = 0; i < NODES; i++)
                wanted[i] = -1;
        publish(NULL, 0, 0);
        for (int i = 0; i < NODES; i++)
                agent_comes(&agents[i], i);
}

static void claims_change(int i) {
        struct agent *a = &agents[i];
        bool ready_here = a->ready && a->granted && streq(uids[a->granted_by], a->m.now.domain);
        (void)ready_here;
        switch (random_below(4)) {
        case 0: /* a pod comes, and its claim is being prepared */
                if (wanted[i] < 0) {
                        int d = (int)random_below(DOMAINS);
                        if (!ending[d])
                                wanted[i] = d;
                }
                break;
        case 1:
                if (wanted[i] >= 0 && !a->granted && !a->gone) {
                        a->granted = true;
                        a->granted_by = wanted[i];
                }
                break;
        case 2: /* the pod has ended */
                a->granted = false;
                if (random_below(2))
                        wanted[i] = -1;
                break;
        default: /* its claim is removed by force under it */
                wanted[i] = -1;
                break;
        }
}

static void step(bool losses) {
        int i = (int)random_below(NODES);
        struct agent *a = &agents[i];
        switch (random_below(losses ? 13 : 12)) {
        case 0:
        case 1:
        case 2:
                claims_change(i);
                break;
        case 3:
        case 4:
                if (!a->gone)
                        controller_hears(i);
                break;
        case 5:
        case 6:
                (void)controller_writes(random_below(4) == 0);
                break;
        case 7:
        case 8:
        case 9:
                agent_sees(a, n_versions - 1 - random_below(n_versions < 4 ? (unsigned)n_versions : 4));
                if (!a->gone)
                        (void)agent_acts(a, node_names[i]);
                break;
        case 10:
                if (a->gone)
                        agent_comes(a, i);
                else if (random_below(6) == 0)
                        agent_goes(a, (signed char)i);
                else if (random_below(4) == 0)
                        a->ends = true;
                else
                        agent_restarts(a);
                break;
        case 11:
                if (random_below(8) == 0)
                        ending[random_below(DOMAINS)] = true;
                break;
        default: /* emptied; the object that is made in its place has no memory of its own */
                if (random_below(4) == 0) {
                        publish(NULL, 0, 0);
                        lost_at = n_versions - 1;
                        memset(heard, 0, sizeof heard);
                        lost = true;
                }
                break;
        }
        for (int d = 0; d < DOMAINS; d++)
                for (int n = 0; ending[d] && n < NODES; n++)
                        if (wanted[n] == d)
                                wanted[n] = -1;
        promises();
}

/* Everybody hears of everything, nobody changes anything: then all is as it should be. */
static void settle(void) {
        for (int i = 0; i < NODES; i++) {
                if (agents[i].ends)
                        agent_goes(&agents[i], (signed char)i);
                if (agents[i].gone)
                        agent_comes(&agents[i], i);
                if (wanted[i] < 0 || (agents[i].granted && agents[i].granted_by != wanted[i]))
                        agents[i].granted = false;
        }
        for (int round = 0, quiet = 0; quiet < 2; round++) {
                bool any = false;
                assert_in_range(round, 0, 60);
                for (int i = 0; i < NODES; i++) {
                        agent_sees(&agents[i], n_versions - 1);
                        any = agent_acts(&agents[i], node_names[i]) || any;
                        controller_hears(i);
                        promises();
                }
                any = controller_writes(false) || any;
                promises();
                quiet = any ? 0 : quiet + 1;
        }
        const struct compute_domain_fabric *f = latest();
        for (int i = 0; i < NODES; i++) {
                const char *uid = wanted[i] >= 0 ? uids[wanted[i]] : NULL;
                assert_true(streq(agents[i].m.now.domain, uid));
                assert_int_equal(agents[i].runs, uid != NULL);
                for (size_t d = 0; d < f->n_domains; d++) {
                        bool leaving;
                        const struct fabric_seat *s = fabric_seat_of(&f->domains[d], node_names[i], &leaving);
                        if (!streq(f->domains[d].owner.uid, uid)) {
                                assert_null(s);
                                continue;
                        }
                        assert_non_null(s);
                        assert_false(leaving);
                        assert_string_equal(s->ip, node_ips[i]);
                        assert_int_equal(s->index, agents[i].m.now.index);
                }
        }
}

static unsigned long histories(void) {
        const char *n = getenv("HISTORIES");
        return n ? strtoul(n, NULL, 10) : 10000;
}

static void run(uint64_t s, bool losses) {
        begin(s);
        for (int i = 0; i < STEPS; i++)
                step(losses);
        settle();
        arena_free(memory);
}

static void random_histories_keep_every_promise(void **state) {
        for (unsigned long s = 1; s <= histories(); s++)
                run(s, false);
}

static void an_object_that_is_emptied_gives_nothing_twice(void **state) {
        for (unsigned long s = 1; s <= histories(); s++)
                run(s, true);
}

/* The object was put back; the agent's word that it never takes that place again is on its way. */
static void a_later_place_in_the_same_domain_wins_over_one_that_was_put_back(void **state) {
        struct arena *a = arena_new(1024);
        struct fabric_seat old = { .node = "n0", .index = 1, .epoch = 15 };
        struct fabric_domain was = {
                .owner.uid = "A", .infix = "aa", .slots = 3, .seats = &old, .n_seats = 1
        };
        const struct rosters_node nodes[] = {
                { .name = "n0",
                  .wanted = "A",
                  .report = { .domain = "A", .infix = "aa", .index = 0, .epoch = 26, .seen = 26 } },
                { .name = "n1", .wanted = "A" },
        };
        const struct rosters_domain domain = { .owner.uid = "A", .infix = "aa" };
        struct rosters r;

        rosters_make(&(struct rosters_input){ .old = &was,
                                              .n_old = 1,
                                              .epoch = 26,
                                              .nodes = nodes,
                                              .n_nodes = 2,
                                              .domains = &domain,
                                              .n_domains = 1,
                                              .slots = 3 },
                     a, &r);
        assert_int_equal(r.domains[0].n_seats, 2);
        assert_int_equal(r.domains[0].n_leaving, 0);
        assert_string_equal(r.domains[0].seats[0].node, "n0");
        assert_int_equal(r.domains[0].seats[0].index, 0);
        assert_int_equal(r.domains[0].seats[0].epoch, 26);
        arena_free(a);
}

static void an_idle_node_says_whether_there_is_no_place_or_no_need(void **state) {
        struct arena *a = arena_new(4096);
        struct condition full = { .type = FABRIC_DOMAIN_FULL, .status = "True", .message = "room for 2" };
        struct compute_domain_fabric f = { .conditions = &full, .n_conditions = 1 };
        struct turns_memory m = { 0 };
        struct turns t;

        turns_decide(&f, "n0", &m, a, &t);
        assert_int_equal(t.step, TURNS_STAY);
        assert_non_null(strstr(t.why, "DomainFull"));
        full.status = "False";
        turns_decide(&f, "n0", &m, a, &t);
        assert_string_equal(t.why, "no IMEX domain wants this node");
        arena_free(a);
}

static void each_domain_has_a_port_that_no_outgoing_connection_takes(void **state) {
        assert_int_equal(rosters_port("9f3c21ab77"), rosters_port("9f3c21ab77"));
        assert_int_not_equal(rosters_port("9f3c21ab77"), rosters_port("9f3c21ab78"));
        for (unsigned i = 0; i < 100000; i++) {
                char infix[11];
                snprintf(infix, sizeof infix, "%010x", i * 2654435761u);
                assert_in_range(rosters_port(infix), ROSTERS_PORT_FIRST, ROSTERS_PORT_LAST);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_histories_keep_every_promise),
                cmocka_unit_test(an_object_that_is_emptied_gives_nothing_twice),
                cmocka_unit_test(a_later_place_in_the_same_domain_wins_over_one_that_was_put_back),
                cmocka_unit_test(an_idle_node_says_whether_there_is_no_place_or_no_need),
                cmocka_unit_test(each_domain_has_a_port_that_no_outgoing_connection_takes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
