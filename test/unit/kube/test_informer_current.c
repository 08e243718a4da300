/* SPDX-License-Identifier: Apache-2.0 */
/* When an informer reports that its cache is current, and when it lists again for that. In virtual time
 * (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "informer_world.h"

static void on_current(void *u, bool is) {
        struct world *w = u;
        buf_adds(&w->log, is ? "current " : "stale ");
        assert_int_equal(kube_informer_current(w->informer), is);
}

static int set_up(void **state) {
        struct world *w;
        world_set_up(state);
        w = *state;
        w->o.current = on_current;
        return 0;
}

static void two_pages(struct pod_server *s, struct fake_conn *c, const struct fake_request *r) {
        fake_list(c, r, "Pod",
                  fake_query(r, "continue") ? LIST("10", ITEM("b", "2", "n1"))
                                            : PAGE("10", "next", ITEM("a", "1", "n1")));
}

/* Two pages with one object each. */
static void begin_with_a_long_list(struct world *w) {
        w->o.limit = 1;
        w->api.answer_list = two_pages;
        world_begin_watching(w);
        world_wait_for_log(w, "+a@1 +b@2 current ");
}

static void a_cache_is_current_after_a_list_and_an_accepted_watch(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        world_wait_for_log(w, "current ");
        assert_int_equal(w->api.n_lists, 1);
        assert_int_equal(w->api.n_watches, 1);
}

/* failure: a watch breaks -> a short list is repeated at once */
static void a_short_list_is_repeated(void **state) {
        struct world *w = *state;
        w->api.pages[1] = LIST("12", ITEM("b", "12", "n1"));
        world_begin_watching(w);
        fake_close(w->api.watch);
        world_wait_for_log(w, "current stale +b@12 current ");
        assert_int_equal(w->api.n_lists, 2);
        assert_int_equal(w->api.n_watches, 3);
}

/* If only the watch is refused, lists do not replace it. */
/* failure: only the watch is refused -> no lists are made until it is accepted */
static void nothing_is_listed_before_a_watch_is_accepted(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        w->api.n_watch_failures = 3;
        w->api.watch_failure = 403;
        fake_close(w->api.watch);
        world_wait_for_watch(w, 4);
        assert_int_equal(w->api.n_lists, 1);
        world_wait_for_log(w, "current stale current ");
        assert_int_equal(w->api.n_lists, 2);
}

/* One bookmark every minute, as the API server sends them. */
static void live_for(struct world *w, unsigned seconds) {
        for (unsigned s = 0; s < seconds; s++) {
                run_for(&w->loop, 1000);
                if (s % 60 == 0)
                        pod_bookmark(&w->api, 20 + s);
        }
}

static unsigned asked_seconds(const struct world *w) {
        return (unsigned)atoi(strstr(w->api.watch_path, "timeoutSeconds=") + strlen("timeoutSeconds="));
}

/* failure: a watch ends at its time limit -> it is resumed without a list */
static void a_watch_that_ended_at_its_time_limit_is_resumed(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        live_for(w, asked_seconds(w));
        fake_end(w->api.watch);
        world_wait_for_watch(w, 2);
        assert_int_equal(w->api.n_lists, 1);
        world_wait_for_log(w, "current ");
}

/* As with an API server that shuts down: it may return with the data of a backup. */
/* failure: a watch ends early -> a new list is made before the cache counts as current */
static void a_watch_that_ended_early_is_followed_by_a_list(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        live_for(w, asked_seconds(w) - 10);
        w->api.pages[0] = LIST("1000", "");
        fake_end(w->api.watch);
        world_wait_for_log(w, "current stale current ");
        assert_int_equal(w->api.n_lists, 2);
}

/* failure: a watch breaks and a bookmark arrives -> the cache stays stale until a list */
static void a_bookmark_does_not_make_a_cache_current(void **state) {
        struct world *w = *state;
        begin_with_a_long_list(w);
        fake_close(w->api.watch);
        world_wait_for_watch(w, 2);
        assert_string_equal(w->api.watch_rv, "10");
        pod_event(&w->api, "DELETED", "b", 11, "n1"); /* events are applied at once */
        pod_bookmark(&w->api, 15);
        world_wait_for_log(w, "+a@1 +b@2 current stale -b@2 ");
        assert_false(kube_informer_current(w->informer));
        assert_int_equal(w->api.n_lists, 2);
}

/* A connection that breaks every ten seconds, for five minutes. */
/* failure: watches break every ten seconds -> a long list is made at most once per minute */
static void a_long_list_is_made_at_most_once_a_minute(void **state) {
        struct world *w = *state;
        begin_with_a_long_list(w);
        for (unsigned n = 0; n < 30; n++) {
                run_for(&w->loop, 10000);
                fake_close(w->api.watch);
        }
        assert_in_range(w->api.n_lists, 2 + 2 * 4, 2 + 2 * 5);
}

/* failure: a watch is silent for long -> a list is made */
static void a_silence_is_followed_by_a_list(void **state) {
        struct world *w = *state;
        w->o.silence_ms = 1000;
        begin_with_a_long_list(w);
        run_for(&w->loop, 1200);
        world_wait_for_watch(w, 2);
        assert_true(w->api.n_lists > 2);
        assert_true(kube_informer_current(w->informer));
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, world_tear_down)
                T(a_cache_is_current_after_a_list_and_an_accepted_watch),
                T(a_short_list_is_repeated),
                T(nothing_is_listed_before_a_watch_is_accepted),
                T(a_watch_that_ended_at_its_time_limit_is_resumed),
                T(a_watch_that_ended_early_is_followed_by_a_list),
                T(a_bookmark_does_not_make_a_cache_current),
                T(a_long_list_is_made_at_most_once_a_minute),
                T(a_silence_is_followed_by_a_list),
        };
        return cmocka_run_group_tests_name("informer_current", tests, NULL, NULL);
}
