/* SPDX-License-Identifier: Apache-2.0 */
/* The places that agents get in a fabric's object, whatever tenants create and one node reports. */
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
#include "render/objects.h"
#include "rules/rosters.h"

enum { BODY = 1 << 20 };

struct world {
        struct arena *a;
        struct fabric_domain *old;
        size_t n_old;
        int64_t epoch;
};

static void make(struct world *w, const struct rosters_node *nodes, size_t n_nodes, struct rosters_domain *domains,
                 size_t n_domains, struct rosters *ret) {
        rosters_make(&(struct rosters_input){ .old = w->old,
                                              .n_old = w->n_old,
                                              .epoch = w->epoch,
                                              .nodes = nodes,
                                              .n_nodes = n_nodes,
                                              .domains = domains,
                                              .n_domains = n_domains,
                                              .slots = 18 },
                     w->a, ret);
        w->old = ret->domains;
        w->n_old = ret->n_domains;
        w->epoch = ret->epoch;
}

/* What is known of the domains: those that are listed, and one more. */
static struct rosters_domain *domains_of(struct world *w, const struct fabric_owner *more, bool idle, size_t *ret_n) {
        struct rosters_domain *d = arena_alloc(w->a, (w->n_old + 1) * sizeof *d);
        bool is_listed = false;
        for (size_t i = 0; i < w->n_old; i++) {
                d[i] = (struct rosters_domain){ .owner = w->old[i].owner, .infix = w->old[i].infix };
                d[i].idle = idle && !w->old[i].n_seats && !w->old[i].n_leaving;
                is_listed = is_listed || streq(w->old[i].owner.uid, more->uid);
        }
        *ret_n = w->n_old;
        if (!is_listed)
                d[(*ret_n)++] = (struct rosters_domain){ .owner = *more, .infix = more->uid + 26 };
        return d;
}

static size_t body_bytes(const struct world *w) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(BODY);
        struct compute_domain_fabric was = { .o.meta = { .name = "c.1", .uid = "u", .rv = "1" } }, f = was;
        f.domains = w->old;
        f.n_domains = w->n_old;
        f.epoch = w->epoch;
        objects_fabric(&f, &was, &b);
        assert_false(b.failed);
        return b.n;
}

/* The node comes, has its place, and has left it; a third step would tell nothing new. */
static void visit(struct world *w, const struct fabric_owner *owner, bool idle) {
        for (int step = 0; step < 3; step++) {
                int64_t left = w->epoch;
                struct rosters_node n = { .name = "n1", .ip = "10.0.0.1", .boot_id = "b" };
                struct rosters r;
                size_t n_domains;
                struct rosters_domain *d = domains_of(w, owner, idle, &n_domains);
                if (step < 2)
                        n.wanted = owner->uid;
                if (step == 1)
                        n.report = (struct rosters_report){ owner->uid, owner->uid + 26, 0, w->epoch, NULL, 0, w->epoch };
                if (step == 2) {
                        n.released = true;
                        n.report = (struct rosters_report){ .left = &left, .n_left = 1, .seen = w->epoch };
                }
                make(w, &n, 1, d, n_domains, &r);
        }
}

static struct fabric_owner long_owner(struct arena *a, int number) {
        char *name = arena_alloc(a, 254), *ns = arena_alloc(a, 64);
        memset(name, 'a', 253);
        memset(ns, 'b', 63);
        return (struct fabric_owner){ "ComputeDomain", ns, name,
                                      arena_printf(a, "aaaaaaaa-0000-4000-8000-%012d", number) };
}

static void a_domain_that_is_idle_is_not_listed_any_more(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1 << 20);
        struct world w = { .a = a };
        for (int i = 0; i < 10; i++) {
                struct fabric_owner owner = long_owner(a, i);
                visit(&w, &owner, true);
                assert_int_equal(w.n_old, 1);
        }
}

/* A tenant is quicker than the minute after which they go. */
static void however_many_domains_had_a_node_the_object_has_room(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1 << 20);
        struct world w = { .a = a, .n_old = ROSTERS_DOMAINS_MOST - 2 };
        w.old = arena_alloc(a, w.n_old * sizeof *w.old);
        for (size_t i = 0; i < w.n_old; i++)
                w.old[i] = (struct fabric_domain){ .owner = long_owner(a, (int)i), .infix = "0123456789", .slots = 18, .port = 28000 };
        for (int i = 0; i < 5; i++) {
                struct fabric_owner owner = long_owner(a, ROSTERS_DOMAINS_MOST + i);
                visit(&w, &owner, false);
        }
        assert_int_equal(w.n_old, ROSTERS_DOMAINS_MOST);
        assert_in_range(body_bytes(&w), 1, BODY);
}

static void an_idle_domain_that_is_wanted_again_stays(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1 << 16);
        struct world w = { .a = a };
        struct fabric_owner owner = { "ComputeDomain", "x", "y", "aaaaaaaa-0000-4000-8000-000000000001" };
        struct rosters r;
        size_t n;
        visit(&w, &owner, false);
        struct rosters_node node = { .name = "n2", .ip = "10.0.0.2", .wanted = owner.uid };
        struct rosters_domain *d = domains_of(&w, &owner, true, &n);
        make(&w, &node, 1, d, n, &r);
        assert_int_equal(r.n_domains, 1);
        assert_int_equal(r.domains[0].seats[0].index, 1); /* not the one that was just left */
}

static void where_all_domains_have_nodes_a_further_one_is_refused_and_counted(void **state) {
        enum { N = ROSTERS_DOMAINS_MOST + 2 };
        _cleanup_(arena_freep) struct arena *a = arena_new(1 << 20);
        struct world w = { .a = a };
        struct rosters_node *nodes = arena_alloc(a, N * sizeof *nodes);
        struct rosters_domain *domains = arena_alloc(a, N * sizeof *domains);
        struct rosters r;
        for (int i = 0; i < N; i++) {
                const char *uid = arena_printf(a, "aaaaaaaa-0000-4000-8000-%012d", i);
                nodes[i] = (struct rosters_node){ .name = arena_printf(a, "n%05d", i), .ip = "", .wanted = uid };
                domains[i] = (struct rosters_domain){ .owner = { "ComputeDomain", "x", "y", uid }, .infix = uid + 26 };
        }
        make(&w, nodes, N, domains, N, &r);
        assert_int_equal(r.n_domains, ROSTERS_DOMAINS_MOST);
        assert_int_equal(r.n_refused, 2);
        /* What a node has already is listed in any case. */
        nodes[N - 1].report = (struct rosters_report){ .domain = nodes[N - 1].wanted, .index = 3, .epoch = 1 };
        make(&w, nodes, N, domains, N, &r);
        assert_int_equal(r.n_domains, ROSTERS_DOMAINS_MOST + 1);
        assert_int_equal(r.n_refused, 1);
}

static void a_node_cannot_use_up_the_epochs_of_a_fabric(void **state) {
        static const int64_t lies[] = { INT64_MAX, INT64_MAX - 1, 10 + ROSTERS_EPOCHS_AHEAD + 1 };
        struct rosters_domain d = { .owner = { "ComputeDomain", "x", "y", "d" }, .infix = "abc" };
        for (size_t i = 0; i < 2 * ARRAY_LEN(lies); i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(1 << 16);
                struct world w = { .a = a, .epoch = 10 };
                struct rosters_node n[] = { { .name = "evil", .ip = "10.0.0.1" },
                                            { .name = "n1", .ip = "10.0.0.2", .wanted = "d" } };
                struct rosters r;
                if (i % 2)
                        n[0].report.seen = lies[i / 2];
                else
                        n[0].report = (struct rosters_report){ .domain = "d", .epoch = lies[i / 2] };
                make(&w, n, 2, &d, 1, &r);
                assert_int_equal(r.epoch, 11);
                assert_int_equal(r.domains[0].n_seats, 1);
                assert_int_equal(r.domains[0].n_leaving, 0);
        }
}

static void the_last_epoch_is_given_to_nobody_twice(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1 << 16);
        struct world w = { .a = a, .epoch = INT64_MAX };
        struct rosters_domain d = { .owner = { "ComputeDomain", "x", "y", "d" }, .infix = "abc" };
        struct rosters_node n = { .name = "n1", .ip = "", .wanted = "d" };
        struct rosters r;
        make(&w, &n, 1, &d, 1, &r);
        assert_int_equal(r.epoch, INT64_MAX);
        assert_int_equal(r.n_domains, 0);
}

/* An object that was restored is behind by as many places as were given since. */
static void an_epoch_that_an_object_was_restored_behind_counts(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1 << 16);
        struct world w = { .a = a, .epoch = 10 };
        struct rosters_domain d = { .owner = { "ComputeDomain", "x", "y", "d" }, .infix = "abc" };
        struct rosters_node n[] = { { .name = "n0", .ip = "", .report.seen = 500 },
                                    { .name = "n1", .ip = "", .wanted = "d" } };
        struct rosters r;
        make(&w, n, 2, &d, 1, &r);
        assert_int_equal(r.epoch, 501);
}

static void an_index_for_which_there_is_no_room_blocks_none(void **state) {
        static const int64_t lies[] = { 18, -1, FABRIC_SLOTS_MOST, INT64_MAX, INT64_MIN };
        struct rosters_domain d = { .owner = { "ComputeDomain", "x", "y", "d" }, .infix = "abc" };
        for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(1 << 16);
                struct world w = { .a = a, .epoch = 10 };
                struct rosters_node n = { .name = "evil", .ip = "", .wanted = "d" };
                struct rosters r;
                n.report = (struct rosters_report){ .domain = "d", .index = lies[i], .epoch = 9 };
                make(&w, &n, 1, &d, 1, &r);
                for (size_t k = 0; k < r.n_domains; k++)
                        for (size_t j = 0; j < r.domains[k].n_seats; j++)
                                assert_in_range(r.domains[k].seats[j].index, 0, 17);
        }
}

/* ---- any history: honest nodes take and leave places, one lies, and the object is restored now and then ---- */

enum { NODES = 6, DOMAINS = 3, STEPS = 400 };

struct honest {
        const char *domain; /* its place, NULL: none */
        int64_t index, epoch, seen, left[STEPS];
        size_t n_left;
};

static const char *const names[NODES] = { "n0", "n1", "n2", "n3", "n4", "n5" };
static const char *const uids[DOMAINS] = { "d0", "d1", "d2" };

/* It takes the place that the object gives it, and leaves the one that the object orders it to. */
static void obey(struct honest *h, const char *name, const struct world *w) {
        for (size_t i = 0; i < w->n_old; i++) {
                bool leaving;
                const struct fabric_seat *s = fabric_seat_of(&w->old[i], name, &leaving);
                if (!s)
                        continue;
                if (leaving && streq(h->domain, w->old[i].owner.uid) && h->epoch == s->epoch) {
                        h->left[h->n_left++] = h->epoch;
                        h->domain = NULL;
                } else if (!leaving && !h->domain && s->epoch > h->seen) {
                        h->domain = w->old[i].owner.uid;
                        h->index = s->index;
                        h->epoch = s->epoch;
                } else if (leaving && !h->domain && s->epoch > h->seen) {
                        h->left[h->n_left++] = s->epoch;
                }
                h->seen = s->epoch > h->seen ? s->epoch : h->seen;
        }
}

static void run_history(unsigned seed) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1 << 20);
        struct world w = { .a = a }, kept = w;
        struct rosters_domain domains[DOMAINS];
        struct honest h[NODES] = { 0 };
        srand(seed);
        for (size_t i = 0; i < DOMAINS; i++)
                domains[i] = (struct rosters_domain){ .owner = { "ComputeDomain", "x", uids[i], uids[i] }, .infix = uids[i] };
        for (int step = 0; step < STEPS; step++) {
                struct rosters_node n[NODES];
                struct rosters r;
                for (size_t i = 0; i < NODES; i++) {
                        n[i] = (struct rosters_node){ .name = names[i], .ip = "", .boot_id = "" };
                        n[i].wanted = rand() % 2 ? uids[rand() % DOMAINS] : NULL;
                        n[i].released = !n[i].wanted;
                        n[i].report = (struct rosters_report){ h[i].domain, h[i].domain, h[i].index, h[i].epoch, h[i].left, h[i].n_left, h[i].seen };
                }
                int64_t any[] = { INT64_MAX, INT64_MIN, rand() % 100, w.epoch + rand() % 3 };
                n[0].report = (struct rosters_report){ uids[rand() % DOMAINS], "z", any[rand() % 4], any[rand() % 4], NULL, 0, any[rand() % 4] };
                make(&w, n, NODES, domains, DOMAINS, &r);
                for (size_t i = 1; i < NODES; i++)
                        if (rand() % 2)
                                obey(&h[i], names[i], &w);
                /* No two honest nodes run with one index, nor with one epoch. */
                for (size_t i = 1; i < NODES; i++)
                        for (size_t k = 1; k < i; k++)
                                if (h[i].domain && h[k].domain) {
                                        assert_int_not_equal(h[i].epoch, h[k].epoch);
                                        assert_true(!streq(h[i].domain, h[k].domain) || h[i].index != h[k].index);
                                }
                assert_true(w.epoch >= 0 && w.epoch < INT64_C(1) << 33);
                if (rand() % 40 == 0)
                        kept = w;
                else if (rand() % 80 == 0)
                        w = kept;
        }
}

static void whatever_one_node_reports_the_others_never_share_a_place(void **state) {
        for (unsigned seed = 1; seed <= 200; seed++)
                run_history(seed);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_domain_that_is_idle_is_not_listed_any_more),
                cmocka_unit_test(however_many_domains_had_a_node_the_object_has_room),
                cmocka_unit_test(an_idle_domain_that_is_wanted_again_stays),
                cmocka_unit_test(where_all_domains_have_nodes_a_further_one_is_refused_and_counted),
                cmocka_unit_test(a_node_cannot_use_up_the_epochs_of_a_fabric),
                cmocka_unit_test(the_last_epoch_is_given_to_nobody_twice),
                cmocka_unit_test(an_epoch_that_an_object_was_restored_behind_counts),
                cmocka_unit_test(an_index_for_which_there_is_no_room_blocks_none),
                cmocka_unit_test(whatever_one_node_reports_the_others_never_share_a_place),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
