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
                T(a_watch_that_ended_at_its_time_limit_is_resumed),
                T(a_silence_is_followed_by_a_list),
        };
        return cmocka_run_group_tests_name("informer_current", tests, NULL, NULL);
}
