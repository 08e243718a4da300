/* SPDX-License-Identifier: Apache-2.0 */
/* When an informer says that its cache is current: what was missed while there was no watch comes behind the
 * head of the next. In virtual time (virtual_time.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "informer_world.h"

#define BOOKMARK(rv) "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" rv "\"}}}\n"

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

/* Two pages of one object. */
static void begin_with_a_long_list(struct world *w) {
        w->o.limit = 1;
        w->pages[0] = PAGE("10", "next", ITEM("a", "1", "n1"));
        w->pages[1] = LIST("10", ITEM("b", "2", "n1"));
        world_begin_watching(w);
        world_wait_for_log(w, "+a@1 +b@2 current ");
}

static void a_list_is_the_proof_behind_which_a_watch_begins(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        world_wait_for_log(w, "current ");
        assert_int_equal(w->n_lists, 1);
        assert_int_equal(w->n_watches, 1);
}

static void a_short_list_is_made_again(void **state) {
        struct world *w = *state;
        w->pages[1] = LIST("12", ITEM("b", "12", "n1"));
        world_begin_watching(w);
        fake_close(w->watch);
        world_wait_for_log(w, "current stale +b@12 current ");
        assert_int_equal(w->n_lists, 2);
        assert_int_equal(w->n_watches, 3);
}

/* Who is refused the watch alone is not answered by lists. */
static void nothing_is_listed_before_a_watch_is_accepted(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        w->n_watch_failures = 3;
        w->watch_failure = 403;
        fake_close(w->watch);
        world_wait_for_watch(w, 4);
        assert_int_equal(w->n_lists, 1);
        world_wait_for_log(w, "current stale current ");
        assert_int_equal(w->n_lists, 2);
}

static bool asks_for_seconds(const struct world *w) {
        const char *value = strstr(w->watch_path, "timeoutSeconds=");
        return streq(value, "timeoutSeconds=5");
}

static void a_bookmark_is_the_proof_of_a_long_one(void **state) {
        struct world *w = *state;
        begin_with_a_long_list(w);
        fake_close(w->watch);
        world_wait_for_watch(w, 2);
        assert_true(asks_for_seconds(w));
        assert_false(kube_informer_current(w->informer));
        world_event(w, "DELETED", "b", 11, "n1"); /* there may be more of that */
        world_wait_for_log(w, "+a@1 +b@2 current stale -b@2 ");
        fake_chunk(w->watch, BOOKMARK("15"));
        world_wait_for_log(w, "+a@1 +b@2 current stale -b@2 current ");
        run_for(&w->loop, 1100); /* one that ends sooner is a failure */
        fake_end(w->watch);
        world_wait_for_watch(w, 3);
        assert_false(asks_for_seconds(w));
        assert_true(kube_informer_current(w->informer));
        assert_int_equal(w->n_lists, 2);
}

/* The API server promises no bookmark, and sends none while it knows of no change. */
static void a_long_list_is_made_again_when_no_bookmark_comes(void **state) {
        struct world *w = *state;
        begin_with_a_long_list(w);
        fake_close(w->watch);
        for (unsigned n = 2; n < 5; n++) {
                world_wait_for_watch(w, n);
                assert_int_equal(w->n_lists, 2);
                assert_false(kube_informer_current(w->informer));
                run_for(&w->loop, 1100);
                fake_end(w->watch);
        }
        world_wait_for_watch(w, 5);
        assert_true(w->n_lists > 2);
        assert_true(kube_informer_current(w->informer));
}

static void a_silence_is_no_proof(void **state) {
        struct world *w = *state;
        w->o.silence_ms = 1000;
        begin_with_a_long_list(w);
        run_for(&w->loop, 1100);
        world_wait_for_watch(w, 2);
        assert_false(kube_informer_current(w->informer));
        assert_int_equal(w->n_lists, 2);
        run_for(&w->loop, 1100); /* a server that keeps no time either */
        world_wait_for_watch(w, 3);
        assert_true(w->n_lists > 2);
        assert_true(kube_informer_current(w->informer));
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, world_tear_down)
                T(a_list_is_the_proof_behind_which_a_watch_begins),  T(a_short_list_is_made_again),
                T(nothing_is_listed_before_a_watch_is_accepted),     T(a_bookmark_is_the_proof_of_a_long_one),
                T(a_long_list_is_made_again_when_no_bookmark_comes), T(a_silence_is_no_proof),
        };
        return cmocka_run_group_tests_name("informer_current", tests, NULL, NULL);
}
