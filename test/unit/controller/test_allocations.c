/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include <stdio.h>
#include <string.h>

#include "controller/allocations.h"

static const struct claim_record *claim(struct arena *a, const char *uid, const char *node,
                                        const char *domain) {
        struct claim *c = arena_alloc(a, sizeof *c);
        c->o.meta = (struct kube_meta){ .ns = "w", .name = uid, .uid = uid, .created = 7 };
        if (!node)
                return claim_record_of(c, a);
        c->results = arena_alloc(a, sizeof *c->results);
        c->results[0] = (struct claim_result){
                .request = "channel", .driver = CD_DRIVER, .pool = node, .device = "channel-0"
        };
        c->n_results = 1;
        c->consumers = arena_alloc(a, sizeof *c->consumers);
        c->consumers[0] = (struct claim_consumer){ .resource = "pods", .name = "p", .uid = "p" };
        c->n_consumers = 1;
        c->configs = arena_alloc(a, sizeof *c->configs);
        struct buf b = BUF_INIT(1024);
        buf_addf(&b,
                 "{\"apiVersion\":\"" CD_API_VERSION
                 "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"%s\"}",
                 domain);
        c->configs[0] = (struct claim_config){ .source = "FromClaim",
                                               .driver = CD_DRIVER,
                                               .parameters = { arena_strndup(a, b.p, b.n), b.n } };
        c->n_configs = 1;
        buf_done(&b);
        return claim_record_of(c, a);
}

static bool place_of(const struct claim_record *c, struct claim_place *ret) {
        *ret = (struct claim_place){ c->domain_uid, c->node };
        return c->domain_uid;
}

static void count_one(void *u, const struct allocation *x) {
        assert_int_equal(x->created, 7);
        assert_string_equal(x->ns, "w");
        ++*(size_t *)u;
}

static size_t of_domain(const struct allocations *p, const char *uid) {
        size_t n = 0;
        allocations_of_domain(p, uid, count_one, &n);
        return n;
}

static size_t on_node(const struct allocations *p, const char *node) {
        size_t n = 0;
        allocations_on_node(p, node, count_one, &n);
        return n;
}

static void a_claim_is_added_moved_and_removed(void **state) {
        struct arena *a = arena_new(4096);
        struct allocations *p = allocations_new();
        struct allocation was, is;
        const struct claim_record *none = claim(a, "1", NULL, NULL), *here = claim(a, "1", "n1", UID_A),
                                  *there = claim(a, "1", "n2", UID_A);
        assert_false(allocations_update(p, NULL, none, &was, &is)); /* not allocated */
        assert_true(allocations_update(p, none, here, &was, &is));
        assert_null(was.node);
        assert_string_equal(is.node, "n1");
        assert_false(allocations_update(p, here, here, &was, &is));
        assert_true(allocations_update(p, here, there, &was, &is));
        assert_string_equal(was.node, "n1");
        assert_string_equal(is.node, "n2");
        assert_int_equal(on_node(p, "n1"), 0);
        assert_int_equal(on_node(p, "n2"), 1);
        assert_true(allocations_update(p, there, NULL, &was, &is));
        assert_string_equal(was.domain_uid, UID_A);
        assert_null(is.node);
        assert_int_equal(of_domain(p, UID_A), 0);
        allocations_free(p);
        arena_free(a);
}

/* A claim was deleted and recreated with the same name, and the watch shows one event. */
static void a_recreated_claim_replaces_the_old_one(void **state) {
        struct arena *a = arena_new(4096);
        struct allocations *p = allocations_new();
        struct allocation was, is;
        const struct claim_record *old = claim(a, "1", "n1", UID_A), *now = claim(a, "2", "n1", UID_B);
        allocations_update(p, NULL, old, &was, &is);
        assert_true(allocations_update(p, old, now, &was, &is));
        assert_string_equal(was.claim_uid, "1");
        assert_string_equal(is.claim_uid, "2");
        assert_int_equal(on_node(p, "n1"), 1);
        allocations_free(p);
        arena_free(a);
}

static void counts_stay_right_after_any_changes(void **state) {
        static const char *const nodes[] = { NULL, "n1", "n2", "n3" },
                                 *const domains[] = { UID_A, UID_B, "no-uid" }, *const uids[] = { "1", "2",
                                                                                                  "3", "4",
                                                                                                  "5", "6" };
        struct arena *a = arena_new(1 << 16);
        struct allocations *p = allocations_new();
        const struct claim_record *now[ARRAY_LEN(uids)] = { NULL };
        for (int step = 0; step < 20000; step++) {
                struct allocation was, is;
                size_t i = fake_random(ARRAY_LEN(uids)), want_domain = 0, want_node = 0;
                const struct claim_record *next =
                        fake_random(4) ? claim(a, uids[i], nodes[fake_random(4)], domains[fake_random(3)])
                                       : NULL;
                if (now[i] || next)
                        allocations_update(p, now[i], next, &was, &is);
                now[i] = next;
                for (size_t k = 0; k < ARRAY_LEN(uids); k++) {
                        struct claim_place place;
                        if (now[k] && place_of(now[k], &place)) {
                                want_domain += streq(place.domain_uid, UID_A);
                                want_node += streq(place.node, "n1");
                        }
                }
                assert_int_equal(of_domain(p, UID_A), want_domain);
                assert_int_equal(on_node(p, "n1"), want_node);
        }
        allocations_free(p);
        arena_free(a);
}

/* ---- shared claims ---- */

struct seen_places {
        char text[512];
};

static void see_place(void *u, const struct allocation *x) {
        struct seen_places *s = u;
        size_t n = strlen(s->text);
        snprintf(s->text + n, sizeof s->text - n, "%s@%s%s ", x->claim_uid, x->node, x->shared ? "" : "!");
}

static bool is_part(const char *text, const char *part) {
        return strstr(text, part);
}

static void changes(void *u, const char *uid) {
        ++*(int *)u;
}

static const char *places_of(const struct allocations *p, const char *uid, struct seen_places *s) {
        *s = (struct seen_places){ 0 };
        allocations_of_domain(p, uid, see_place, s);
        return s->text;
}

static const char *places_on(const struct allocations *p, const char *node, struct seen_places *s) {
        *s = (struct seen_places){ 0 };
        allocations_on_node(p, node, see_place, s);
        return s->text;
}

/* A report alone brings no node into a ComputeDomain, and neither does the claim alone. */
static void a_shared_claim_and_a_report_bring_a_node_into_a_ComputeDomain(void **state) {
        struct arena *a = arena_new(4096);
        struct allocations *p = allocations_new();
        struct allocation was, is;
        struct seen_places s;
        int n = 0;
        const char *both[] = { UID_A, UID_B };
        const struct claim_record *c = claim(a, "1", CD_POOL_SHARED, UID_A);
        allocations_used(p, "n1", both, 2, changes, &n);
        assert_int_equal(n, 2);
        assert_string_equal(places_of(p, UID_A, &s), "");
        assert_string_equal(places_on(p, "n1", &s), "");
        assert_true(allocations_update(p, NULL, c, &was, &is));
        assert_true(is.shared);
        assert_string_equal(is.node, CD_POOL_SHARED);
        assert_string_equal(places_on(p, "n1", &s), "1@n1 ");
        assert_string_equal(places_on(p, "n2", &s), "");
        assert_true(is_part(places_of(p, UID_A, &s), "1@n1 "));
        assert_true(is_part(places_of(p, UID_A, &s), "1@" CD_POOL_SHARED " "));
        assert_string_equal(places_of(p, UID_B, &s), "");
        allocations_used(p, "n2", both, 1, changes, &n);
        assert_int_equal(n, 3);
        allocations_used(p, "n1", both + 1, 1, changes, &n);
        assert_int_equal(n, 4);
        assert_string_equal(places_on(p, "n1", &s), "");
        assert_string_equal(places_on(p, "n2", &s), "1@n2 ");
        assert_true(allocations_update(p, c, NULL, &was, &is));
        assert_true(was.shared);
        assert_string_equal(places_on(p, "n2", &s), "");
        assert_string_equal(places_of(p, UID_A, &s), "");
        allocations_free(p);
        arena_free(a);
}

/* failure: a claim of another namespace names a ComputeDomain -> it does not hide the right claim [tenants]
 */
static void shared_claims_count_once_in_each_namespace(void **state) {
        struct arena *a = arena_new(4096);
        struct allocations *p = allocations_new();
        struct allocation was, is;
        struct seen_places s;
        int n = 0;
        const char *uid[] = { UID_A };
        struct claim_record thief = *claim(a, "9", CD_POOL_SHARED, UID_A);
        thief.o.meta.ns = "thief";
        allocations_update(p, NULL, claim(a, "1", CD_POOL_SHARED, UID_A), &was, &is);
        allocations_update(p, NULL, claim(a, "2", CD_POOL_SHARED, UID_A), &was, &is);
        allocations_update(p, NULL, &thief, &was, &is);
        allocations_update(p, NULL, claim(a, "3", "n1", UID_A), &was, &is);
        allocations_used(p, "n1", uid, 1, changes, &n);
        places_on(p, "n1", &s);
        assert_true(is_part(s.text, "3@n1! "));
        assert_true(is_part(s.text, "9@n1 "));
        assert_true(is_part(s.text, "1@n1 ") != is_part(s.text, "2@n1 "));
        allocations_free(p);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_claim_is_added_moved_and_removed),
                cmocka_unit_test(a_recreated_claim_replaces_the_old_one),
                cmocka_unit_test(counts_stay_right_after_any_changes),
                cmocka_unit_test(a_shared_claim_and_a_report_bring_a_node_into_a_ComputeDomain),
                cmocka_unit_test(shared_claims_count_once_in_each_namespace),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
