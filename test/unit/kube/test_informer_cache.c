/* SPDX-License-Identifier: Apache-2.0 */
/* Which version of an object an informer keeps, finds and reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "informer_world.h"

static bool count_one(void *u, const struct kube_object *o) {
        ++*(unsigned *)u;
        return false;
}

static void test_two_indexes(void **state) {
        struct world *w = *state;
        unsigned n = 0;
        w->api.pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n1") "," ITEM("c", "5", "n2"));
        world_begin_watching(w);
        assert_int_equal(world_count_at(w, 0, "n1"), 2);
        assert_int_equal(world_count_at(w, 0, "n2"), 1);
        assert_int_equal(world_count_at(w, 0, "n3"), 0);
        assert_string_equal(kube_informer_first_at(w->informer, 1, "uid-c")->meta.name, "c");
        assert_null(kube_informer_first_at(w->informer, 1, "uid-d"));
        kube_informer_each(w->informer, count_one, &n);
        assert_int_equal(n, 1);
        n = 0;
        kube_informer_each_at(w->informer, 0, "n1", count_one, &n);
        assert_int_equal(n, 1);

        pod_event(&w->api, "MODIFIED", "a", 11, "n2");
        pod_event(&w->api, "DELETED", "b", 12, "n1");
        world_wait_for_log(w, "+a@3 +b@4 +c@5 ~a@3>11 -b@4 ");
        assert_int_equal(world_count_at(w, 0, "n1"), 0);
        assert_int_equal(world_count_at(w, 0, "n2"), 2);
        assert_null(kube_informer_first_at(w->informer, 1, "uid-b"));
}

static void test_undecodable_object_is_skipped_and_reported_once(void **state) {
        struct world *w = *state;
        const char *bad = "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"bad\",\"resourceVersion\":\"5\"},"
                          "\"spec\":{\"weight\":\"heavy\"}}";
        _cleanup_(freep) char *list = xasprintf(LIST("10", "%s," ITEM("a", "3", "n1")), bad),
                              *again = xasprintf(LIST("30", "%s," ITEM("a", "3", "n1")), bad);
        w->api.pages[0] = list;
        w->api.pages[1] = again;
        world_begin_watching(w);
        assert_string_equal(buf_str(&w->log), "+a@3 ");
        assert_int_equal(w->n_undecodable, 1);
        assert_string_equal(w->err.msg, "ns/bad: spec.weight: not an integer");
        fake_chunk(w->api.watch,
                   "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":410,"
                   "\"reason\":\"Expired\"}}\n");
        world_wait_for_watch(w, 2);
        assert_int_equal(w->n_undecodable, 1);

        /* A new version is reported again. If a bad version follows a good one, the good one stays. */
        fake_chunk(w->api.watch,
                   "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":"
                   "\"bad\",\"resourceVersion\":"
                   "\"31\"},\"spec\":{\"weight\":[]}}}\n");
        fake_chunk(w->api.watch,
                   "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":"
                   "\"a\",\"resourceVersion\":"
                   "\"32\"},\"spec\":[]}}\n");
        pod_event(&w->api, "MODIFIED", "bad", 33, "n1");
        world_wait_for_log(w, "+a@3 +bad@33 ");
        assert_int_equal(w->n_undecodable, 3);
        assert_string_equal(kube_informer_get(w->informer, "ns", "a")->meta.rv, "3");
}

static void test_object_without_a_name(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        fake_chunk(w->api.watch,
                   "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"11\"}}}\n");
        pod_event(&w->api, "ADDED", "a", 12, "n1");
        world_wait_for_log(w, "+a@12 ");
        assert_int_equal(w->n_undecodable, 1);
}

static bool keep_n1(void *u, const struct kube_object *o) {
        return streq(world_node_of(o), "n1");
}

static void test_keep(void **state) {
        struct world *w = *state;
        w->o.keep = keep_n1;
        w->api.pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n2"));
        world_begin_watching(w);
        pod_event(&w->api, "MODIFIED", "b", 11, "n1");
        pod_event(&w->api, "MODIFIED", "a", 12, "n2");
        pod_event(&w->api, "DELETED", "a", 13, "n2");
        pod_event(&w->api, "DELETED", "b", 14, "n1");
        world_wait_for_log(w, "+a@3 +b@11 -a@3 -b@11 ");
        assert_int_equal(kube_informer_count(w->informer), 0);
}

static void hold(struct world *w) {
        if (!w->held)
                w->held = kube_object_ref(kube_informer_get(w->informer, "ns", "a"));
}

static void test_objects_live_as_long_as_they_are_referenced(void **state) {
        struct world *w = *state;
        w->on_changed = hold;
        w->api.pages[0] = LIST("10", ITEM("a", "3", "n1"));
        world_begin_watching(w);
        pod_event(&w->api, "MODIFIED", "a", 11, "n2");
        pod_event(&w->api, "DELETED", "a", 12, "n2");
        world_wait_for_log(w, "+a@3 ~a@3>11 -a@11 ");
        assert_string_equal(w->held->meta.rv, "3");
        assert_string_equal(world_node_of(w->held), "n1");
}

/* ---- answers to our own writes ---- */

static void learn(struct world *w, const char *text) {
        yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        assert_non_null(doc);
        w->changed = false;
        kube_informer_answer(w->informer, yyjson_doc_get_root(doc));
        assert_false(w->changed);
        yyjson_doc_free(doc);
}

static void test_answer_is_visible_at_once_and_reported_once(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        learn(w, ITEM("a", "11", "n1"));
        assert_non_null(kube_informer_get(w->informer, "ns", "a"));
        run_until(&w->loop, &w->changed);
        pod_event(&w->api, "ADDED", "a", 11, "n1"); /* the watch delivers it again */
        pod_event(&w->api, "MODIFIED", "a", 12, "n2");
        world_wait_for_log(w, "+a@11 ~a@11>12 ");
        learn(w, ITEM("a", "11", "n1")); /* older than the cached version */
        run_for(&w->loop, 20);
        assert_string_equal(buf_str(&w->log), "+a@11 ~a@11>12 ");
}

/* failure: an older event follows our own write -> the newer object stays */
static void test_a_learned_object_outlives_an_older_event(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        world_wait_for_log(w, "+a@11 ");
        learn(w, ITEM("a", "15", "n2"));
        pod_event(&w->api, "MODIFIED", "a", 13, "n3"); /* sent before our write */
        pod_event(&w->api, "MODIFIED", "a", 15, "n2");
        pod_event(&w->api, "MODIFIED", "a", 16, "n4");
        world_wait_for_log(w, "+a@11 ~a@11>15 ~a@15>16 ");
}

/* failure: a late answer shows a deleted object -> the cache does not revive it */
static void test_deleted_object_is_not_revived(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        pod_event(&w->api, "DELETED", "a", 13, "n1");
        world_wait_for_log(w, "+a@11 -a@11 ");
        learn(w, ITEM("a", "12", "n1"));
        run_for(&w->loop, 20);
        assert_int_equal(kube_informer_count(w->informer), 0);
        assert_string_equal(buf_str(&w->log), "+a@11 -a@11 ");
}

static void test_learned_object_that_was_recreated_survives_the_old_deletion(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        world_wait_for_log(w, "+a@11 ");
        learn(w, ITEM("a", "15", "n2"));
        pod_event(&w->api, "DELETED", "a", 14, "n1");
        pod_event(&w->api, "ADDED", "a", 15, "n2");
        pod_event(&w->api, "ADDED", "b", 16, "n2");
        world_wait_for_log(w, "+a@11 ~a@11>15 +b@16 ");
}

static void test_learned_object_that_does_not_match_is_removed(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        learn(w, ITEM("a", "11", "n1"));
        run_until(&w->loop, &w->changed);
        pod_bookmark(&w->api, 20);
        world_wait_for_log(w, "+a@11 -a@11 ");
}

static void test_answers_without_an_object_are_ignored(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        kube_informer_answer(w->informer, NULL);
        learn(w, "{\"kind\":\"Status\",\"metadata\":{},\"status\":\"Success\"}");
        learn(w, "[]");
        run_for(&w->loop, 20);
        assert_int_equal(w->n_undecodable, 0);
}

static void learn_deleted(struct world *w, const char *uid) {
        _cleanup_(freep) char *text = xasprintf("{\"kind\":\"Status\",\"metadata\":{},\"status\":\"Success\","
                                                "\"details\":{\"name\":\"a\",\"uid\":\"%s\"}}",
                                                uid);
        yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        kube_informer_answer_deleted(w->informer, "ns", "a", yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
}

/* failure: we delete an object -> our cache drops it at once */
static void test_our_own_deletion_is_visible_at_once(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        world_wait_for_log(w, "+a@11 ");
        learn_deleted(w, "uid-of-another"); /* an earlier object with the same name */
        assert_int_equal(kube_informer_count(w->informer), 1);
        learn_deleted(w, "uid-a");
        assert_int_equal(kube_informer_count(w->informer), 0);
        world_wait_for_log(w, "+a@11 -a@11 ");
        pod_event(&w->api, "DELETED", "a", 12, "n1"); /* the watch delivers it again */
        pod_event(&w->api, "ADDED", "b", 13, "n1");
        world_wait_for_log(w, "+a@11 -a@11 +b@13 ");
}

static void learn_b(struct world *w) {
        if (!kube_informer_get(w->informer, "ns", "b")) {
                yyjson_doc *doc = yyjson_read(ITEM("b", "21", "n1"), strlen(ITEM("b", "21", "n1")), 0);
                kube_informer_answer(w->informer, yyjson_doc_get_root(doc));
                yyjson_doc_free(doc);
        }
}

static void test_learn_from_inside_changed(void **state) {
        struct world *w = *state;
        w->on_changed = learn_b;
        world_begin_watching(w);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        world_wait_for_log(w, "+a@11 +b@21 ");
}

/* ---- whole lists, and watches of metadata ---- */

static const void *inherit_spec(const void *trimmed, const struct kube_object *old, struct arena *a) {
        struct pod *p = arena_alloc(a, sizeof *p);
        *p = *(const struct pod *)trimmed;
        p->node = old ? ((const struct pod *)(const void *)old)->node : "unknown";
        return p;
}

#define META(name, uid, rv)                                                                                  \
        "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"               \
        "\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static const char *node_of(struct world *w, const char *name) {
        return ((const struct pod *)(const void *)kube_informer_get(w->informer, "ns", name))->node;
}

static void begin_inheriting(struct world *w) {
        w->api.pages[0] = LIST("10", ITEM("a", "3", "n1"));
        w->o.inherit = inherit_spec;
        world_begin_watching(w);
        RUN_UNTIL(&w->loop, w->api.watching);
}

static void a_watch_of_metadata_keeps_the_rest_of_an_object(void **state) {
        struct world *w = *state;
        begin_inheriting(w);
        fake_chunk(w->api.watch,
                   EVENT("MODIFIED", META("a", "uid-a", "11")) EVENT("ADDED", META("b", "uid-b", "12")));
        world_wait_for_log(w, "+a@3 ~a@3>11 +b@12 ");
        assert_string_equal(node_of(w, "a"), "n1");
        assert_string_equal(node_of(w, "b"), "unknown");
        assert_int_equal(world_count_at(w, 0, "n1"), 1);
        /* Another object with the same name. */
        fake_chunk(w->api.watch, EVENT("MODIFIED", META("a", "uid-c", "13")));
        world_wait_for_log(w, "+a@3 ~a@3>11 +b@12 ~a@11>13 ");
        assert_string_equal(node_of(w, "a"), "unknown");
}

static void give(struct world *w, const char *object) {
        yyjson_doc *d = yyjson_read(object, strlen(object), 0);
        kube_informer_answer(w->informer, yyjson_doc_get_root(d));
        yyjson_doc_free(d);
}

static void a_whole_object_replaces_metadata_of_the_same_version(void **state) {
        struct world *w = *state;
        begin_inheriting(w);
        fake_chunk(w->api.watch, EVENT("MODIFIED", META("a", "uid-a", "11")));
        world_wait_for_log(w, "+a@3 ~a@3>11 ");
        give(w, ITEM("a", "11", "n2"));
        world_wait_for_log(w, "+a@3 ~a@3>11 ~a@11>11 ");
        assert_string_equal(node_of(w, "a"), "n2");
        give(w, ITEM("a", "11", "n3")); /* the cache has the whole object */
        give(w, META("a", "uid-a", "11"));
        give(w, ITEM("a", "10", "n4")); /* older than the metadata */
        assert_string_equal(node_of(w, "a"), "n2");
        /* It was no answer to a write, so it stays when the watch passes its version. */
        pod_bookmark(&w->api, 20);
        fake_chunk(w->api.watch, EVENT("MODIFIED", META("a", "uid-a", "21")));
        world_wait_for_log(w, "+a@3 ~a@3>11 ~a@11>11 ~a@11>21 ");
        assert_string_equal(node_of(w, "a"), "n2");
}

/* The watch then delivers the metadata of the version that the answer had. */
static void a_whole_answer_is_not_replaced_by_its_own_metadata(void **state) {
        struct world *w = *state;
        begin_inheriting(w);
        give(w, ITEM("a", "11", "n2"));
        world_wait_for_log(w, "+a@3 ~a@3>11 ");
        fake_chunk(w->api.watch,
                   EVENT("MODIFIED", META("a", "uid-a", "11")) EVENT("ADDED", META("b", "uid-b", "12")));
        world_wait_for_log(w, "+a@3 ~a@3>11 +b@12 ");
        assert_string_equal(node_of(w, "a"), "n2");
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
                T(test_two_indexes),
                T(test_undecodable_object_is_skipped_and_reported_once),
                T(test_object_without_a_name),
                T(test_keep),
                T(test_objects_live_as_long_as_they_are_referenced),
                T(test_answer_is_visible_at_once_and_reported_once),
                T(test_a_learned_object_outlives_an_older_event),
                T(test_deleted_object_is_not_revived),
                T(test_learned_object_that_was_recreated_survives_the_old_deletion),
                T(test_learned_object_that_does_not_match_is_removed),
                T(test_answers_without_an_object_are_ignored),
                T(test_our_own_deletion_is_visible_at_once),
                T(test_learn_from_inside_changed),
                T(a_watch_of_metadata_keeps_the_rest_of_an_object),
                T(a_whole_object_replaces_metadata_of_the_same_version),
                T(a_whole_answer_is_not_replaced_by_its_own_metadata),
        };
        return cmocka_run_group_tests_name("informer_cache", tests, NULL, NULL);
}
