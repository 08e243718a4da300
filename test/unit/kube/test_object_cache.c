/* SPDX-License-Identifier: Apache-2.0 */
/* The cache alone, with many objects. test_informer_cache.c tests the rules of versions. */
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
#include "kube/object_cache.h"

enum { MANY = 100000 };

static const struct jd_field fields[] = {
        JD_OBJ(struct kube_object, "metadata", meta, kube_f_meta),
        JD_END,
};

struct world {
        struct object_cache *cache;
        unsigned added, changed, removed;
        char last_removed[32];
};

static void note(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct world *w = u;
        w->added += !old;
        w->changed += old && now;
        w->removed += !now;
        if (!now)
                snprintf(w->last_removed, sizeof w->last_removed, "%s", old->meta.name);
        if (old)
                kube_object_unref(old);
        if (now)
                kube_object_unref(now);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->cache = object_cache_new(&(struct kube_informer_options){ .fields = fields,
                                                                     .size = sizeof(struct kube_object) },
                                    note, w);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        object_cache_free(w->cache);
        free(w);
        return 0;
}

static yyjson_doc *parse(const char *text) {
        yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        assert_non_null(doc);
        return doc;
}

static void take(struct world *w, unsigned name, unsigned version, enum cache_source source) {
        char text[96];
        bool known;
        struct err e;
        snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"n%u\",\"resourceVersion\":\"%u\"}}", name,
                 version);
        yyjson_doc *doc = parse(text);
        assert_int_equal(object_cache_take(w->cache, yyjson_doc_get_root(doc), source, &known, &e), 0);
        yyjson_doc_free(doc);
}

static void reach(struct world *w, unsigned version) {
        char text[16];
        snprintf(text, sizeof text, "%u", version);
        object_cache_reached(w->cache, text);
}

static void event(struct world *w, unsigned name, unsigned version) {
        take(w, name, version, CACHE_EVENT);
        reach(w, version);
}

static bool has(const struct world *w, const char *name) {
        return object_cache_get(w->cache, NULL, name) != NULL;
}

/* An answer that the watch has not passed yet must not make each event search all objects. (That took ten
 * minutes; it now takes a second.) */
static void events_cost_the_same_while_an_answer_is_ahead_of_them(void **state) {
        struct world *w = *state;
        for (unsigned i = 0; i < MANY; i++)
                event(w, i, i + 1);
        take(w, MANY, 10 * MANY, CACHE_ANSWER);
        for (unsigned i = 0; i < MANY; i++)
                event(w, i, MANY + i + 1);
        assert_int_equal(object_cache_count(w->cache), MANY + 1);
        assert_int_equal(w->changed, MANY);
        assert_int_equal(w->removed, 0);
}

/* The same with many answers in any order. */
static void each_answer_is_removed_when_the_watch_passes_it(void **state) {
        struct world *w = *state;
        reach(w, 10);
        for (unsigned i = 0; i < MANY; i++)
                take(w, i, 100 + (i ^ 7), CACHE_ANSWER);
        assert_int_equal(object_cache_count(w->cache), MANY);
        for (unsigned i = 0; i < MANY; i++) {
                reach(w, 101 + i);
                assert_int_equal(w->removed, i + 1);
        }
        assert_int_equal(object_cache_count(w->cache), 0);
}

static void objects_reported_since_their_answer_stay(void **state) {
        struct world *w = *state;
        take(w, 1, 20, CACHE_ANSWER);
        take(w, 2, 22, CACHE_ANSWER);
        take(w, 3, 21, CACHE_ANSWER);
        take(w, 4, 20, CACHE_ANSWER);
        take(w, 4, 23, CACHE_ANSWER); /* replaces the previous one */
        event(w, 1, 20);
        take(w, 3, 25, CACHE_EVENT); /* newer than the answer */
        reach(w, 22);
        assert_int_equal(w->removed, 0);
        reach(w, 23);
        assert_int_equal(w->removed, 1);
        assert_string_equal(w->last_removed, "n2");
        reach(w, 30);
        assert_int_equal(w->removed, 2);
        assert_true(has(w, "n1") && has(w, "n3"));
}

static void a_learned_object_is_removed_by_its_event(void **state) {
        struct world *w = *state;
        take(w, 1, 20, CACHE_ANSWER);
        yyjson_doc *doc = parse("{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"21\"}}");
        object_cache_delete(w->cache, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
        reach(w, 21);
        assert_int_equal(w->removed, 1);
}

/* The answer to a write that ends an object has the version of its end. If it arrives during a list of
 * exactly that version, no event follows. */
/* failure: an object ends while it is listed -> the cache removes it */
static void an_object_that_a_list_lacks_is_removed_even_after_an_answer(void **state) {
        struct world *w = *state;
        event(w, 1, 19);
        object_cache_begin_list(w->cache);
        take(w, 1, 20, CACHE_ANSWER);
        take(w, 2, 21, CACHE_ANSWER); /* written after the list began */
        object_cache_list_version(w->cache, "20");
        object_cache_end_list(w->cache, "20");
        assert_int_equal(w->removed, 1);
        assert_string_equal(w->last_removed, "n1");
        assert_true(has(w, "n2"));
}

/* It cannot be ordered among the others, so only its own event ends it. */
static void a_version_that_is_not_a_number_is_never_passed(void **state) {
        struct world *w = *state;
        bool known;
        struct err e;
        yyjson_doc *doc = parse("{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"x\"}}");
        assert_int_equal(object_cache_take(w->cache, yyjson_doc_get_root(doc), CACHE_ANSWER, &known, &e), 0);
        reach(w, 30);
        assert_true(has(w, "n1"));
        assert_int_equal(object_cache_take(w->cache, yyjson_doc_get_root(doc), CACHE_EVENT, &known, &e), 0);
        yyjson_doc_free(doc);
        assert_int_equal(w->removed, 0);
        assert_int_equal(w->added, 1);
}

/* ---- an index by many keys ---- */

struct group {
        struct kube_object o;
        const char **members;
        size_t n_members;
};
static const struct jd_field group_fields[] = { JD_OBJ(struct group, "metadata", o.meta, kube_f_meta),
                                                JD_STRS(struct group, "members", members), JD_END };

static void members_of(const struct kube_object *o, kube_key_fn *add, void *v) {
        const struct group *g = (const struct group *)o;
        for (size_t i = 0; i < g->n_members; i++)
                add(v, g->members[i]);
}

static int setup_groups(void **state) {
        struct world *w = xnew(struct world);
        w->cache = object_cache_new(&(struct kube_informer_options){ .fields = group_fields,
                                                                     .size = sizeof(struct group),
                                                                     .keys = members_of },
                                    note, w);
        *state = w;
        return 0;
}

/* Group `name` has these members: four texts, each "" for none. */
static void take_group(struct world *w, unsigned name, unsigned version, const char *const members[4]) {
        _cleanup_(freep) char *text = xasprintf(
                "{\"metadata\":{\"name\":\"g%u\",\"resourceVersion\":\"%u\"},\"members\":[\"%s\",\"%s\","
                "\"%s\",\"%s\"]}",
                name, version, members[0], members[1], members[2], members[3]);
        bool known;
        struct err e;
        yyjson_doc *doc = parse(text);
        assert_int_equal(object_cache_take(w->cache, yyjson_doc_get_root(doc), CACHE_EVENT, &known, &e), 0);
        yyjson_doc_free(doc);
}

static bool count_visit(void *u, const struct kube_object *o) {
        ++*(unsigned *)u;
        return true;
}

static unsigned visits_with(const struct world *w, const char *member) {
        unsigned n = 0;
        object_cache_each_with(w->cache, member, count_visit, &n);
        return n;
}

static void an_object_is_visited_once_under_each_of_its_keys(void **state) {
        struct world *w = *state;
        take_group(w, 1, 1, (const char *const[]){ "a", "b", "a", "a" });
        take_group(w, 2, 2, (const char *const[]){ "b", "c", "c", "b" });
        assert_int_equal(visits_with(w, "a"), 1);
        assert_int_equal(visits_with(w, "b"), 2);
        assert_int_equal(visits_with(w, "c"), 1);
        assert_int_equal(visits_with(w, "d"), 0);
        assert_int_equal(visits_with(w, NULL), 0);
}

static void a_new_version_has_only_its_own_keys(void **state) {
        struct world *w = *state;
        take_group(w, 1, 1, (const char *const[]){ "a", "b", "c", "d" });
        take_group(w, 1, 2, (const char *const[]){ "b", "e", "f", "g" });
        assert_int_equal(visits_with(w, "a"), 0);
        assert_int_equal(visits_with(w, "b"), 1);
        assert_int_equal(visits_with(w, "e"), 1);
        yyjson_doc *doc = parse("{\"metadata\":{\"name\":\"g1\",\"resourceVersion\":\"3\"}}");
        object_cache_delete(w->cache, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
        assert_int_equal(visits_with(w, "b"), 0);
        assert_int_equal(visits_with(w, "e"), 0);
}

/* The index grows many times, and each visit stays as short. */
static void a_visit_by_key_does_not_visit_other_objects(void **state) {
        struct world *w = *state;
        enum { GROUPS = 5000 };
        char text[3][32];
        for (unsigned i = 0; i < GROUPS; i++) {
                for (unsigned k = 0; k < 3; k++)
                        snprintf(text[k], sizeof text[k], "node-%u", 3 * i + k);
                take_group(w, i, i + 1, (const char *const[]){ text[0], text[1], text[2], text[0] });
        }
        for (unsigned i = 0; i < 3 * GROUPS; i++) {
                snprintf(text[0], sizeof text[0], "node-%u", i);
                assert_int_equal(visits_with(w, text[0]), 1);
        }
}

static bool remove_visited(void *u, const struct kube_object *o) {
        struct world *w = u;
        _cleanup_(freep) char *text =
                xasprintf("{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"99\"}}", o->meta.name);
        yyjson_doc *doc = parse(text);
        object_cache_delete(w->cache, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
        return true;
}

static bool stop_visit(void *u, const struct kube_object *o) {
        ++*(unsigned *)u;
        return false;
}

static void a_visit_by_key_may_remove_the_visited_object(void **state) {
        struct world *w = *state;
        unsigned n = 0;
        for (unsigned i = 0; i < 3; i++)
                take_group(w, i, i + 1, (const char *const[]){ "a", "b", "c", "d" });
        object_cache_each_with(w->cache, "a", stop_visit, &n);
        assert_int_equal(n, 1);
        object_cache_each_with(w->cache, "a", remove_visited, w);
        assert_int_equal(w->removed, 3);
        assert_int_equal(visits_with(w, "d"), 0);
}

static void a_version_is_a_positive_number(void **state) {
        assert_int_equal(kube_object_version("1"), 1);
        assert_int_equal(kube_object_version("18446744073"), 18446744073);
        assert_int_equal(kube_object_version("-1"), 0);
        assert_int_equal(kube_object_version("1a"), 0);
        assert_int_equal(kube_object_version(NULL), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(events_cost_the_same_while_an_answer_is_ahead_of_them),
                T(each_answer_is_removed_when_the_watch_passes_it),
                T(objects_reported_since_their_answer_stay),
                T(a_learned_object_is_removed_by_its_event),
                T(an_object_that_a_list_lacks_is_removed_even_after_an_answer),
                T(a_version_that_is_not_a_number_is_never_passed),
#define G(f) cmocka_unit_test_setup_teardown(f, setup_groups, teardown)
                G(an_object_is_visited_once_under_each_of_its_keys),
                G(a_new_version_has_only_its_own_keys),
                G(a_visit_by_key_does_not_visit_other_objects),
                G(a_visit_by_key_may_remove_the_visited_object),
                cmocka_unit_test(a_version_is_a_positive_number),
        };
        return cmocka_run_group_tests_name("object_cache", tests, NULL, NULL);
}
