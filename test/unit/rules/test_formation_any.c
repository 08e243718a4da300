/* SPDX-License-Identifier: Apache-2.0 */
/* Formations of what nobody thought of: drawn ones, drawn histories, and a very large one. */
#include "formation_world.h"

#include "rules/message.h"

/* Whatever is in the caches: an index is never held by two nodes of a clique, a node is in one clique only,
 * and what was decided is stable.
 */
static void invariants_hold_for_anything(void **state) {
        static const char *const names[] = { "a", "b", "c", "d", "e" }, *const ids[] = { CLIQUE_1, CLIQUE_2,
                                                                                         "", NULL };
        for (int round = 0; round < 10000; round++) {
                struct world w = { .a = arena_new(8192), .max_nodes = 4 };
                for (size_t q = 0; q < 2; q++) {
                        struct buf b = BUF_INIT(4096);
                        for (size_t i = 0; i < 5; i++)
                                if (fake_random(3) == 0)
                                        buf_addf(&b,
                                                 "%s{'nodeName':'%s','ipAddress':'','cliqueID':'%s','index':%"
                                                 "d,'status':'Ready'}",
                                                 b.n ? "," : "", names[i], ids[q], (int)fake_random(4));
                        if (fake_random(2))
                                clique(&w, ids[q], buf_str(&b), INFIX);
                        buf_done(&b);
                }
                for (size_t i = 0; i < 5; i++) {
                        struct seat_facts *n = add(&w, names[i], ids[fake_random(4)]);
                        n->wanted = fake_random(2);
                        if (fake_random(4) == 0)
                                n->node = fake_random(2) ? NULL : fake_node(w.a, names[i], false);
                        if (fake_random(2))
                                n->pod = fake_daemon(w.a, names[i], "10.0.0.1",
                                                     fake_random(5) ? ids[fake_random(2)] : "",
                                                     (int)fake_random(5), fake_random(2));
                }
                w.unsure = fake_random(2);
                make(&w);
                size_t in_cliques = 0;
                for (size_t q = 0; q < w.f.n_imex; q++)
                        for (size_t i = 0; i < w.f.imex[q].imex.n_seats; i++) {
                                const struct seat *d = &w.f.imex[q].imex.seats[i];
                                assert_true(d->index >= 0 && d->index < 4);
                                assert_true(i == 0 || d->index > w.f.imex[q].imex.seats[i - 1].index);
                                assert_string_equal(member(&w, d->node)->seat.clique_id,
                                                    w.f.imex[q].imex.clique_id);
                                in_cliques++;
                        }
                size_t with_index = 0;
                for (size_t i = 0; i < w.f.n_members; i++)
                        with_index += w.f.members[i].seat.index >= 0;
                assert_int_equal(in_cliques, with_index);
                arena_free(w.a);
        }
}

static void same_text(const char *a, const char *b) {
        assert_string_equal(str_or(a, "(none)"), str_or(b, "(none)"));
}

static void same_formation(const struct formation *a, const struct formation *b) {
        assert_int_equal(a->recheck_s, b->recheck_s);
        assert_int_equal(a->needs_lost, b->needs_lost);
        same_text(a->hint, b->hint);
        same_text(a->adopted, b->adopted);
        assert_int_equal(a->n_members, b->n_members);
        for (size_t i = 0; i < a->n_members; i++) {
                const struct formed_seat *x = &a->members[i], *y = &b->members[i];
                same_text(x->seat.node, y->seat.node);
                same_text(x->seat.ip, y->seat.ip);
                same_text(x->seat.clique_id, y->seat.clique_id);
                same_text(x->message, y->message);
                same_text(x->seat.boot_id, y->seat.boot_id);
                assert_int_equal(x->seat.index, y->seat.index);
                assert_int_equal(x->written, y->written);
                assert_int_equal(x->listed, y->listed);
                assert_int_equal(x->why, y->why);
                assert_int_equal(x->peers_connected, y->peers_connected);
                assert_int_equal(x->peers_known, y->peers_known);
                assert_int_equal(x->wanted, y->wanted);
                assert_int_equal(x->foreign, y->foreign);
                assert_int_equal(x->address_first, y->address_first);
                assert_int_equal(x->of_imex, y->of_imex);
        }
        assert_int_equal(a->n_imex, b->n_imex);
        for (size_t i = 0; i < a->n_imex; i++) {
                const struct formed_imex *x = &a->imex[i], *y = &b->imex[i];
                same_text(x->imex.clique_id, y->imex.clique_id);
                same_text(x->imex.infix, y->imex.infix);
                same_text(x->imex.num_nodes, y->imex.num_nodes);
                same_text(x->imex.freed, y->imex.freed);
                assert_ptr_equal(x->old, y->old);
                assert_int_equal(x->n_listed, y->n_listed);
                assert_int_equal(x->adopted, y->adopted);
                assert_int_equal(x->changed, y->changed);
                assert_int_equal(x->urgent, y->urgent);
                assert_int_equal(x->imex.n_seats, y->imex.n_seats);
                for (size_t k = 0; k < x->imex.n_seats; k++) {
                        same_text(x->imex.seats[k].node, y->imex.seats[k].node);
                        same_text(x->imex.seats[k].ip, y->imex.seats[k].ip);
                        same_text(x->imex.seats[k].status, y->imex.seats[k].status);
                        assert_int_equal(x->imex.seats[k].index, y->imex.seats[k].index);
                }
        }
}

static void random_node(struct world *w, struct seat_facts *n, const char *const *ids) {
        *n = (struct seat_facts){ .name = n->name, .clique = ids[fake_random(4)], .wanted = fake_random(4) };
        if (fake_random(6))
                n->node = fake_node(w->a, n->name, fake_random(6));
        else
                n->gone_since = fake_random(2) ? w->now - 50 : 0;
        if (fake_random(3))
                n->pod = fake_daemon(w->a, n->name, "10.0.0.1", fake_random(5) ? ids[fake_random(2)] : "",
                                     (int)fake_random(5), fake_random(4));
        n->held_by = fake_random(8) ? NULL : "a ComputeDomain of another namespace";
}

static void random_clique(struct world *w, const char *id, size_t at) {
        struct buf b = BUF_INIT(4096);
        size_t n = w->n_cliques;
        for (size_t i = 0; i < w->n_nodes; i++)
                if (fake_random(2))
                        buf_addf(&b,
                                 "%s{'nodeName':'%s','ipAddress':'','cliqueID':'%s','index':%d,'status':'"
                                 "Ready'}",
                                 b.n ? "," : "", w->nodes[i].name, id, (int)fake_random(4));
        clique(w, id, buf_str(&b), fake_random(3) ? INFIX : "");
        w->cliques[at] = w->cliques[n];
        w->n_cliques = n;
        buf_done(&b);
}

/* Whatever changes from one look to the next: what is remembered of the last one changes nothing but the time
 * that it takes. */
static void what_is_remembered_changes_nothing(void **state) {
        static const char *const names[] = { "a", "b", "c", "d", "e", "f" }, *const ids[] = { CLIQUE_1,
                                                                                              CLIQUE_2, "",
                                                                                              NULL };
        uint64_t version = 0;
        for (int history = 0; history < 300; history++) {
                struct world w = { .a = arena_new(8192), .max_nodes = 4, .now = 1000, .n_cliques = 2 };
                struct formation_memory *memory = formation_memory_new();
                for (size_t i = 0; i < 6; i++)
                        random_node(&w, add(&w, names[i], NULL), ids);
                random_clique(&w, ids[0], 0);
                random_clique(&w, ids[1], 1);
                for (size_t i = 0; i < 6; i++)
                        w.nodes[i].version = ++version;
                for (int step = 0; step < 30; step++) {
                        uint64_t what = fake_random(17);
                        size_t at = fake_random(w.n_nodes);
                        if (what < 8) {
                                random_node(&w, &w.nodes[at], ids);
                                w.nodes[at].version = ++version;
                        } else if (what < 10) {
                                random_clique(&w, ids[what % 2], what % 2);
                                for (size_t i = 0; i < w.n_nodes; i++)
                                        w.nodes[i].version = ++version;
                        } else if (what == 10 && w.n_nodes > 2) {
                                memmove(&w.nodes[at], &w.nodes[at + 1],
                                        (w.n_nodes - at - 1) * sizeof w.nodes[0]);
                                w.n_nodes--;
                        } else if (what == 11) {
                                w.stale = !w.stale;
                        } else if (what == 12) {
                                w.max_nodes = 2 + (int64_t)fake_random(4);
                        } else if (what == 13) {
                                w.adopted = fake_random(2) ? UID_A ":" CLIQUE_1 : NULL;
                        } else if (what == 14) {
                                w.now += 20;
                        } else if (what == 16) {
                                w.unsure = !w.unsure;
                                for (size_t i = 0; i < w.n_nodes; i++)
                                        w.nodes[i].version = ++version;
                        } else if (what == 15) {
                                random_clique(&w, ids[step % 2], w.n_cliques);
                                w.lost[0] = w.cliques[w.n_cliques];
                                w.n_lost = !w.n_lost;
                                for (size_t i = 0; i < w.n_nodes; i++)
                                        w.nodes[i].version = ++version;
                        }
                        w.memory = memory;
                        make(&w);
                        struct formation with = w.f;
                        w.memory = NULL;
                        make(&w);
                        same_formation(&with, &w.f);
                }
                formation_memory_free(memory);
                arena_free(w.a);
        }
}

/* A domain over all of a very large cluster: 10,000 nodes in 556 racks. Decided at each change, so it must be
 * cheap; and numbered without gaps. */
static void ten_thousand_nodes(void **state) {
        enum { NODES = 10000, RACK = 18, RACKS = (NODES + RACK - 1) / RACK };
        struct arena *a = arena_new(1 << 20);
        struct seat_facts *nodes = arena_alloc(a, NODES * sizeof *nodes);
        const struct node *ready = fake_node(a, "any", true);
        const char *ids[RACKS];
        const struct clique **cliques = arena_alloc(a, RACKS * sizeof *cliques);
        for (size_t i = 0; i < RACKS; i++)
                ids[i] = message_of(a, "7a3b2f10-1111-4222-8333-444455556666.%zu", i);
        for (size_t i = 0; i < NODES; i++)
                nodes[i] = (struct seat_facts){ .name = message_of(a, "node-%05zu", i),
                                                .node = ready,
                                                .wanted = true,
                                                .clique = ids[i / RACK] };
        struct formation_input in = {
                .nodes = nodes, .n_nodes = NODES, .max_nodes = RACK, .dns_names = true, .infix = "abc"
        };
        in.cd = fake_cd_json(a, "{'metadata':{'name':'cd','namespace':'w','uid':'" UID_A
                                "','resourceVersion':'1'}}");
        struct formation first, second;
        formation_make(&in, a, &first);
        assert_int_equal(first.n_imex, RACKS);
        for (size_t i = 0; i < NODES; i++)
                assert_int_equal(first.members[i].seat.index, i % RACK);
        for (size_t i = 0; i < RACKS; i++) { /* what was written comes back, and changes nothing */
                struct clique *c = arena_alloc(a, sizeof *c);
                *c = (struct clique){ .imex = first.imex[i].imex };
                cliques[i] = c;
        }
        in.cliques = cliques;
        in.n_cliques = RACKS;
        formation_make(&in, a, &second);
        for (size_t i = 0; i < RACKS; i++)
                assert_false(second.imex[i].changed);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(invariants_hold_for_anything),
                cmocka_unit_test(what_is_remembered_changes_nothing),
                cmocka_unit_test(ten_thousand_nodes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
