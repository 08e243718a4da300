/* SPDX-License-Identifier: Apache-2.0 */
/* The whole agent in a process of its own, against an API server and an IMEX that the test plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent_world.h"

#include "imex/imex_grants.h"

#define IN_B DOMAIN(B, "bb", "51002", SEAT("n0", "0", "3", "10.0.0.1"), "")
#define USER "eeeeeeee-0000-4000-8000-000000000005"

/* SIGTERM is enough unless there is "stubborn". Once it takes signals, "alive" is its pid, and its tool
 * answers. */
#define IMEX                                                                                                 \
        "echo $$ >> pids; echo start >> events; grep -h . imexd/*/imexd.cfg | grep SERVER_PORT >> events\n"  \
        "touch run/persist.dat\n"                                                                            \
        "trap 'echo usr1 >> events' USR1\n"                                                                  \
        "trap 'cat imexd/*/state.json >> events; [ -e stubborn ] || exit 0' TERM\n"                          \
        "echo $$ > alive\n"                                                                                  \
        "while :; do sleep 1000 & wait $!; done"

static int setup(void **state) {
        if (make_dir(state) < 0 || uv_loop_init(TEST_LOOP) < 0)
                return -1;
        _cleanup_(freep) char *shared = in_dir("imexd"), *run = in_dir("run");
        struct err e;
        assert_int_equal(file_mkdirs(shared, 0755, &e), 0);
        assert_int_equal(file_mkdirs(run, 0755, &e), 0);
        put_program("imex", IMEX);
        put_program("ctl", "kill -0 \"$(cat alive)\" && cat status");
        put("status", "READY\n", 0644);
        put("hosts", "127.0.0.1\tlocalhost\n", 0644);
        put("imexd/fabric", FABRIC "\n", 0644);
        watch = NULL;
        domains = NULL;
        table_of = "fu";
        n_patches = 0;
        rv = 1;
        start_server(0);
        return 0;
}

static int teardown(void **state) {
        end_world();
        kill_imex();
        return remove_dir(state);
}

/* ---- what is so ---- */

static bool left_a(void) {
        return !there("imexd/" A);
}

static bool told_left_1(void) {
        return told("imex.resource.nvidia.com/left\":\"1\"");
}
static bool told_seat_a(void) {
        return told("imex.resource.nvidia.com/seat\":\"" FABRIC "/" A "/2/1\"");
}
static bool told_held(void) {
        return told("imex.resource.nvidia.com/held\":\"a pod on this node uses it, or is about to\"");
}
static bool told_refused(void) {
        return told("a seat for this node that cannot be");
}
static bool told_idle(void) {
        return told("no IMEX domain wants this node");
}
static bool told_waits(void) {
        return told("the fabric's object is not there yet");
}
static bool started_thrice(void) {
        return count("events", "start") >= 3;
}
static bool started_twice(void) {
        return count("events", "start") == 2;
}
static bool usr1(void) {
        return count("events", "usr1") > 0;
}

static void grant(const char *domain, bool is) {
        _cleanup_(freep) char *folder = xasprintf("%s/imexd/%s", dir, domain);
        struct err e;

        assert_int_equal(is ? imex_grants_put(folder, USER, &e) : imex_grants_remove(folder, USER, false, &e),
                         0);
}

/* ---- the tests ---- */

static void runs_imex_for_the_domain_that_lists_its_node(void **state) {
        run_agent();
        assert_true(within(5000, watching));
        tell("");
        assert_true(within(5000, told_idle));
        tell(IN_A);
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.claim_uid, CLAIM);
        assert_string_equal(seen.seat, FABRIC "/" A "/2/1");
        assert_int_equal(seen.index, 2);
        assert_int_equal(count("events", "SERVER_PORT=51001"), 1);
        assert_true(within(5000, told_seat_a));
        tell(IN_A_WITH_A_PEER);
        assert_true(within(5000, usr1));
        assert_int_equal(count("hosts", "10.0.0.2\tcompute-domain-daemon-aa-0000\n"), 1);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        /* Withdrawn before IMEX was told. */
        assert_int_equal(count("events", "\"ready\":false"), 1);
}

static int64_t oom_score_adj(int64_t pid) {
        _cleanup_(freep) char *path = xasprintf("/proc/%d/oom_score_adj", (int)pid);
        _cleanup_(freep) char *text = NULL;
        struct err e;
        int64_t score = 0;
        size_t n;

        assert_int_equal(file_read(path, 16, &text, &n, &e), 0);
        assert_true(str_to_i64(str_trim((struct str){ text, n }), &score));
        return score;
}

/* A21. */
static void the_kernel_ends_the_agent_before_its_imex(void **state) {
        int64_t ours = oom_score_adj(getpid()), imex = 0;

        tell(IN_A);
        run_agent();
        assert_true(within(5000, ready_in_a));
        _cleanup_(freep) char *pids = get("pids");
        struct str rest = str_from(pids), line;
        assert_true(str_next_line(&rest, &line) && str_to_i64(line, &imex));
        assert_int_equal(oom_score_adj(imex), ours);
        assert_int_equal(oom_score_adj(program_pid), ours > 900 ? 1000 : ours + 100);
}

static void goes_from_one_domain_to_the_next(void **state) {
        tell(IN_A);
        run_agent();
        assert_true(within(5000, ready_in_a));
        tell(LEAVING_A "," AWAITED_IN_B);
        assert_true(within(5000, ready_in_b));
        assert_string_equal(seen.seat, FABRIC "/" B "/0/3");
        assert_true(left_a());
        assert_true(within(5000, told_left_1));
        assert_int_equal(count("events", "start"), 2);
        assert_int_equal(count("events", "\"ready\":false"), 1);
}

/* Which of them is right the agent cannot know; that it runs the first one is a fact. */
static void two_rosters_name_a_node_and_its_agent_stays_in_the_first(void **state) {
        static const char *const rosters[] = { IN_A "," IN_B, IN_B "," IN_A };

        tell(IN_A);
        run_agent();
        assert_true(within(5000, ready_in_a));
        for (size_t i = 0; i < ARRAY_LEN(rosters); i++) {
                tell(rosters[i]);
                assert_false(within(150, never));
                assert_true(ready_in_a());
        }
        assert_int_equal(count("events", "start"), 1);
        tell(LEAVING_A "," IN_B);
        assert_true(within(5000, ready_in_b));
        assert_true(left_a());
}

static void a_roster_under_a_grant_ends_nothing(void **state) {
        static const char *const rosters[] = {
                LEAVING_A,
                LEAVING_A "," AWAITED_IN_B,
                "",
                AWAITED_IN_B,
                DOMAIN(A, "aa", "51001", SEAT("n0", "3", "1", ""), ""),
                DOMAIN(A, "zz", "51001", SEAT("n0", "2", "1", ""), ""),
                DOMAIN(A, "aa", "51001", SEAT("n0", "1", "5", ""), ""),
        };
        tell(IN_A);
        run_agent();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        for (size_t i = 0; i < ARRAY_LEN(rosters); i++) {
                tell(rosters[i]);
                assert_false(within(150, never));
                assert_true(ready_in_a());
        }
        assert_int_equal(count("events", "start"), 1);
        assert_int_equal(count("events", "ready"), 0); /* nor was it told to end */
        tell(LEAVING_A);
        assert_true(within(5000, told_held));
        /* The last pod goes: no word of the API is needed any more. */
        fake_server_kill(server);
        grant(A, false);
        assert_true(within(5000, left_a));
        assert_int_equal(count("events", "start"), 1);
        watch = NULL;
}

static void a_domain_that_is_deleted_ends_whoever_uses_it(void **state) {
        tell(IN_A);
        run_agent();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        tell(DOMAIN(A, "aa", "51001", "",
                    "{\"node\":\"n0\",\"index\":2,\"epoch\":1,\"ordered\":\"deleted\"}"));
        assert_true(within(5000, told_left_1));
        /* What the plugin noted is the plugin's. */
        assert_true(there("imexd/" A "/grants/" USER));
        assert_false(there("imexd/" A "/state.json"));
}

static void what_was_left_is_not_taken_again(void **state) {
        tell(IN_A);
        run_agent();
        assert_true(within(5000, ready_in_a));
        tell(LEAVING_A);
        assert_true(within(5000, told_left_1));
        tell(IN_A); /* a controller that has not heard of it */
        assert_false(within(300, never));
        assert_int_equal(count("events", "start"), 1);
        assert_true(told_left_1());
        tell(DOMAIN(A, "aa", "51001", SEAT("n0", "2", "4", "10.0.0.1"), ""));
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.seat, FABRIC "/" A "/2/4");
}

static void a_killed_agent_takes_up_its_seat_without_the_api(void **state) {
        tell(IN_A_WITH_A_PEER);
        run_agent();
        assert_true(within(5000, ready_in_a));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        assert_false(ready_in_a());
        kill_imex();
        fake_server_kill(server);
        watch = NULL;
        run_agent();
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.seat, FABRIC "/" A "/2/1");
}

/* While no Pod was there, the controller may have given it to another node. */
static void a_new_pod_does_not_take_up_the_seat_of_the_one_before(void **state) {
        tell(IN_A);
        run_agent();
        assert_true(within(5000, ready_in_a));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        _cleanup_(freep) char *memory = get("imexd/agent.json");
        char *pod = strstr(memory, POD);
        assert_non_null(pod);
        *pod = 'e';
        put("imexd/agent.json", memory, 0600);
        watch = NULL;
        run_agent();
        assert_true(within(5000, told_left_1));
        assert_true(left_a());
        assert_int_equal(count("events", "start"), 1);
        assert_true(within(5000, watching));
        tell(DOMAIN(A, "aa", "51001", SEAT("n0", "3", "4", "10.0.0.1"), ""));
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.seat, FABRIC "/" A "/3/4");
}

/* Its peers may map this node's memory and do not know that it has gone. */
static void an_imex_that_had_to_be_killed_comes_back_before_the_domain_is_left(void **state) {
        tell(IN_A_WITH_A_PEER);
        run_agent();
        assert_true(within(5000, ready_in_a));
        put("stubborn", "", 0644);
        tell(LEAVING_A_WITH_A_PEER "," AWAITED_IN_B);
        assert_true(within(5000, started_twice));
        assert_false(there("imexd/" B "/state.json"));
        _cleanup_(freep) char *stubborn = in_dir("stubborn");
        unlink(stubborn);
        assert_true(within(5000, ready_in_b));
        assert_true(left_a());
        assert_true(within(5000, started_thrice));
}

static bool told_recovers(void) {
        return told("waits for the nodes that had imported its memory");
}
static bool started_again(void) {
        return count("events", "start") >= 2;
}

/* A9: after an unclean end the node takes no other domain until each importer is accounted for, even where
 * the ComputeDomain is being deleted. */
static void an_unclean_end_is_made_good_before_a_domain_that_is_deleted_is_left(void **state) {
        tell(IN_A_WITH_A_PEER);
        run_agent();
        assert_true(within(5000, ready_in_a));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        put("status", "WAITING_FOR_RECOVERY\n", 0644);
        tell(DOMAIN(A, "aa", "51001", "",
                    "{\"node\":\"n1\",\"index\":0,\"epoch\":2,\"ordered\":\"deleted\"},"
                    "{\"node\":\"n0\",\"index\":2,\"epoch\":1,\"ordered\":\"deleted\"}") "," AWAITED_IN_B);
        watch = NULL;
        run_agent();
        assert_true(within(5000, told_recovers));
        assert_true(within(5000, started_again));
        assert_true(there("run/persist.dat"));
        assert_false(there("imexd/" B "/state.json"));
        /* The other node has left: nobody is there who could map this node's memory. */
        tell(DOMAIN(A, "aa", "51001", "",
                    "{\"node\":\"n0\",\"index\":2,\"epoch\":1,\"ordered\":\"deleted\"}") "," AWAITED_IN_B);
        put("status", "READY\n", 0644);
        assert_true(within(5000, ready_in_b));
        assert_true(left_a());
}

/* A10: what the node has for IMEX is another, so that the container must start anew. */
static void an_agent_without_a_domain_starts_anew_at_once_when_the_driver_has_changed(void **state) {
        put("imexd/edits", "e1\n", 0644);
        run_agent();
        assert_true(within(5000, watching));
        tell("");
        assert_true(within(5000, told_idle));
        put("imexd/edits", "e2\n", 0644);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

static void an_agent_in_a_domain_starts_anew_when_nobody_uses_it_and_keeps_its_seat(void **state) {
        put("imexd/edits", "e1\n", 0644);
        tell(IN_A);
        run_agent();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        put("imexd/edits", "e2\n", 0644);
        assert_false(within(300, exited));
        assert_true(ready_in_a());
        assert_int_equal(count("events", "start"), 1);
        grant(A, false);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        assert_int_equal(count("events", "\"ready\":false"), 1); /* withdrawn before IMEX was told */
        put("imexd/edits", "e1\n", 0644);                        /* what the next container has */
        watch = NULL;
        run_agent();
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.seat, FABRIC "/" A "/2/1");
}

/* A pod waits for an IMEX that cannot start in the container as it is. */
static void an_agent_whose_imex_does_not_start_starts_anew_under_a_waiting_pod(void **state) {
        put("imexd/edits", "e1\n", 0644);
        put_program("imex", "exit 1");
        tell(IN_A);
        run_agent();
        assert_true(within(5000, told_seat_a));
        grant(A, true);
        put("imexd/edits", "e2\n", 0644);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

/* A6: a copy that somebody put back is of another object. */
static void a_roster_that_was_put_back_starts_and_ends_nothing(void **state) {
        table_of = "another";
        tell(IN_A);
        run_agent();
        assert_true(within(5000, told_waits));
        assert_false(within(200, never));
        assert_int_equal(count("events", "start"), 0);
        table_of = "fu";
        tell(IN_A);
        assert_true(within(5000, ready_in_a));
        table_of = "another";
        tell(LEAVING_A "," AWAITED_IN_B);
        assert_false(within(300, never));
        assert_true(ready_in_a());
}

static void a_seat_that_cannot_be_is_refused(void **state) {
        tell(DOMAIN("../../../tmp/x", "aa", "51001", SEAT("n0", "2", "1", ""), ""));
        run_agent();
        assert_true(within(5000, told_refused));
        tell(DOMAIN(A, "a/b", "51001", SEAT("n0", "2", "1", ""), ""));
        assert_false(within(200, never));
        tell(DOMAIN(A, "aa", "51001", SEAT("n0", "4", "1", ""), ""));
        assert_false(within(200, never));
        assert_int_equal(count("events", "start"), 0);
        tell(IN_A);
        assert_true(within(5000, ready_in_a));
}

static void another_fabric_begins_anew_when_nobody_uses_the_old_one(void **state) {
        tell(IN_A);
        run_agent();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        put("imexd/fabric", "ffffffff-0000-0000-0000-000000000000.2\n", 0644);
        assert_false(within(300, exited));
        assert_true(ready_in_a());
        grant(A, false);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        assert_true(left_a());
}

int main(int argc, char **argv) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(runs_imex_for_the_domain_that_lists_its_node),
                T(the_kernel_ends_the_agent_before_its_imex),
                T(goes_from_one_domain_to_the_next),
                T(a_roster_under_a_grant_ends_nothing),
                T(two_rosters_name_a_node_and_its_agent_stays_in_the_first),
                T(a_domain_that_is_deleted_ends_whoever_uses_it),
                T(what_was_left_is_not_taken_again),
                T(a_killed_agent_takes_up_its_seat_without_the_api),
                T(a_new_pod_does_not_take_up_the_seat_of_the_one_before),
                T(an_imex_that_had_to_be_killed_comes_back_before_the_domain_is_left),
                T(an_unclean_end_is_made_good_before_a_domain_that_is_deleted_is_left),
                T(an_agent_without_a_domain_starts_anew_at_once_when_the_driver_has_changed),
                T(an_agent_in_a_domain_starts_anew_when_nobody_uses_it_and_keeps_its_seat),
                T(an_agent_whose_imex_does_not_start_starts_anew_under_a_waiting_pod),
                T(a_roster_that_was_put_back_starts_and_ends_nothing),
                T(a_seat_that_cannot_be_is_refused),
                T(another_fabric_begins_anew_when_nobody_uses_the_old_one),
        };

        if (agent_asked(argc, argv))
                return be_the_agent(argv);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
