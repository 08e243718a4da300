/* SPDX-License-Identifier: Apache-2.0 */
/* A recovery: n1 and n2 had mapped our memory, according to the file that only nvidia-imex can read. */
#include "runner_world.h"

#define WAITS "[ -e run/persist.dat ] && echo WAITING_FOR_RECOVERY > status || echo READY > status\n"

static void members_in(const char *boot1, const char *boot2) {
        struct imex_peer peers[2];
        struct imex_members m = { .own_index = 0, .infix = "ab", .peers = peers };

        if (boot1)
                peers[m.n_peers++] =
                        (struct imex_peer){ .index = 1, .ip = "10.0.0.2", .node = "n1", .boot_id = boot1 };
        if (boot2)
                peers[m.n_peers++] =
                        (struct imex_peer){ .index = 2, .ip = "10.0.0.3", .node = "n2", .boot_id = boot2 };
        imex_runner_set_members(runner, &m);
}

static bool names_both(void) {
        return streq(last_awaited, "n1, n2");
}
static bool names_n2(void) {
        return streq(last_awaited, "n2");
}
static bool asked_four_more(void) {
        return count("asked", "-q") >= asked_before + 4;
}

/* Waits for some more answers of IMEX, after which their effects are visible. */
static void wait_for_answers(void) {
        asked_before = count("asked", "-q");
        assert_true(within(5000, asked_four_more));
}

/* An answer to -N without a connected node. */
#define ALONE "{\"nodes\":{\"0\":{\"host\":\"10.0.0.1\",\"connections\":{}}}}"

static void begin_to_wait(void) {
        _cleanup_(freep) char *run = in_dir("run");

        make();
        assert_int_equal(mkdir(run, 0755), 0);
        put("run/persist.dat", "n1 n2", 0644);
        put("before", WAITS, 0644);
        put("id", "0", 0644);
        members_in("b1", "b2");
        imex_runner_set_current(runner, true);
}

static void wait_for_importers(void) {
        put("domain", ALONE, 0644);
        begin_to_wait();
        assert_true(within(5000, names_both));
}

/* failure: nvidia-imex ended uncleanly -> it waits for each peer that may map its memory, and names them */
static void test_recovery_waits_for_each_peer_that_may_map_our_memory(void **state) {
        wait_for_importers();
        assert_non_null(strstr(last_reason, "waits for n1, n2: bring it back"));
        members_in("other", "b2");
        assert_true(within(5000, names_n2));
        wait_for_answers();
        assert_int_equal(count("events", "start"), 1);
        assert_int_equal(last.renewals, 0);

        members_in("other", NULL);
        assert_true(within(5000, is_ready));
        assert_int_equal(count("events", "start"), 2);
        assert_int_equal(count("events", "term"), 1);
        assert_int_equal(count("run/persist.dat", "n"), 0);
        assert_int_equal(last.renewals, 1);
        assert_int_equal(last.restarts, 0); /* the restart was intended */
        assert_string_equal(last_awaited, "");
}

/* failure: a peer has connected to the recovering nvidia-imex -> nvidia-imex no longer waits for it */
static void test_recovery_counts_connected_peers(void **state) {
        wait_for_importers();
        put("domain",
            "{\"nodes\":{\"0\":{\"host\":\"10.0.0.1\",\"connections\":{\"0\":{\"status\":\"CONNECTED\"},"
            "\"1\":{\"status\":\"CONNECTED\"},\"2\":{\"status\":\"NEVER_CONNECTED\"}}}}}",
            0644);
        assert_true(within(5000, names_n2));
        /* One connection is enough, even if it is lost again. */
        put("domain",
            "{\"nodes\":{\"0\":{\"host\":\"10.0.0.1\",\"connections\":{\"1\":{\"status\":\"RECOVERING\"}}}}}",
            0644);
        wait_for_answers();
        assert_string_equal(last_awaited, "n2");
        members_in("b1", "other");
        assert_true(within(5000, is_ready));
        assert_int_equal(last.renewals, 1);
}

/* failure: the view of peers is stale during a recovery -> it does not end the wait */
static void test_recovery_ignores_stale_members(void **state) {
        wait_for_importers();
        imex_runner_set_current(runner, false);
        members_in("other", NULL);
        wait_for_answers();
        assert_int_equal(count("events", "start"), 1);
        imex_runner_set_current(runner, true);
        assert_true(within(5000, is_ready));
}

/* Everything that nvidia-imex remembers is removed before it starts. */
/* failure: nvidia-imex restarts after a recovery -> its old state is removed first */
static void test_recovery_starts_without_old_state(void **state) {
        _cleanup_(freep) char *inner = in_dir("run/inner");

        wait_for_importers();
        assert_int_equal(mkdir(inner, 0755), 0);
        put("run/inner/file", "n1", 0644);
        members_in(NULL, NULL);
        assert_true(within(5000, is_ready));
        assert_int_equal(access(inner, F_OK), -1);
        assert_int_equal(count("events", "start"), 2);
}

static void test_recovery_that_ends_by_itself_causes_no_restart(void **state) {
        wait_for_importers();
        put("status", "READY\n", 0644);
        assert_true(within(5000, is_ready));
        assert_string_equal(last_awaited, "");
        members_in(NULL, NULL);
        wait_for_answers();
        assert_int_equal(count("events", "start"), 1);
        assert_int_equal(last.renewals, 0);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, make_dir, finish)
        const struct CMUnitTest tests[] = {
                T(test_recovery_waits_for_each_peer_that_may_map_our_memory),
                T(test_recovery_counts_connected_peers),
                T(test_recovery_ignores_stale_members),
                T(test_recovery_starts_without_old_state),
                T(test_recovery_that_ends_by_itself_causes_no_restart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
