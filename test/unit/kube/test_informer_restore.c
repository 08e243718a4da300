/* SPDX-License-Identifier: Apache-2.0 */
/* Informers after etcd was restored from a backup without --bump-revision: the server's versions continue
 * from a value below those that were seen, and no watch shows that (pod_event() follows the API server's
 * rule). In virtual time (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "informer_world.h"

enum { LATEST_S = 180 };

/* The earlier history has version 1200, and a@1150. */
static void begin(struct world *w) {
        w->api.pages[0] = LIST("1200", ITEM("a", "1150", "n1"));
        world_begin_watching(w);
        world_wait_for_log(w, "+a@1150 ");
}

/* The API server is restarted with the backup. */
static void restore(struct world *w, const char *list) {
        unsigned n = w->api.n_watches;
        w->api.pages[0] = list;
        fake_close(w->api.watch);
        world_wait_for_watch(w, n + 1);
        assert_string_equal(w->api.watch_rv, "1200");
}

static void wait_for_list(struct world *w, unsigned n) {
        for (unsigned s = 0; s < LATEST_S && w->api.n_lists < n; s++)
                run_for(&w->loop, 1000);
        assert_int_equal(w->api.n_lists, n);
        run_for(&w->loop, 100);
}

/* failure: etcd is restored, so watches are ahead -> a list corrects the cache within three minutes */
static void a_watch_from_ahead_of_the_server_is_silent_until_the_list(void **state) {
        struct world *w = *state;
        begin(w);
        restore(w, LIST("1002", ITEM("a", "1001", "n2")));
        pod_event(&w->api, "MODIFIED", "a", 1001, "n2");
        pod_bookmark(&w->api, 1001);
        run_for(&w->loop, 100);
        assert_string_equal(buf_str(&w->log), "+a@1150 ");
        wait_for_list(w, 2);
        assert_string_equal(buf_str(&w->log), "+a@1150 ~a@1150>1001 ");
        assert_string_equal(w->api.watch_rv, "1002");
        pod_event(&w->api, "MODIFIED", "a", 1003, "n3");
        world_wait_for_log(w, "+a@1150 ~a@1150>1001 ~a@1001>1003 ");
}

/* Then events come as usual, and only the list shows the changes below the old version. */
/* failure: after a restore new versions pass the old ones -> a list still corrects the cache */
static void the_counter_passes_the_old_version_before_the_list(void **state) {
        struct world *w = *state;
        begin(w);
        restore(w, LIST("1300",
                        ITEM("a", "1001", "n2") "," ITEM("b", "1250", "n1") "," ITEM("c", "1100", "n1")));
        pod_event(&w->api, "ADDED", "b", 1250, "n1");
        world_wait_for_log(w, "+a@1150 +b@1250 ");
        for (unsigned s = 0; s < LATEST_S && w->api.n_lists < 2; s++) {
                run_for(&w->loop, 1000);
                pod_bookmark(&w->api, 1300 + s); /* the watch is not silent */
        }
        assert_int_equal(w->api.n_lists, 2);
        world_wait_for_watch(w, 3);
        assert_string_equal(buf_str(&w->log), "+a@1150 +b@1250 ~a@1150>1001 +c@1100 ");
        assert_string_equal(world_node_of(kube_informer_get(w->informer, "ns", "a")), "n2");
}

/* failure: the restored etcd lacks an object -> the cache removes it */
static void an_object_that_the_restored_etcd_lacks_is_removed(void **state) {
        struct world *w = *state;
        begin(w);
        restore(w, LIST("1300", ""));
        wait_for_list(w, 2);
        assert_string_equal(buf_str(&w->log), "+a@1150 -a@1150 ");
}

/* A proxy between client and server keeps the watch open. */
/* failure: a proxy keeps watches open over a restore -> a list corrects the cache */
static void a_watch_that_does_not_break_is_silent_and_ends_in_a_list(void **state) {
        struct world *w = *state;
        begin(w);
        w->api.pages[0] = LIST("1002", ITEM("a", "1001", "n2"));
        wait_for_list(w, 2);
        assert_string_equal(buf_str(&w->log), "+a@1150 ~a@1150>1001 ");
}

static void answer(struct world *w, const char *text) {
        yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        kube_informer_answer(w->informer, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
}

/* It is neither kept for its higher version, nor removed when the watch passes that version without an
 * event. */
/* failure: a cached answer is from before a restore -> the list replaces it */
static void the_list_replaces_an_answer_of_the_old_history(void **state) {
        struct world *w = *state;
        begin(w);
        answer(w, ITEM("a", "1205", "n3"));
        run_for(&w->loop, 10);
        restore(w, LIST("1203", ITEM("a", "1001", "n2")));
        wait_for_list(w, 2);
        assert_string_equal(buf_str(&w->log), "+a@1150 ~a@1150>1205 ~a@1205>1001 ");
        pod_bookmark(&w->api, 1300);
        run_for(&w->loop, 100);
        assert_non_null(kube_informer_get(w->informer, "ns", "a"));
}

/* failure: after a restore another object has the same version -> the cache has the new one */
static void another_object_with_the_same_version_is_taken(void **state) {
        struct world *w = *state;
        begin(w);
        restore(w, LIST("1300", "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"uid\":\"another\","
                                "\"resourceVersion\":\"1150\"},\"spec\":{\"nodeName\":\"n2\"}}"));
        wait_for_list(w, 2);
        assert_string_equal(world_node_of(kube_informer_get(w->informer, "ns", "a")), "n2");
}

static bool broken;

static void second_page_breaks(struct pod_server *s, struct fake_conn *c, const struct fake_request *r) {
        if (!fake_query(r, "continue")) {
                fake_list(c, r, "Pod", PAGE("1200", "next", ITEM("a", "1150", "n1")));
        } else if (!broken) {
                broken = true;
                fake_close(c);
        } else {
                fake_list(c, r, "Pod", LIST("1200", ""));
        }
}

/* Its pages may belong to two histories. */
/* failure: a list is interrupted by a restore -> it is repeated */
static void an_interrupted_list_is_repeated(void **state) {
        struct world *w = *state;
        broken = false;
        w->api.answer_list = second_page_breaks;
        world_begin_watching(w);
        assert_int_equal(w->api.n_lists, 3);
        wait_for_list(w, 5);
        for (unsigned s = 0; s < 120; s++)
                run_for(&w->loop, 1000);
        assert_int_equal(w->api.n_lists, 5);
}

static void a_user_that_noticed_a_restore_gets_a_list_at_once(void **state) {
        struct world *w = *state;
        begin(w);
        restore(w, LIST("1002", ITEM("a", "1001", "n2")));
        kube_informer_relist(w->informer);
        world_wait_for_log(w, "+a@1150 ~a@1150>1001 ");
        assert_int_equal(w->api.n_lists, 2);
}

/* It answers on none of the present connections. */
/* failure: the API server freezes without closing connections -> new connections are made, with a list */
static void a_frozen_server_is_replaced_by_new_connections(void **state) {
        struct world *w = *state;
        begin(w);
        fake_server_freeze(w->api.server);
        w->api.pages[0] = LIST("1201", ITEM("a", "1201", "n2"));
        wait_for_list(w, 2);
        world_wait_for_log(w, "+a@1150 ~a@1150>1201 ");
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
                T(a_watch_from_ahead_of_the_server_is_silent_until_the_list),
                T(the_counter_passes_the_old_version_before_the_list),
                T(an_object_that_the_restored_etcd_lacks_is_removed),
                T(a_watch_that_does_not_break_is_silent_and_ends_in_a_list),
                T(the_list_replaces_an_answer_of_the_old_history),
                T(another_object_with_the_same_version_is_taken),
                T(an_interrupted_list_is_repeated),
                T(a_user_that_noticed_a_restore_gets_a_list_at_once),
                T(a_frozen_server_is_replaced_by_new_connections),
        };
        return cmocka_run_group_tests_name("informer_restore", tests, NULL, NULL);
}
