/* SPDX-License-Identifier: Apache-2.0 */
#include "../api/fake.h"

#include "controller/seats.h"
#include "rules/message.h"

enum { NAMES = 8, DOMAINS = 3 };
static const char *const names[NAMES] = { "a", "b", "c", "d", "e", "f", "g", "h" }, *const uids[DOMAINS] = {
        "u-1", "u-2", "u-3"
};

/* What is true, of each domain and node; looked at only through the source. */
struct truth {
        bool place, wanted, gone, held, pod;
        char *clique; /* freed when it changes, as an object is */
};
struct world {
        struct truth is[DOMAINS][NAMES];
        struct node nodes[NAMES];
        struct pod pods[DOMAINS][NAMES];
        size_t looks;
};

static size_t number_of(const char *const *list, const char *name) {
        size_t i = 0;
        while (!streq(list[i], name))
                i++;
        return i;
}

static void name_all(void *u, const char *uid, seats_add_fn *add, void *seats) {
        struct world *w = u;
        for (size_t i = NAMES; i-- > 0;)
                if (w->is[number_of(uids, uid)][i].place) {
                        add(seats, names[i]);
                        add(seats, names[i]);
                }
}

static bool look(void *u, const char *uid, struct seat_facts *seat, struct arena *a) {
        struct world *w = u;
        size_t d = number_of(uids, uid), i = number_of(names, seat->name);
        const struct truth *t = &w->is[d][i];
        w->looks++;
        seat->node = t->gone ? NULL : &w->nodes[i];
        seat->gone_since = t->gone ? 7 : 0;
        seat->wanted = t->wanted;
        seat->held_by = t->held ? message_of(a, "ComputeDomain %s", uid) : NULL;
        seat->clique = t->clique;
        seat->pod = t->pod ? &w->pods[d][i] : NULL;
        return t->place;
}

static void is_as_gathered_anew(struct world *w, struct seats *s, const struct seats_source *source,
                                size_t d) {
        const struct seat_facts *have, *want;
        struct seats *fresh = seats_new(source);
        size_t n = seats_of(s, uids[d], &have), n_want = seats_of(fresh, uids[d], &want);
        assert_int_equal(n, n_want);
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(have[i].name, want[i].name);
                assert_ptr_equal(have[i].node, want[i].node);
                assert_ptr_equal(have[i].pod, want[i].pod);
                assert_int_equal(have[i].gone_since, want[i].gone_since);
                assert_int_equal(have[i].wanted, want[i].wanted);
                assert_string_equal(str_or(have[i].held_by, ""), str_or(want[i].held_by, ""));
                assert_string_equal(str_or(have[i].clique, ""), str_or(want[i].clique, ""));
        }
        seats_free(fresh);
}

static void change(struct world *w, size_t d, size_t i) {
        struct truth *t = &w->is[d][i];
        t->place = fake_random(4);
        t->wanted = fake_random(3);
        t->gone = fake_random(5) == 0;
        t->held = fake_random(5) == 0;
        t->pod = fake_random(2);
        free(t->clique);
        t->clique = xstrdup(fake_random(2) ? CLIQUE_1 : CLIQUE_2);
}

/* What is kept from look to look is what somebody finds who gathers everything. */
static void seats_are_what_is_gathered_anew(void **state) {
        for (int history = 0; history < 300; history++) {
                struct world w = { 0 };
                struct seats_source source = { name_all, look, &w };
                struct seats *s = seats_new(&source);
                for (size_t d = 0; d < DOMAINS; d++)
                        for (size_t i = 0; i < NAMES; i++)
                                change(&w, d, i);
                for (int step = 0; step < 60; step++) {
                        size_t d = fake_random(DOMAINS), i = fake_random(NAMES);
                        switch (fake_random(5)) {
                        case 0:
                                for (d = 0; d < DOMAINS;
                                     d++) /* about a node: who has no place hears nothing */
                                        if (w.is[d][i].place) {
                                                bool place = w.is[d][i].place;
                                                change(&w, d, i);
                                                w.is[d][i].place = place;
                                        }
                                seats_touch_node(s, names[i]);
                                break;
                        case 1:
                                change(&w, d, i);
                                seats_touch_all(s, fake_random(4) ? uids[d] : NULL);
                                break;
                        case 2:
                                seats_forget(s, uids[d]);
                                break;
                        default:
                                change(&w, d, i);
                                seats_touch(s, uids[d], names[i]);
                        }
                        is_as_gathered_anew(&w, s, &source, fake_random(DOMAINS));
                }
                seats_free(s);
                for (size_t d = 0; d < DOMAINS; d++)
                        for (size_t i = 0; i < NAMES; i++)
                                free(w.is[d][i].clique);
        }
}

static void a_change_costs_one_look(void **state) {
        struct world w = { 0 };
        struct seats *s = seats_new(&(struct seats_source){ name_all, look, &w });
        const struct seat_facts *list;
        for (size_t i = 0; i < NAMES; i++)
                w.is[0][i] = (struct truth){ .place = true, .wanted = true };
        assert_int_equal(seats_of(s, uids[0], &list), NAMES);
        uint64_t before[NAMES];
        for (size_t i = 0; i < NAMES; i++)
                before[i] = list[i].version;
        w.looks = 0;
        seats_of(s, uids[0], &list);
        assert_int_equal(w.looks, 0);
        seats_touch(s, uids[0], "c");
        for (int i = 0; i < 100; i++)
                seats_touch_node(s, "c");
        seats_of(s, uids[0], &list);
        assert_int_equal(w.looks, 1);
        for (size_t i = 0; i < NAMES; i++)
                assert_int_equal(list[i].version != before[i], i == 2);
        seats_free(s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(seats_are_what_is_gathered_anew),
                cmocka_unit_test(a_change_costs_one_look),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
