/* SPDX-License-Identifier: Apache-2.0 */
/* The whole daemon in a process of its own, against an API server and an IMEX that the test plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon_world.h"

#include "daemon/check.h"

#define IMEX                                                                                                 \
        "echo $$ >> pids; echo start >> events\n"                                                            \
        "trap 'echo usr1 >> events' USR1\n"                                                                  \
        "trap 'echo term >> events; cat state.json >> events; exit 0' TERM\n"                                \
        "echo \"Identified this node as ID $(grep -n '' nodes.cfg | grep -c x)\" > /dev/null\n"              \
        "while :; do sleep 1000 & wait $!; done"

static int setup(void **state) {
        if (make_dir(state) < 0 || uv_loop_init(TEST_LOOP) < 0)
                return -1;
        put_program("imex", IMEX);
        put_program("ctl", "cat status");
        put("status", "READY\n", 0644);
        put("hosts", "127.0.0.1\tlocalhost\n", 0644);
        watch = NULL;
        clique_daemons = NULL;
        n_patches = refuse_patches = n_lists = n_watches = 0;
        n_pages = page_patches = lists_from_cache = 0;
        serves = SERVES;
        start_server(0);
        return 0;
}

static int teardown(void **state) {
        end_world();
        kill_imex();
        return remove_dir(state);
}

static bool state_unready(void) {
        return read_state() && held && !state_now.ready;
}
static bool state_waits(void) {
        return state_unready() && strstr(state_now.reason, "no index");
}
static bool state_incomplete(void) {
        return state_unready() && strstr(state_now.reason, "1 of 2");
}
static bool state_backoff(void) {
        return state_unready() && streq(state_now.status, "BACKOFF");
}
static bool patched_thrice(void) {
        return n_patches >= 3;
}
static bool usr1(void) {
        return count("events", "usr1") > 0;
}
static bool relisted(void) {
        return n_watches >= 1;
}

static void test_forms_and_leaves(void **state) {
        const char *guard;

        uint64_t begin = uv_hrtime();

        run_daemon(CLIQUE, true);
        assert_true(within(5000, watching));
        assert_true(within(5000, state_waits));
        assert_int_equal(state_now.index, -1);

        tell(ME);
        assert_true(within(5000, state_ready));
        assert_int_equal(state_now.index, 2);
        assert_string_equal(state_now.claim_uid, CLAIM);
        assert_string_equal(state_now.pod_uid, POD);
        guard = imex_state_refusal(&state_now, held, state_now.boot_id, CLAIM);
        assert_null(guard);
        /* One write tells label and readiness, when IMEX is quicker than the patience of the first report, a
         * second. */
        bool quick = uv_hrtime() - begin < 1000000000;
        assert_true(within(5000, patched_ready));
        assert_in_range(n_patches, 1, quick ? 1 : 2);
        assert_non_null(strstr(patches[0], "\"resource.nvidia.com/computeDomain.cliqueID\":\"" CLIQUE "\""));
        assert_non_null(strstr(patches[n_patches - 1], "imex.resource.nvidia.com/index\":\"2\""));

        tell(ME "," PEER);
        assert_true(within(5000, usr1));
        assert_int_equal(count("hosts", "10.0.0.2\tcompute-domain-daemon-ab-0000\n"), 1);
        assert_true(state_ready());

        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        /* Withdrawn before IMEX was told. */
        assert_int_equal(count("events", "\"ready\":false"), 1);
        assert_true(read_state());
        assert_false(held);
        assert_false(state_now.ready);
        assert_string_equal(state_now.status, "STOPPED");
}

static void test_killed_daemon_leaves_no_ready(void **state) {
        struct err e;

        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready));
        assert_int_equal(check(dir, CLIQUE, CLAIM, &e), 0);
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        assert_true(read_state());
        assert_false(held);
        assert_non_null(imex_state_refusal(&state_now, held, state_now.boot_id, CLAIM));
        assert_int_equal(check(dir, CLIQUE, CLAIM, &e), -1);
}

static void test_restarts_without_the_api(void **state) {
        int port = fake_server_port(server);

        clique_daemons = ME "," PEER;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        fake_server_kill(server);

        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready));
        assert_int_equal(state_now.index, 2);

        /* The server comes back and knows the same: nothing happens to IMEX. */
        fake_server_free(server);
        n_watches = 0;
        watch = NULL;
        server = fake_server_new(TEST_LOOP, port, on_request, NULL);
        assert_true(within(20000, relisted));
        within(100, never);
        assert_true(state_ready());
        assert_int_equal(count("events", "start"), 2);
}

static void test_server_gone_while_running(void **state) {
        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready));
        fake_server_kill(server);
        within(300, never);
        assert_true(state_ready());
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

#define TAKER                                                                                                \
        "{\"nodeName\":\"n7\",\"ipAddress\":\"10.0.0.7\",\"cliqueID\":\"" CLIQUE                             \
        "\",\"index\":2,\"status\":\"NotReady\"}"

/* Two nodes with one id are worse than a node without IMEX. */
static void test_index_given_to_another_stops(void **state) {
        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready) && within(5000, watching));
        tell(PEER "," TAKER);
        assert_true(within(5000, state_waits));
        assert_non_null(strstr(state_now.reason, "n7"));
        assert_int_equal(count("events", "term"), 1);
        tell(ME);
        assert_true(within(5000, state_ready));
}

static bool peer_known(void) {
        return count("hosts", "10.0.0.2\tcompute-domain-daemon-ab-0000\n") == 1;
}

/* That nobody speaks of us is no word against us. */
static void test_entry_that_is_missing_stops_nothing(void **state) {
        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready) && within(5000, watching));
        tell(PEER);
        assert_true(within(5000, peer_known));
        assert_true(state_ready());
        tell("");
        within(200, never);
        assert_true(state_ready());
        assert_int_equal(count("events", "term"), 0);
        assert_int_equal(state_now.index, 2);
        /* Nor after a restart, which knows it only from its own memory. */
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        watch = NULL;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, watching) && within(5000, state_ready));
        within(200, never);
        assert_true(state_ready());
        assert_int_equal(count("events", "term"), 0);
        tell(TAKER);
        assert_true(within(5000, state_waits));
}

static bool two_pages(void) {
        return n_pages >= 2;
}
/* A page, a refusal, a list that lacks it: none of them says anything of the clique's members. */
static void test_clique_that_cannot_be_seen_disturbs_nothing(void **state) {
        const char *with_peer = ME "," PEER;

        clique_daemons = with_peer;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready) && within(5000, watching));
        assert_true(peer_known());
        serves = PAGES_404;
        fake_close(watch);
        assert_true(within(30000, two_pages));
        assert_true(state_ready() && peer_known());
        serves = REFUSES_403;
        n_pages = 0;
        assert_true(within(30000, two_pages));
        assert_true(state_ready() && peer_known());
        /* Its history is gone, and the list is empty. */
        clique_daemons = NULL;
        n_lists = n_watches = 0;
        serves = GONE_410;
        assert_true(within(30000, relisted));
        within(200, never);
        assert_true(state_ready() && peer_known());
        assert_int_equal(count("events", "usr1"), 0);
        assert_int_equal(count("events", "term"), 0);
        /* When it is there again it counts. */
        tell(ME);
        assert_true(within(5000, usr1));
        assert_false(peer_known());
}

/* What the API server's cache does not have yet looks as if it had been taken away. */
static void test_restart_asks_for_the_clique_as_it_is(void **state) {
        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready) && within(5000, watching));
        assert_int_equal(lists_from_cache, 1);
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        n_lists = lists_from_cache = 0;
        watch = NULL;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, watching));
        assert_int_equal(n_lists, 1);
        assert_int_equal(lists_from_cache, 0);
}

static void test_clique_object_deleted_disturbs_nothing(void **state) {
        _cleanup_(freep) char *item = NULL, *event = NULL;

        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready) && within(5000, watching));
        rv++;
        item = clique_json();
        event = xasprintf("{\"type\":\"DELETED\",\"object\":%s}\n", item);
        fake_chunk(watch, event);
        within(200, never);
        assert_true(state_ready());
        assert_int_equal(count("events", "term"), 0);
}

static void test_refused_report_disturbs_nothing(void **state) {
        clique_daemons = ME;
        refuse_patches = 2;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready));
        assert_true(within(10000, patched_thrice));
        assert_non_null(strstr(patches[2], "ready\":\"true\""));
        assert_true(state_ready());
}

static void test_report_answered_by_pages_is_made_again(void **state) {
        clique_daemons = ME;
        page_patches = 2;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready));
        assert_true(within(10000, patched_thrice));
        assert_non_null(strstr(patches[2], "ready\":\"true\""));
        assert_true(state_ready());
}

/* After an unclean end n1 and n3 may map our memory: told by name, and waited for until each is known not to.
 */
#define BOOT_OF(node, index, boot)                                                                           \
        "{\"nodeName\":\"" node "\",\"ipAddress\":\"10.0.0.2\",\"cliqueID\":\"" CLIQUE                       \
        "\",\"index\":" #index ",\"status\":\"NotReady\",\"bootID\":\"" boot "\"}"

static bool state_names_both(void) {
        return state_unready() && strstr(state_now.reason, "n1, n3");
}
static bool state_names_n3(void) {
        return state_unready() && strstr(state_now.reason, "to n3,");
}
static bool patched_n3(void) {
        return n_patches && strstr(patches[(n_patches - 1) % 16], "/awaited\":\"n3\"");
}

static void test_recovery_names_whom_it_waits_for_and_starts_anew(void **state) {
        _cleanup_(freep) char *run = in_dir("run");

        assert_int_equal(mkdir(run, 0755), 0);
        put("run/persist.dat", "n1 n3", 0644);
        put_program("ctl", "case \"$*\" in *-N*) echo "
                           "'{\"nodes\":{\"2\":{\"host\":\"10.0.0.1\",\"connections\":{}}}}';; "
                           "*) cat status;; esac");
        put_program(
                "imex",
                "[ -e run/persist.dat ] && echo WAITING_FOR_RECOVERY > status || echo READY > status\n" IMEX);
        clique_daemons = ME "," BOOT_OF("n1", 0, "a") "," BOOT_OF("n3", 1, "a");
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_names_both) && within(5000, watching));
        assert_string_equal(state_now.status, "WAITING_FOR_RECOVERY");
        tell(ME "," BOOT_OF("n1", 0, "b") "," BOOT_OF("n3", 1, "a"));
        assert_true(within(5000, state_names_n3));
        assert_true(within(10000, patched_n3));
        assert_int_equal(count("events", "start\n"), 1);
        tell(ME "," BOOT_OF("n1", 0, "b"));
        assert_true(within(5000, state_ready));
        assert_int_equal(count("events", "start\n"), 2);
}

static void test_crash_is_told(void **state) {
        put_program("imex", "echo start >> events; echo 'status = NV_ERR_IN_USE'; exit 1");
        put("status", "UNAVAILABLE\n", 0644);
        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_backoff));
        assert_non_null(strstr(state_now.reason, "nvidia-imex.service"));
        assert_true(within(5000, patched));
        assert_non_null(strstr(patches[0], "imex.resource.nvidia.com/state\":\"BACKOFF\""));
        assert_non_null(strstr(patches[0], "nvidia-imex.service"));
}

static void test_without_fabric(void **state) {
        run_daemon("", true);
        assert_true(within(5000, state_ready));
        assert_int_equal(state_now.index, -1);
        assert_string_equal(state_now.status, "NO_FABRIC");
        assert_true(within(5000, patched));
        assert_non_null(strstr(patches[0], "cliqueID\":\"\""));
        assert_int_equal(n_lists, 0);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        assert_true(read_state() && !state_now.ready && !held);
        assert_int_equal(count("events", "start"), 0);
}

static void test_addresses_wait_for_all(void **state) {
        clique_daemons = "{\"nodeName\":\"n0\",\"ipAddress\":\"10.0.0.1\",\"index\":2}";
        run_daemon(CLIQUE, false);
        assert_true(within(5000, state_incomplete) && within(5000, watching));
        assert_int_equal(count("events", "start"), 0);
        tell("{\"nodeName\":\"n0\",\"ipAddress\":\"10.0.0.1\",\"index\":2}," PEER);
        assert_true(within(5000, state_ready));
        assert_int_equal(count("nodes.cfg", "10.0.0.2\n10.0.0.1\n"), 1);
        /* A member that leaves stops nobody. */
        tell("{\"nodeName\":\"n0\",\"ipAddress\":\"10.0.0.1\",\"index\":2}");
        within(200, never);
        assert_true(state_ready());
        assert_int_equal(count("events", "term"), 0);
}

static void test_full_disk_withdraws(void **state) {
        _cleanup_(freep) char *tmp = xasprintf("%s/.state.json." POD, dir),
                              *state_path = in_dir("state.json");

        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready) && within(5000, watching));
        /* No new file can be made, so that the old one has to go. */
        assert_int_equal(mkdir(tmp, 0700), 0);
        tell(TAKER);
        for (int i = 0; i < 500 && access(state_path, F_OK) == 0; i++)
                within(10, never);
        assert_int_equal(access(state_path, F_OK), -1);
        rmdir(tmp);
        assert_true(within(5000, state_waits));
}

static void run_with_log_on(const char *clique_id) {
        _cleanup_(freep) char *command = xasprintf("exec \"$@\" 2>>%s/log", dir);

        run_daemon_by((const char *const[]){ "sh", "-c", command, "sh", NULL }, clique_id, true);
}

static void run_with_log(void) {
        run_with_log_on(CLIQUE);
}

static bool state_was_printed(void) {
        return count("log", "\"end of state\"") == 1;
}

static void ask_for_state(void) {
        kill(program_pid, SIGUSR2);
        assert_true(within(5000, state_was_printed));
}

/* Who looks at a node where something waits, sees for what, and ends nothing by it. */
static void test_sigusr2_prints_the_state(void **state) {
        put("status", "WAITING_FOR_RECOVERY\n", 0644);
        clique_daemons = ME "," BOOT_OF("n1", 0, "a") "," BOOT_OF("n3", 1, "a");
        run_with_log();
        assert_true(within(5000, state_names_both) && within(5000, watching));
        ask_for_state();
        assert_int_equal(count("log", "\"state\" domain=\"" DOMAIN "\" clique=\"" CLIQUE "\""), 1);
        assert_int_equal(count("log", "\"imex\" status=\"WAITING_FOR_RECOVERY\" ready=false"), 1);
        assert_int_equal(count("log", "awaited=\"n1, n3\""), 1);
        assert_int_equal(count("log", "watched=true current=true index=2 unlisted=false"), 1);
        assert_int_equal(count("log", "\"peer\" index=0 node=\"n1\" ip=\"10.0.0.2\""), 1);
        assert_int_equal(count("log", "\"peer\" index=1 node=\"n3\""), 1);
        put("status", "READY\n", 0644);
        assert_true(within(5000, state_ready));
        assert_int_equal(count("events", "term"), 0);
}

static void test_sigusr2_without_fabric(void **state) {
        run_with_log_on("");
        assert_true(within(5000, state_ready));
        ask_for_state();
        assert_int_equal(count("log", "file=\"NO_FABRIC\" ready=true"), 1);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

static bool pod_knows_of_the_state(void) {
        return n_patches && strstr(patches[(n_patches - 1) % 16], "ready\":\"false\"") &&
               strstr(patches[(n_patches - 1) % 16], "state file");
}
static bool pod_is_told_ready(void) {
        return n_patches && strstr(patches[(n_patches - 1) % 16], "ready\":\"true\"");
}

/* IMEX is well, and no new pod can hear of it: the Pod says so, and the log once. */
static void test_state_that_cannot_be_written_is_told(void **state) {
        _cleanup_(freep) char *tmp = xasprintf("%s/.state.json." POD, dir), *path = in_dir("state.json");

        clique_daemons = ME;
        run_with_log();
        assert_true(within(5000, state_ready) && within(5000, pod_is_told_ready));
        assert_int_equal(mkdir(tmp, 0700), 0);
        unlink(path);
        assert_true(within(10000, pod_knows_of_the_state));
        within(1500, never);
        assert_int_equal(count("log", "cannot write the state file"), 1);
        assert_int_equal(count("events", "term"), 0);
        rmdir(tmp);
        assert_true(within(15000, state_ready));
        assert_true(within(5000, pod_is_told_ready));
        assert_int_equal(count("log", "the state file is written again"), 1);
}

static uint64_t generation_before;

static bool state_written_again(void) {
        return state_ready() && (uint64_t)state_now.generation > generation_before;
}

static void test_state_file_removed_is_written_again(void **state) {
        _cleanup_(freep) char *path = in_dir("state.json");

        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready));
        for (int i = 0; i < 3; i++) {
                generation_before = (uint64_t)state_now.generation;
                unlink(path);
                assert_true(within(5000, state_written_again));
        }
        /* A forgery lasts no longer. */
        put("state.json", "{}", 0644);
        assert_true(within(5000, state_ready));
        within(100, never);
        assert_true(state_now.generation < 20);
}

static int remove_tree(const char *path) {
        _cleanup_(freep) char *command = xasprintf("rm -rf '%s'", path);

        return system(command);
}

/* The folder goes under a running daemon: it is made again, and watched. */
static void test_folder_removed_is_made_again(void **state) {
        _cleanup_(freep) char *shared = in_dir("imexd"), *old = in_dir("old"),
                              *file = in_dir("imexd/state.json");

        assert_int_equal(mkdir(shared, 0755), 0);
        put_program("imex", "trap 'exit 0' TERM\nwhile :; do sleep 1000 & wait $!; done");
        clique_daemons = ME;
        run_with_log();
        assert_true(within(5000, state_ready));
        for (int i = 0; i < 2; i++) {
                /* In one step: in between it would be filled again. */
                assert_int_equal(rename(shared, old), 0);
                assert_int_equal(remove_tree(old), 0);
                assert_true(within(10000, state_ready));
                assert_int_equal(count("log", "was removed"), i + 1);
        }
        generation_before = (uint64_t)state_now.generation;
        unlink(file);
        assert_true(within(5000, state_written_again));
}

static bool state_of_ours(void) {
        return state_ready() && streq(state_now.claim_uid, CLAIM);
}

static void test_two_daemons_do_not_fight_over_the_state_file(void **state) {
        struct imex_state other = {
                .boot_id = "b", .claim_uid = "other", .pod_uid = "other", .status = "STOPPED"
        };
        int lock = -1;
        struct err e;

        clique_daemons = ME;
        run_daemon(CLIQUE, true);
        assert_true(within(5000, state_ready));
        assert_int_equal(imex_state_write(dir, &other, &lock, &e), 0);
        within(300, never);
        assert_true(read_state() && streq(state_now.claim_uid, "other"));
        close(lock);
        assert_true(within(5000, state_of_ours));
}

int main(int argc, char **argv) {
        if (daemon_asked(argc, argv))
                return be_the_daemon(argv);
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_forms_and_leaves),
                T(test_killed_daemon_leaves_no_ready),
                T(test_restarts_without_the_api),
                T(test_server_gone_while_running),
                T(test_index_given_to_another_stops),
                T(test_entry_that_is_missing_stops_nothing),
                T(test_clique_that_cannot_be_seen_disturbs_nothing),
                T(test_restart_asks_for_the_clique_as_it_is),
                T(test_report_answered_by_pages_is_made_again),
                T(test_recovery_names_whom_it_waits_for_and_starts_anew),
                T(test_state_that_cannot_be_written_is_told),
                T(test_folder_removed_is_made_again),
                T(test_clique_object_deleted_disturbs_nothing),
                T(test_refused_report_disturbs_nothing),
                T(test_crash_is_told),
                T(test_without_fabric),
                T(test_addresses_wait_for_all),
                T(test_full_disk_withdraws),
                T(test_state_file_removed_is_written_again),
                T(test_two_daemons_do_not_fight_over_the_state_file),
                T(test_sigusr2_prints_the_state),
                T(test_sigusr2_without_fabric),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
