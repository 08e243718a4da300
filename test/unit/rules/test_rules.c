/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include "rules/rules.h"

/* ---- the labelling rule ---- */

#define GRANT(domain, claim, at)                                                                             \
        (struct allocation) {                                                                                \
                .domain_uid = (domain), .claim_uid = (claim), .created = (at)                                \
        }

static void the_label_follows_the_oldest_claim(void **state) {
        const struct allocation a = GRANT("a", "1", 10), b = GRANT("b", "2", 20),
                                b_older = GRANT("b", "3", 5), b_same = GRANT("b", "0", 10),
                                b_before = GRANT("b", "4", 9);
        const struct {
                const char *current;
                struct allocation claims[3];
                size_t n;
                const char *want;
        } cases[] = {
                { NULL, { { 0 } }, 0, NULL },
                { "a", { { 0 } }, 0, NULL }, /* no claim justifies it any more */
                { NULL, { a }, 1, "a" },
                { "a", { a, b_older }, 2, "a" }, /* the ComputeDomain that has the node keeps it */
                { "a", { b_older, a }, 2, "a" },
                { "c", { a, b_older }, 2, "b" }, /* otherwise the oldest claim counts */
                { NULL, { b, a }, 2, "a" },
                { NULL, { a, b_before }, 2, "b" },
                { NULL,
                  { a, b_same },
                  2,
                  "b" }, /* of the same second: by UID, so that every replica decides the same */
                { NULL, { b_same, a }, 2, "b" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                if (!streq(rules_label(cases[i].current, cases[i].claims, cases[i].n), cases[i].want))
                        fail_msg("case %zu", i);
}

/* A node is labelled only with a justification, and the decision is stable: after it was applied, nothing
 * changes any more. */
/* failure: an old ComputeDomain is cleaned up -> the label of a new one stays */
static void a_label_is_justified_and_stable(void **state) {
        static const char *const uids[] = { "a", "b", "c", "d" }, *const claim_uids[] = { "1", "2", "3", "4",
                                                                                          "5" };
        for (int round = 0; round < 400000; round++) {
                struct allocation claims[5];
                size_t n = fake_random(6);
                for (size_t i = 0; i < n; i++)
                        claims[i] = GRANT(uids[fake_random(4)], claim_uids[i], (int64_t)fake_random(3));
                const char *current = fake_random(3) ? uids[fake_random(4)] : NULL,
                           *got = rules_label(current, claims, n);
                bool justified = !got, held = false;
                for (size_t i = 0; i < n; i++) {
                        justified = justified || streq(claims[i].domain_uid, got);
                        held = held || streq(claims[i].domain_uid, current);
                }
                assert_true(justified);
                assert_true(!n == !got);
                assert_true(!held || streq(got, current));
                assert_true(streq(rules_label(got, claims, n), got));
        }
}

/* failure: a person or script changes our label -> the change is recognized as foreign */
static void a_foreign_change_of_a_label_is_recognized(void **state) {
        static const struct {
                struct rules_relabel_facts f;
                bool is;
        } cases[] = {
                { { "a", NULL }, true }, /* set by hand */
                { { "a", "b" }, true },  /* over the right one */
                { { NULL, "b" }, true }, /* removed */
                { { "b", "b" }, false },
                { { NULL, NULL }, false },
                { { "a", NULL, .sending = true }, false },
                { { "a", "b", .wrote = true, .written = "a" }, false }, /* its claim has ended since */
                { { "a", "b", .wrote = true, .written = "b" }, true },
                { { NULL, "b", .wrote = true }, false },
                { { "a", "b", .wrote = true }, true },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                if (rules_relabelled(&cases[i].f) != cases[i].is)
                        fail_msg("case %zu", i);
}

static void the_gpu_label_of_another_owner_stays(void **state) {
        static const struct {
                bool enabled;
                const char *current, *ours, *clique, *want_label, *want_ours;
        } cases[] = {
                { true, NULL, NULL, "x.1", "x.1", "x.1" },
                { true, "x.1", "x.1", "x.2", "x.2", "x.2" },
                { true, "x.1", "x.1", "x.1", "x.1", "x.1" },
                { true, "x.1", "x.1", NULL, "x.1", "x.1" }, /* a missing slice removes nothing */
                { true, "x.1", "x.1", "", NULL, NULL },     /* no partition any more */
                { true, "gfd", NULL, "x.1", "gfd", NULL },  /* another owner */
                { true, "x.1", NULL, "x.1", "x.1", NULL },  /* another owner with the same value */
                { true, "gfd", "x.1", "x.1", "gfd", NULL }, /* another writer has changed it */
                { true, NULL, "x.1", "x.1", "x.1", "x.1" }, /* removed by hand */
                { true, NULL, NULL, "", NULL, NULL },
                { true, NULL, NULL, NULL, NULL, NULL },
                { false, "x.1", "x.1", "x.1", NULL, NULL }, /* switched off: the driver's label is removed */
                { false, "gfd", NULL, "x.1", "gfd", NULL }, /* and a label of another owner stays */
                { false, NULL, NULL, "x.1", NULL, NULL },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const char *label, *ours;
                bool write = rules_gpu_label(cases[i].enabled, cases[i].current, cases[i].ours,
                                             cases[i].clique, &label, &ours);
                if (!streq(label, cases[i].want_label) || !streq(ours, cases[i].want_ours) ||
                    write != (!streq(label, cases[i].current) || !streq(ours, cases[i].ours)))
                        fail_msg("case %zu: %s %s", i, label ? label : "-", ours ? ours : "-");
                assert_false(rules_gpu_label(cases[i].enabled, label, ours, cases[i].clique, &label,
                                             &ours)); /* stable */
        }
}

/* ---- the index rule ---- */

static void indices_are_kept_and_the_longest_free_is_reused(void **state) {
        struct arena *a = arena_new(1024);
        struct rules_index out[8];
        const int64_t *freed;
        size_t n_freed;
        /* lowest first */
        rules_indices(
                &(struct rules_indices_input){ NULL, 0, NULL, 0, (const char *const[]){ "x", "y" }, 2, 18 },
                a, out, &freed, &n_freed);
        assert_int_equal(out[0].index, 0);
        assert_int_equal(out[1].index, 1);
        assert_int_equal(n_freed, 0);
        /* nodes keep their index, and used indices come last */
        rules_indices(
                &(struct rules_indices_input){ (const struct rules_index[]){ { .node = "x", .index = 0 },
                                                                             { .node = "y", .index = 1 },
                                                                             { .node = "z", .index = 2 } },
                                               3, NULL, 0, (const char *const[]){ "z", "w" }, 2, 18 },
                a, out, &freed, &n_freed);
        assert_int_equal(out[0].index, 2);
        assert_int_equal(out[1].index, 3);
        assert_int_equal(n_freed, 2);
        assert_int_equal(freed[0], 0);
        assert_int_equal(freed[1], 1);
        /* of the used indices, the one that has been free for longest */
        rules_indices(
                &(struct rules_indices_input){ (const struct rules_index[]){ { .node = "z", .index = 2 } }, 1,
                                               (const int64_t[]){ 1, 0 }, 2,
                                               (const char *const[]){ "z", "w" }, 2, 3 },
                a, out, &freed, &n_freed);
        assert_int_equal(out[1].index, 1);
        assert_int_equal(n_freed, 1);
        assert_int_equal(freed[0], 0);
        /* full */
        rules_indices(
                &(struct rules_indices_input){ (const struct rules_index[]){ { .node = "x", .index = 0 },
                                                                             { .node = "y", .index = 1 } },
                                               2, NULL, 0, (const char *const[]){ "x", "y", "z" }, 3, 2 },
                a, out, &freed, &n_freed);
        assert_int_equal(out[2].index, -1);
        /* two nodes hold the same index: the first keeps it */
        rules_indices(
                &(struct rules_indices_input){ (const struct rules_index[]){ { .node = "x", .index = 0 },
                                                                             { .node = "y", .index = 0 } },
                                               2, NULL, 0, (const char *const[]){ "y", "x" }, 2, 18 },
                a, out, &freed, &n_freed);
        assert_int_equal(out[1].index, 0);
        assert_int_equal(out[0].index, 1);
        /* invalid indices are ignored */
        rules_indices(&(struct rules_indices_input){ NULL, 0, (const int64_t[]){ -5, -1, 99, 2, 0, 0 }, 6,
                                                     (const char *const[]){ "x", "y" }, 2, 2 },
                      a, out, &freed, &n_freed);
        assert_int_equal(out[0].index, 1);
        assert_int_equal(out[1].index, 0);
        rules_indices(
                &(struct rules_indices_input){ (const struct rules_index[]){ { .node = "x", .index = -1 } },
                                               1, NULL, 0, (const char *const[]){ "y" }, 1, 2 },
                a, out, &freed, &n_freed);
        assert_int_equal(out[0].index, 0);
        assert_int_equal(n_freed, 0);
        /* an index that is listed as free although a node held it is freed when the node leaves */
        rules_indices(
                &(struct rules_indices_input){ (const struct rules_index[]){ { .node = "x", .index = 0 } }, 1,
                                               (const int64_t[]){ 0 }, 1, (const char *const[]){ "y" }, 1, 3 },
                a, out, &freed, &n_freed);
        assert_int_equal(out[0].index, 1);
        assert_int_equal(n_freed, 1);
        assert_int_equal(freed[0], 0);
        /* without slots, no node gets an index */
        rules_indices(&(struct rules_indices_input){ NULL, 0, NULL, 0, (const char *const[]){ "x" }, 1, 0 },
                      a, out, &freed, &n_freed);
        assert_int_equal(out[0].index, -1);
        arena_free(a);
}

enum { NAMES = 7, MAX_NODES = 5 };
static const char *const names[NAMES] = { "a", "b", "c", "d", "e", "f", "g" };

static size_t random_members(const char **ret) {
        size_t n = 0;
        for (size_t i = 0; i < NAMES; i++)
                if (fake_random(2))
                        ret[n++] = names[i];
        return n;
}

static void check_step(const struct rules_index *held, size_t n_held, const struct rules_index *out, size_t n,
                       size_t n_members) {
        for (size_t i = 0; i < n; i++) {
                assert_in_range(out[i].index + 1, 0, MAX_NODES);
                for (size_t k = 0; k < i; k++)
                        assert_false(out[i].index >= 0 &&
                                     out[i].index == out[k].index); /* no index is held by two nodes */
                for (size_t k = 0; k < n_held; k++)
                        if (streq(held[k].node, out[i].node))
                                assert_int_equal(out[i].index, held[k].index); /* the node keeps its index */
        }
        size_t without = 0;
        for (size_t i = 0; i < n; i++)
                without += out[i].index < 0;
        assert_int_equal(without, n_members > MAX_NODES ? n_members - MAX_NODES
                                                        : 0); /* no node waits while an index is free */
}

/* Nodes join and leave a partition at random. Its entries and the list of freed indices are fed back, as the
 * controller does. */
static void indices_stay_unique_while_nodes_join_and_leave(void **state) {
        for (int life = 0; life < 5000; life++) {
                struct rules_index held[NAMES];
                int64_t freed[64];
                size_t n_held = 0, n_freed = 0;
                for (int step = 0; step < 20; step++) {
                        struct arena *a = arena_new(512);
                        struct rules_index out[NAMES];
                        const char *members[NAMES];
                        const int64_t *new_freed;
                        size_t n = random_members(members), n_new_freed;
                        rules_indices(&(struct rules_indices_input){ held, n_held, freed, n_freed, members, n,
                                                                     MAX_NODES },
                                      a, out, &new_freed, &n_new_freed);
                        check_step(held, n_held, out, n, n);
                        assert_true(n_new_freed <= MAX_NODES); /* the list cannot grow without bounds */
                        n_held = 0;
                        for (size_t i = 0; i < n; i++)
                                if (out[i].index >= 0)
                                        held[n_held++] = out[i];
                        n_freed = n_new_freed;
                        memcpy(freed, new_freed, n_freed * sizeof *freed);
                        arena_free(a);
                }
        }
}

/* A freed index is reused last, so that a peer that has not heard of the change does not connect to another
 * node under this ID. */
static void a_freed_index_is_reused_last(void **state) {
        struct rules_index held[1] = { { .node = "a", .index = 0 } };
        int64_t freed[8], seen[5];
        size_t n_freed = 0;
        for (int i = 0; i < 5; i++) { /* one node leaves and another joins, five times */
                struct arena *a = arena_new(512);
                struct rules_index out[1];
                const char *member = i % 2 ? "a" : "b";
                const int64_t *f;
                rules_indices(&(struct rules_indices_input){ held, 1, freed, n_freed, &member, 1, MAX_NODES },
                              a, out, &f, &n_freed);
                memcpy(freed, f, n_freed * sizeof *freed);
                held[0] = out[0];
                seen[i] = out[0].index;
                arena_free(a);
        }
        assert_memory_equal(seen, ((int64_t[]){ 1, 2, 3, 4, 0 }), sizeof seen);
}

/* All nodes of a cluster are in one partition, and join, leave by halves and join again. With a linear search
 * for each index, this took minutes. */
/* failure: ten thousand nodes join and leave at once -> indices are assigned within seconds */
static void indices_of_ten_thousand_nodes_are_assigned_within_seconds(void **state) {
        enum { MANY = 10000 };
        struct arena *a = arena_new(1 << 20);
        struct rules_index *held = xnew_n(struct rules_index, MANY), *out = xnew_n(struct rules_index, MANY);
        const char **members = xnew_n(const char *, MANY);
        const int64_t *freed = NULL;
        size_t n_held = 0, n_freed = 0;
        for (size_t i = 0; i < MANY; i++) {
                char name[16];
                snprintf(name, sizeof name, "n%zu", i);
                members[i] = arena_strdup(a, name);
        }
        for (int turn = 0; turn < 4; turn++) {
                size_t from = turn % 2 ? MANY / 2 : 0;
                rules_indices(&(struct rules_indices_input){ held, n_held, freed, n_freed, members + from,
                                                             MANY - from, MANY },
                              a, out, &freed, &n_freed);
                for (size_t i = from; i < MANY; i++)
                        assert_int_equal(out[i - from].index, i);
                assert_int_equal(n_freed, from);
                n_held = MANY - from;
                memcpy(held, out, n_held * sizeof *held);
        }
        free(held);
        free(out);
        free(members);
        arena_free(a);
}

static void a_list_of_freed_indices_is_read_and_written(void **state) {
        enum { MANY = 8000 };
        struct arena *a = arena_new(1024);
        int64_t *many = xnew_n(int64_t, MANY);
        for (size_t i = 0; i < MANY; i++)
                many[i] = INT64_MAX;
        assert_null(rules_freed_render(many, 0, a));
        assert_string_equal(rules_freed_render((const int64_t[]){ 3, 1 }, 2, a), "3,1");
        assert_null(rules_freed_render(many, MANY, a));
        free(many);
        int64_t *freed;
        assert_int_equal(rules_freed_parse(NULL, a, &freed), 0);
        assert_int_equal(rules_freed_parse("3, 1,x,,2", a, &freed), 3);
        assert_memory_equal(freed, ((int64_t[]){ 3, 1, 2 }), 3 * sizeof *freed);
        arena_free(a);
}

static void a_claim_template_belongs_to_the_domain_that_names_it(void **state) {
        static const char *const namespaces[] = { "driver" };
        static const char *const finalizers[] = { CD_FINALIZER };
        struct cd_channel channel = { .template_name = "t", .shared_template_name = "s" };
        const struct compute_domain cd = { .o.meta = { .ns = "users" }, .channel = &channel },
                                    without = { .o.meta = { .ns = "users" } };
        struct rct r = { .o.meta = { .ns = "users", .name = "t" } };
        assert_true(rules_own_template(&cd, namespaces, 1, &r));
        assert_false(rules_own_template(&without, namespaces, 1, &r));
        assert_false(rules_own_template(NULL, namespaces, 1, &r));
        r.finalizers = (const char **)(uintptr_t)finalizers;
        r.n_finalizers = 1;
        assert_true(rules_own_template(NULL, namespaces, 1, &r));
        r.o.meta.name = "s";
        assert_true(rules_own_template(&cd, namespaces, 1, &r));
        r.o.meta.name = "other";
        assert_false(rules_own_template(&cd, namespaces, 1, &r));
        r.o.meta = (struct kube_meta){ .ns = "other", .name = "t" };
        assert_false(rules_own_template(&cd, namespaces, 1, &r));
        r.target = CD_TARGET_DAEMON;
        assert_false(rules_own_template(&cd, namespaces, 1, &r));
        r.o.meta.ns = "driver";
        assert_true(rules_own_template(&cd, namespaces, 1, &r));
        assert_true(rules_own_template(NULL, namespaces, 1, &r));
}

static void a_container_that_cannot_start_or_has_ended_is_down(void **state) {
        struct pod_container_why why = { .reason = "ContainerCreating" };
        struct pod_container container = { .waiting = &why };
        const struct pod p = { .containers = &container, .n_containers = 1 }, none = { 0 };
        assert_false(rules_is_down(&none));
        assert_false(rules_is_down(&p));
        why.reason = "PodInitializing";
        assert_false(rules_is_down(&p));
        why.reason = "ImagePullBackOff";
        assert_true(rules_is_down(&p));
        container = (struct pod_container){ .terminated = &(struct pod_container_why){ .exit_code = 1 } };
        assert_true(rules_is_down(&p));
        container = (struct pod_container){ 0 }; /* it runs */
        assert_false(rules_is_down(&p));
}

/* The daemon exits with status 0 when its container must start again, for example after an update of the
 * NVIDIA driver. */
/* failure: the NVIDIA driver is updated -> the daemon's exit is not reported as a crash [upgrade] */
static void a_container_that_has_ended_with_success_is_not_down(void **state) {
        struct pod_container_why ended = { .reason = "Completed" }, waits = { .reason = "CrashLoopBackOff" };
        struct pod_container container = { .terminated = &ended };
        const struct pod p = { .containers = &container, .n_containers = 1 };
        assert_false(rules_is_down(&p));
        container = (struct pod_container){ .waiting = &waits, .last = &ended };
        assert_false(rules_is_down(&p));
        ended.exit_code = 1;
        assert_true(rules_is_down(&p));
        container.last = NULL;
        assert_true(rules_is_down(&p));
        ended.exit_code = 0;
        container.last = &ended;
        waits.reason = "ImagePullBackOff";
        assert_true(rules_is_down(&p));
        container = (struct pod_container){ .terminated = &waits, .last = &ended };
        waits.exit_code = 1;
        assert_true(rules_is_down(&p));
}

static void a_slice_states_a_clique_id_unless_it_has_no_devices(void **state) {
        static const struct {
                const char *json, *want; /* NULL: nothing */
        } rows[] = {
                { "{'metadata':{'name':'s','uid':'u','resourceVersion':'1'},'spec':{'devices':[{'name':'"
                  "channel-0','attributes':{'cliqueID'"
                  ":{'string':'c.1'}}}]}}",
                  "c.1" },
                { "{'metadata':{'name':'s','uid':'u','resourceVersion':'1'},'spec':{'devices':[{'name':'"
                  "channel-0','basic':{'attributes':{'"
                  "cliqueID':{'string':'c.1'}}}}]}"
                  "}",
                  "c.1" },
                { "{'metadata':{'name':'s','uid':'u','resourceVersion':'1'},'spec':{'devices':[{'name':'"
                  "channel-0'}]}}",
                  "" },
                { "{'metadata':{'name':'s','uid':'u','resourceVersion':'1','annotations':{"
                  "'" CD_ANNOTATION_CLIQUE "':'c.2'}},'spec':{'devices':[{'name':'channel-0'}]}}",
                  "c.2" },
                { "{'metadata':{'name':'s','uid':'u','resourceVersion':'1','annotations':{"
                  "'" CD_ANNOTATION_CLIQUE "':''}},'spec':{'devices':[{'name':'channel-0'}]}}",
                  "" },
                { "{'metadata':{'name':'s','uid':'u','resourceVersion':'1'},'spec':{}}", NULL },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena *a = arena_new(4096);
                const char *clique = NULL;
                bool states = slice_clique(fake_slice_json(a, "%s", rows[i].json), &clique);
                if (states != (rows[i].want != NULL) || (states && !streq(clique, rows[i].want)))
                        fail_msg("row %zu: %s", i, clique);
                arena_free(a);
        }
}

/* failure: a stale cache does not justify a label -> it is removed only after confirmation */
static void a_label_is_removed_only_after_confirmation(void **state) {
        enum rules_label_step w = RULES_LABEL_WRITE, ask = RULES_LABEL_ASK, hold = RULES_LABEL_PAUSE;
        assert_int_equal(rules_label_step(NULL, &(struct rules_label_facts){ .stale = true }),
                         w); /* the label is new */
        assert_int_equal(rules_label_step(UID_A, &(struct rules_label_facts){ .stale = true }), hold);
        assert_int_equal(
                rules_label_step(UID_A, &(struct rules_label_facts){ .stale = true, .confirmed = true }),
                hold);
        assert_int_equal(rules_label_step(UID_A, &(struct rules_label_facts){ 0 }), ask);
        assert_int_equal(rules_label_step(UID_A, &(struct rules_label_facts){ .confirmed = true }), w);
        assert_int_equal(rules_label_step(UID_A, &(struct rules_label_facts){ .claimed = true }),
                         w); /* the mode forbids it */
        /* A deletion cannot be revoked. */
        assert_int_equal(
                rules_label_step(UID_A, &(struct rules_label_facts){ .stale = true, .ending = true }), w);
}

/* failure: a label would be wrong -> it is not written, and DecisionWrong reports it */
static void the_check_finds_every_wrong_label(void **state) {
        const struct allocation a = { .claim_uid = "c", .domain_uid = UID_A };
        const struct rules_label_facts none = { 0 };

        assert_null(rules_label_check(NULL, UID_A, &a, 1, &none));
        assert_string_equal(rules_label_check(NULL, "another", &a, 1, &none),
                            "no claim justifies the new label");
        assert_string_equal(
                rules_label_check(UID_A, NULL, &a, 1, &(struct rules_label_facts){ .ending = true }),
                "a claim justifies the present label");
        assert_string_equal(rules_label_check(UID_A, NULL, NULL, 0, &none),
                            "the present label would be replaced before its end is confirmed");
        assert_string_equal(
                rules_label_check(UID_A, NULL, NULL, 0,
                                  &(struct rules_label_facts){ .confirmed = true, .stale = true }),
                "the present label would be replaced while a cache is stale");
        assert_null(
                rules_label_check(UID_A, NULL, NULL, 0, &(struct rules_label_facts){ .confirmed = true }));
        assert_null(rules_label_check(UID_A, NULL, NULL, 0, &(struct rules_label_facts){ .claimed = true }));
        assert_null(rules_label_check(UID_A, NULL, NULL, 0,
                                      &(struct rules_label_facts){ .ending = true, .stale = true }));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_check_finds_every_wrong_label),
                cmocka_unit_test(a_label_is_removed_only_after_confirmation),
                cmocka_unit_test(the_label_follows_the_oldest_claim),
                cmocka_unit_test(a_foreign_change_of_a_label_is_recognized),
                cmocka_unit_test(the_gpu_label_of_another_owner_stays),
                cmocka_unit_test(indices_are_kept_and_the_longest_free_is_reused),
                cmocka_unit_test(indices_stay_unique_while_nodes_join_and_leave),
                cmocka_unit_test(a_freed_index_is_reused_last),
                cmocka_unit_test(indices_of_ten_thousand_nodes_are_assigned_within_seconds),
                cmocka_unit_test(a_list_of_freed_indices_is_read_and_written),
                cmocka_unit_test(a_claim_template_belongs_to_the_domain_that_names_it),
                cmocka_unit_test(a_container_that_cannot_start_or_has_ended_is_down),
                cmocka_unit_test(a_container_that_has_ended_with_success_is_not_down),
                cmocka_unit_test(a_slice_states_a_clique_id_unless_it_has_no_devices),
                /* The slowest is last, because `make mutate` stops at the first failure. */
                cmocka_unit_test(a_label_is_justified_and_stable),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
