/* SPDX-License-Identifier: Apache-2.0 */
/* When a cache is current, and when it needs a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kube/kube_freshness.h"

enum { LIMIT_MS = 450000 };

static struct kube_freshness f;
static uint64_t now_ms;
static bool urgent, one_page, interrupted;

static void sees(enum kube_sign sign) {
        f = kube_freshness_after(&f, &(struct kube_observation){ .sign = sign,
                                                                 .now_ms = now_ms,
                                                                 .urgent = urgent,
                                                                 .one_page = one_page,
                                                                 .interrupted = interrupted,
                                                                 .relist_ms = 31000 });
}

static void watch_ends_after(uint64_t ms) {
        now_ms += ms;
        f = kube_freshness_after(&f, &(struct kube_observation){ .sign = KUBE_WATCH_ENDED,
                                                                 .lasted_ms = ms,
                                                                 .asked_ms = LIMIT_MS });
}

static void lists(void) {
        sees(KUBE_LIST_BEGAN);
        sees(KUBE_LIST_ENDED);
}

static int begin(void **state) {
        f = (struct kube_freshness){ 0 };
        now_ms = 1000000;
        urgent = one_page = true;
        interrupted = false;
        lists();
        assert_true(f.listed && !f.current);
        sees(KUBE_WATCH_ACCEPTED);
        assert_true(f.current && !f.relist);
        return 0;
}

static int begin_without_current(void **state) {
        begin(state);
        urgent = false;
        return 0;
}

static void assert_stale_and_resumed(void) {
        assert_false(f.current);
        assert_true(f.listed);
}

static void assert_stale_and_listed(void) {
        assert_false(f.current);
        assert_false(f.listed);
}

/* failure: a watch ends at its time limit -> the cache stays current */
static void a_watch_that_ended_at_its_time_limit_is_resumed_without_doubt(void **state) {
        watch_ends_after(LIMIT_MS);
        assert_true(f.current && f.listed);
        sees(KUBE_WATCH_ACCEPTED);
        assert_true(f.current && !f.relist);
        watch_ends_after(LIMIT_MS - 1000);
        assert_true(f.current && f.listed);
}

/* As with an API server that shuts down: it may return with the data of a backup. */
/* failure: a watch ends early -> a new list is made before the cache counts as current */
static void a_watch_that_ended_early_is_followed_by_a_list(void **state) {
        watch_ends_after(LIMIT_MS - 1001);
        assert_stale_and_resumed();
        sees(KUBE_WATCH_ACCEPTED);
        assert_true(f.relist && !f.current);
        sees(KUBE_RELIST_DUE);
        assert_stale_and_listed();
        lists();
        assert_stale_and_resumed();
        sees(KUBE_WATCH_ACCEPTED);
        assert_true(f.current && !f.relist);
}

/* If only the watch is refused, lists do not replace it. */
/* failure: only the watch is refused -> no lists are made until it is accepted */
static void nothing_is_listed_before_a_watch_is_accepted(void **state) {
        for (int n = 0; n < 3; n++) {
                sees(KUBE_REQUEST_FAILED);
                assert_stale_and_resumed();
                assert_false(f.relist);
        }
        sees(KUBE_WATCH_ACCEPTED);
        assert_true(f.relist);
}

/* failure: a watch breaks and a bookmark arrives -> the cache stays stale until a list */
static void events_and_bookmarks_do_not_make_a_cache_current(void **state) {
        sees(KUBE_REQUEST_FAILED);
        sees(KUBE_WATCH_ACCEPTED);
        sees(KUBE_WATCH_EVENT);
        assert_false(f.current);
}

static void a_short_list_is_repeated_at_once(void **state) {
        sees(KUBE_REQUEST_FAILED);
        now_ms += 100;
        sees(KUBE_WATCH_ACCEPTED);
        assert_true(f.relist && f.relist_at_ms <= now_ms);
}

/* A list of many pages that takes this long. */
static void lists_for(uint64_t ms) {
        one_page = false;
        sees(KUBE_LIST_BEGAN);
        now_ms += ms;
        sees(KUBE_LIST_ENDED);
}

/* failure: watches break again and again -> long lists take at most a fifth of the time */
static void after_a_long_list_is_a_pause_of_four_times_its_duration(void **state) {
        lists_for(10000);
        for (unsigned n = 0; n < 30; n++) {
                uint64_t listed_ms = now_ms;
                while (now_ms < listed_ms + 40000) {
                        sees(KUBE_REQUEST_FAILED);
                        sees(KUBE_WATCH_ACCEPTED);
                        assert_true(f.relist);
                        assert_int_equal(f.relist_at_ms, listed_ms + 40000);
                        now_ms += 10000;
                }
                sees(KUBE_RELIST_DUE);
                lists_for(10000);
                sees(KUBE_WATCH_ACCEPTED);
                assert_true(f.current);
        }
}

static void the_pause_after_a_long_list_has_limits(void **state) {
        lists_for(0);
        sees(KUBE_REQUEST_FAILED);
        sees(KUBE_WATCH_ACCEPTED);
        assert_int_equal(f.relist_at_ms, now_ms + 1000);
        lists_for(3600000);
        sees(KUBE_REQUEST_FAILED);
        sees(KUBE_WATCH_ACCEPTED);
        assert_int_equal(f.relist_at_ms, now_ms + 60000);
}

/* The nodes of a cluster do not list at the same time after a restart of an API server. */
static void an_informer_without_current_lists_a_while_later(void **state) {
        sees(KUBE_REQUEST_FAILED);
        sees(KUBE_WATCH_ACCEPTED);
        assert_true(f.relist);
        assert_int_equal(f.relist_at_ms, now_ms + 31000);
}

/* failure: watches break again and again -> lists are still made */
static void watches_that_break_repeatedly_do_not_delay_the_list(void **state) {
        uint64_t at_ms = now_ms + 31000;

        for (unsigned n = 0; n < 5; n++) {
                sees(KUBE_REQUEST_FAILED);
                assert_false(f.relist);
                sees(KUBE_WATCH_ACCEPTED);
                assert_true(f.relist);
                assert_int_equal(f.relist_at_ms, at_ms);
                now_ms += 5000;
        }
        sees(KUBE_RELIST_DUE);
        lists();
        assert_int_equal(f.relist_at_ms, 0);
}

/* Its pages may belong to two histories. */
static void an_interrupted_list_proves_nothing(void **state) {
        sees(KUBE_HISTORY_GONE);
        interrupted = true;
        lists();
        sees(KUBE_WATCH_ACCEPTED);
        assert_true(f.relist && !f.current);
        sees(KUBE_RELIST_DUE);
        interrupted = false;
        lists();
        sees(KUBE_WATCH_ACCEPTED);
        assert_true(f.current);
}

static void these_need_a_list_before_the_next_watch(void **state) {
        static const enum kube_sign signs[] = { KUBE_WATCH_UNREADABLE, KUBE_WATCH_SILENT, KUBE_HISTORY_GONE,
                                                KUBE_HISTORY_CHANGED };

        for (size_t n = 0; n < sizeof signs / sizeof *signs; n++) {
                begin(state);
                sees(signs[n]);
                assert_stale_and_listed();
                lists();
                sees(KUBE_WATCH_ACCEPTED);
                assert_true(f.current && !f.relist);
        }
}

/* failure: a watch gets the same ERROR event repeatedly -> the cache is listed again only once */
static void the_third_error_event_in_a_row_needs_a_list(void **state) {
        for (unsigned n = 1; n <= 6; n++) {
                sees(KUBE_ERROR_EVENT);
                assert_int_equal(f.listed, n % 3 != 0);
                assert_false(f.current);
                if (!f.listed)
                        lists();
                sees(KUBE_WATCH_ACCEPTED);
        }
        sees(KUBE_ERROR_EVENT);
        sees(KUBE_ERROR_EVENT);
        sees(KUBE_WATCH_EVENT);
        sees(KUBE_ERROR_EVENT);
        assert_true(f.listed);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup(f, begin)
#define WITHOUT(f) cmocka_unit_test_setup(f, begin_without_current)
                T(a_watch_that_ended_at_its_time_limit_is_resumed_without_doubt),
                T(a_watch_that_ended_early_is_followed_by_a_list),
                T(nothing_is_listed_before_a_watch_is_accepted),
                T(events_and_bookmarks_do_not_make_a_cache_current),
                T(a_short_list_is_repeated_at_once),
                T(after_a_long_list_is_a_pause_of_four_times_its_duration),
                T(the_pause_after_a_long_list_has_limits),
                WITHOUT(an_informer_without_current_lists_a_while_later),
                WITHOUT(watches_that_break_repeatedly_do_not_delay_the_list),
                T(an_interrupted_list_proves_nothing),
                T(these_need_a_list_before_the_next_watch),
                T(the_third_error_event_in_a_row_needs_a_list),
        };
        return cmocka_run_group_tests_name("kube_freshness", tests, NULL, NULL);
}
