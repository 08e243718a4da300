/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "world/fake_server.h"
#include "kube/work_queue.h"

struct world {
        uv_loop_t loop;
        struct work_queue *q;
        struct buf log;
        unsigned calls;
        bool called;
        uint64_t at_ms;
        void (*handler)(struct world *w, const char *key);
};

static void on_key(void *u, const char *key) {
        struct world *w = u;
        buf_addf(&w->log, "%s ", key);
        w->calls++;
        w->called = true;
        w->at_ms = uv_hrtime() / 1000000;
        if (w->handler)
                w->handler(w, key);
}

static int set_up(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->log = BUF_INIT(1 << 20);
        w->q = work_queue_new(&w->loop, 20, 80, on_key, w);
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        struct world *w = *state;
        work_queue_free(w->q);
        loop_end(&w->loop);
        buf_done(&w->log);
        free(w);
        return 0;
}

static uint64_t now_ms(void) {
        return uv_hrtime() / 1000000;
}

static void test_one_entry_per_key_in_order(void **state) {
        struct world *w = *state;
        work_queue_add(w->q, "b");
        work_queue_add(w->q, "a");
        work_queue_add(w->q, "b");
        work_queue_add(w->q, "");
        assert_int_equal(w->calls, 0);
        assert_int_equal(work_queue_depth(w->q), 3);
        RUN_UNTIL(&w->loop, streq(buf_str(&w->log), "b a  "));
        assert_int_equal(work_queue_depth(w->q), 0);
}

static void add_again(struct world *w, const char *key) {
        if (w->calls < 3)
                work_queue_add(w->q, key);
}

static void test_add_from_inside_the_handler(void **state) {
        struct world *w = *state;
        w->handler = add_again;
        work_queue_add(w->q, "a");
        RUN_UNTIL(&w->loop, w->calls >= 3);
        run_for(&w->loop, 20);
        assert_int_equal(w->calls, 3);
}

static void test_the_earliest_time_counts(void **state) {
        struct world *w = *state;
        uint64_t before = now_ms();
        work_queue_add_after(w->q, "a", 500);
        work_queue_add_after(w->q, "a", 50);
        work_queue_add_after(w->q, "a", 300);
        assert_int_equal(work_queue_depth(w->q), 0);
        run_until(&w->loop, &w->called);
        assert_in_range(w->at_ms - before, 49, 250);
        run_for(&w->loop, 550);
        assert_int_equal(w->calls, 1);
}

static void test_add_now_precedes_a_later_time(void **state) {
        struct world *w = *state;
        work_queue_add_after(w->q, "a", 100);
        work_queue_add(w->q, "a");
        RUN_UNTIL(&w->loop, w->calls == 1);
        work_queue_add(w->q, "a");
        work_queue_add_after(w->q, "a", 100);
        RUN_UNTIL(&w->loop, w->calls == 2);
        run_for(&w->loop, 150);
        assert_int_equal(w->calls, 2);
}

static void test_order_of_times(void **state) {
        struct world *w = *state;
        static const unsigned ms[] = { 70, 10, 40, 60, 20, 50, 30 };
        for (size_t i = 0; i < ARRAY_LEN(ms); i++) {
                _cleanup_(freep) char *key = xasprintf("%u", ms[i]);
                work_queue_add_after(w->q, key, ms[i]);
        }
        work_queue_add_after(w->q, "40", 5); /* moved to the front, from the middle of the heap */
        RUN_UNTIL(&w->loop, w->calls == 7);
        assert_string_equal(buf_str(&w->log), "40 10 20 30 50 60 70 ");
}

static void fail_four_times(struct world *w, const char *key) {
        static uint64_t last;
        static const unsigned low[] = { 0, 15, 30, 60, 60 }, high[] = { 0, 60, 85, 150, 150 };
        uint64_t now = now_ms();
        unsigned step = w->calls - 1;
        if (step)
                assert_in_range(now - last, low[step], high[step]);
        last = now;
        if (w->calls < 5)
                work_queue_retry(w->q, key);
}

static void test_back_off_grows_to_its_limit(void **state) {
        struct world *w = *state;
        w->handler = fail_four_times;
        work_queue_add(w->q, "a");
        RUN_UNTIL(&w->loop, w->calls == 5);
}

static void test_forget_resets_the_back_off(void **state) {
        struct world *w = *state;
        for (int i = 0; i < 5; i++) {
                work_queue_retry(w->q, "a");
                w->called = false;
                run_until(&w->loop, &w->called);
        }
        work_queue_forget(w->q, "a");
        work_queue_forget(w->q, "unknown");
        w->called = false;
        uint64_t before = now_ms();
        work_queue_retry(w->q, "a");
        run_until(&w->loop, &w->called);
        assert_in_range(w->at_ms - before, 14, 50);
}

static void forget_self(struct world *w, const char *key) {
        work_queue_forget(w->q, key);
        assert_string_equal(key, "a");
}

static void test_forget_from_inside_the_handler(void **state) {
        struct world *w = *state;
        w->handler = forget_self;
        work_queue_retry(w->q, "a");
        run_until(&w->loop, &w->called);
}

static void free_queue(struct world *w, const char *key) {
        work_queue_free(w->q);
        w->q = NULL;
}

static void test_free_from_inside_the_handler(void **state) {
        struct world *w = *state;
        w->handler = free_queue;
        work_queue_add(w->q, "a");
        work_queue_add(w->q, "b");
        work_queue_add_after(w->q, "c", 5);
        run_until(&w->loop, &w->called);
        run_for(&w->loop, 20);
        assert_int_equal(w->calls, 1);
}

static void test_many_keys_do_not_starve_the_network(void **state) {
        struct world *w = *state;
        for (unsigned i = 0; i < 1000; i++) {
                _cleanup_(freep) char *key = xasprintf("k%u", i);
                work_queue_add(w->q, key);
        }
        uv_run(&w->loop, UV_RUN_NOWAIT);
        assert_in_range(w->calls, 1, 200);
        RUN_UNTIL(&w->loop, w->calls == 1000);
}

static void test_waiters_are_queued_once_and_forgotten(void **state) {
        struct world *w = *state;
        struct work_queue_waiter *set = NULL;
        work_queue_waiters_add(&set, "a");
        work_queue_waiters_add(&set, "b");
        work_queue_waiters_add(&set, "a");
        work_queue_waiters_queue(&set, w->q, 0);
        assert_null(set);
        work_queue_waiters_add(&set, "c");
        work_queue_waiters_queue(&set, w->q, 50);
        work_queue_waiters_add(&set, "d");
        work_queue_waiters_drop(&set);
        assert_null(set);
        run_for(&w->loop, 25);
        assert_string_equal(buf_str(&w->log), "a b ");
        RUN_UNTIL(&w->loop, w->calls == 3);
        assert_string_equal(buf_str(&w->log), "a b c ");
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(test_one_entry_per_key_in_order),
                T(test_add_from_inside_the_handler),
                T(test_the_earliest_time_counts),
                T(test_add_now_precedes_a_later_time),
                T(test_order_of_times),
                T(test_back_off_grows_to_its_limit),
                T(test_forget_resets_the_back_off),
                T(test_forget_from_inside_the_handler),
                T(test_free_from_inside_the_handler),
                T(test_many_keys_do_not_starve_the_network),
                T(test_waiters_are_queued_once_and_forgotten),
        };
        return cmocka_run_group_tests_name("work_queue", tests, NULL, NULL);
}
