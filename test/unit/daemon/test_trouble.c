/* SPDX-License-Identifier: Apache-2.0 */
/* Failures around a daemon: the API server, the disk, nvidia-imex and its peers. The whole daemon runs in its
 * own process; the test plays the API server and IMEX. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node_daemon_world.h"

#define PEER_OF(node, index, epoch, boot)                                                                    \
        "{\"node\":\"" node "\",\"index\":" index ",\"epoch\":" epoch ",\"bootID\":\"" boot "\"," OURS       \
        ",\"ip\":\"10.0.1." index "\"}"
#define N0 ACTIVE("n0", "2", "1", "10.0.0.1")

static bool read_a(void) {
        (void)ready_in_a();
        return held;
}
static bool unready_in_a(void) {
        return read_a() && !seen.ready;
}
static bool pod_is_ready(void) {
        return reported("/ready\":\"true\"");
}
static bool reported_thrice(void) {
        return n_patches >= 3;
}
static bool usr1(void) {
        return count("events", "usr1") > 0;
}
static bool peer_known(void) {
        return count("hosts", "10.0.0.2\tcompute-domain-daemon-aa-0000\n") == 1;
}

static void run_in_a(void) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a) && within(5000, watching));
}

/* ---- the API server ---- */

/* failure: a daemon is killed -> its READY state no longer counts */
static void a_killed_daemon_leaves_no_readiness(void **state) {
        run_in_a();
        assert_null(imex_state_refusal(&seen, held, seen.boot_id, CLAIM));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        assert_false(ready_in_a());
        assert_false(held);
        assert_non_null(imex_state_refusal(&seen, held, seen.boot_id, CLAIM));
}

/* failure: the API server is down -> IMEX continues, and the daemon still stops on SIGTERM */
static void an_unreachable_server_does_not_stop_imex(void **state) {
        run_in_a();
        fake_server_kill(server);
        within(300, never);
        assert_true(ready_in_a());
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

static bool two_pages(void) {
        return n_pages >= 2;
}
static bool watched_again(void) {
        return n_watches >= 1;
}

/* A page, a refusal and a list without the object prove nothing about the domain. */
/* failure: a 404 page, a refusal or an empty list hides the fabric object -> IMEX continues */
static void an_object_that_cannot_be_read_changes_nothing(void **state) {
        set_object(IN_A_WITH_A_PEER);
        run_daemon();
        assert_true(within(5000, ready_in_a) && within(5000, watching) && within(5000, peer_known));
        serves = PAGES_404;
        fake_close(watch);
        assert_true(within(30000, two_pages));
        assert_true(ready_in_a() && peer_known());
        serves = REFUSES_403;
        n_pages = 0;
        assert_true(within(30000, two_pages));
        assert_true(ready_in_a() && peer_known());
        /* Its history is compacted, and the list is empty. */
        domains = NULL;
        n_watches = 0;
        serves = GONE_410;
        assert_true(within(30000, watched_again));
        within(200, never);
        assert_true(ready_in_a() && peer_known());
        assert_int_equal(count("events", "usr1"), 0);
        /* When the object exists again, it counts. */
        set_object(IN_A);
        assert_true(within(5000, usr1));
        assert_false(peer_known());
        assert_int_equal(count("events", "start"), 1);
}

/* failure: the fabric object is deleted -> IMEX continues */
static void a_deleted_object_does_not_stop_imex(void **state) {
        run_in_a();
        rv++;
        _cleanup_(freep) char *item = object_json(),
                              *event = xasprintf("{\"type\":\"DELETED\",\"object\":%s}\n", item);
        fake_chunk(watch, event);
        within(200, never);
        assert_true(ready_in_a());
        assert_int_equal(count("events", "\"ready\":false"), 0);
}

/* failure: the API server refuses a daemon's report -> it is retried, and IMEX continues */
static void a_refused_report_is_retried_and_changes_nothing(void **state) {
        refuse_patches = 2;
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        assert_true(within(10000, reported_thrice) && within(5000, pod_is_ready));
        assert_true(ready_in_a());
}

/* failure: something else answers a daemon's report -> the report is retried */
static void a_report_that_gets_pages_as_answers_is_retried(void **state) {
        page_patches = 2;
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        assert_true(within(10000, reported_thrice) && within(5000, pod_is_ready));
        assert_true(ready_in_a());
}

static bool reported_no_partition(void) {
        return reported("this node is in no NVLink partition");
}

static void a_daemon_without_a_partition_runs_and_watches_nothing(void **state) {
        put("imexd/fabric", "\n", 0644);
        run_daemon();
        assert_true(within(5000, reported_no_partition));
        assert_true(reported("\"resource.nvidia.com/computeDomain.cliqueID\":null"));
        assert_int_equal(n_lists, 0);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        assert_int_equal(count("events", "start"), 0);
}

/* ---- nvidia-imex ---- */

static bool state_names_both(void) {
        return unready_in_a() && strstr(seen.reason, "n1, n3");
}
static bool state_names_n3(void) {
        return unready_in_a() && strstr(seen.reason, "for n3:");
}
static bool reported_n3(void) {
        return reported("/awaited\":\"n3\"");
}

/* After an unclean end n1 and n3 may map our memory. The daemon names them, and waits until neither can. */
/* failure: a crashed IMEX waits for peers -> the daemon names them, until each has rebooted or left [imex] */
static void a_recovery_names_the_nodes_that_it_waits_for_and_ends_without_them(void **state) {
        put("run/persist.dat", "n1 n3", 0644);
        put("status", "INITIALIZING\n", 0644); /* until the program has written another state */
        put_program("ctl", "case \"$*\" in *-N*) echo "
                           "'{\"nodes\":{\"2\":{\"host\":\"10.0.0.1\",\"connections\":{}}}}';; "
                           "*) cat status;; esac");
        put_program("imex", "echo $$ >> pids; echo start >> events; [ -e run/persist.dat ] && echo "
                            "WAITING_FOR_RECOVERY > status || echo READY > status\n"
                            "trap 'exit 0' TERM\nwhile :; do sleep 1000 & wait $!; done");
        set_object(DOMAIN(A, "aa", "51001",
                          N0 "," PEER_OF("n1", "0", "2", "a") "," PEER_OF("n3", "1", "3", "a")));
        run_daemon();
        assert_true(within(5000, state_names_both) && within(5000, watching));
        assert_string_equal(seen.status, "WAITING_FOR_RECOVERY");
        set_object(DOMAIN(A, "aa", "51001",
                          N0 "," PEER_OF("n1", "0", "2", "b") "," PEER_OF("n3", "1", "3", "a")));
        assert_true(within(5000, state_names_n3));
        assert_true(within(10000, reported_n3));
        assert_int_equal(count("events", "start\n"), 1);
        set_object(DOMAIN(A, "aa", "51001", N0 "," PEER_OF("n1", "0", "2", "b")));
        assert_true(within(5000, ready_in_a));
        assert_int_equal(count("events", "start\n"), 2);
}

static bool in_backoff(void) {
        return unready_in_a() && streq(seen.status, "BACKOFF");
}
static bool reported_backoff(void) {
        return reported("imex.resource.nvidia.com/state\":\"BACKOFF\"");
}

static void a_crashing_imex_is_reported_with_its_cause(void **state) {
        put_program("imex", "echo start >> events; echo 'status = NV_ERR_IN_USE'; exit 1");
        put("status", "UNAVAILABLE\n", 0644);
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, in_backoff));
        assert_non_null(strstr(seen.reason, "nvidia-imex.service"));
        assert_true(within(5000, reported_backoff));
        assert_true(reported("nvidia-imex.service"));
}

/* ---- the state file ---- */

#define STATE_FILE "imexd/" A "/state.json"
#define NEXT_FILE "imexd/" A "/.state.json." POD

static bool state_is_gone(void) {
        return !there(STATE_FILE);
}
static bool left_a(void) {
        return !there("imexd/" A);
}

/* failure: a READY state file cannot be replaced -> it is removed */
static void readiness_that_cannot_be_replaced_is_removed(void **state) {
        _cleanup_(freep) char *next = in_dir(NEXT_FILE);

        run_in_a();
        /* No new file can be created, so the old one must be removed. */
        assert_int_equal(mkdir(next, 0700), 0);
        set_object(LEAVING_A);
        assert_true(within(5000, state_is_gone));
        assert_int_equal(rmdir(next), 0);
        assert_true(within(5000, left_a));
}

static bool pod_reports_state_file(void) {
        return reported("/ready\":\"false\"") && reported("state file");
}

/* IMEX is READY, but no new pod can see it: the Pod reports that, and the log once. */
/* failure: the state file cannot be written -> the daemon's Pod reports it */
static void a_state_that_cannot_be_written_is_reported(void **state) {
        _cleanup_(freep) char *next = in_dir(NEXT_FILE), *path = in_dir(STATE_FILE);

        set_object(IN_A);
        run_daemon_with_log();
        assert_true(within(5000, ready_in_a) && within(5000, pod_is_ready));
        assert_int_equal(mkdir(next, 0700), 0);
        unlink(path);
        assert_true(within(10000, pod_reports_state_file));
        within(1500, never);
        assert_int_equal(count("log", "cannot write the state file"), 1);
        assert_int_equal(count("events", "start"), 1);
        rmdir(next);
        assert_true(within(15000, ready_in_a));
        assert_true(within(5000, pod_is_ready));
        assert_int_equal(count("log", "the state file can be written again"), 1);
}

static bool starting(void) {
        return unready_in_a() && streq(seen.status, "INITIALIZING");
}
static bool state_names_the_memory(void) {
        return unready_in_a() && strstr(seen.reason, "cannot save that nvidia-imex is READY: ");
}
static bool pod_reports_memory(void) {
        return reported("/ready\":\"false\"") && reported("cannot save that nvidia-imex is READY: ");
}

static int64_t generation_before;

static bool state_changed(void) {
        return unready_in_a() && seen.generation > generation_before;
}

/* failure: the memory of a daemon cannot be written when IMEX gets READY -> Pod and state file report it */
static void readiness_that_cannot_be_saved_is_reported_and_not_shown(void **state) {
        _cleanup_(freep) char *memory = in_dir("imexd/daemon.json"), *more = in_dir("imexd/daemon.json/x");

        put("status", "INITIALIZING\n", 0644);
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, starting) && within(5000, watching));
        /* No file can replace this folder. */
        assert_int_equal(unlink(memory), 0);
        assert_int_equal(mkdir(memory, 0700), 0);
        assert_int_equal(mkdir(more, 0700), 0);
        put("status", "READY\n", 0644);
        assert_true(within(5000, state_names_the_memory));
        assert_true(within(5000, pod_reports_memory));
        assert_true(reported("imex.resource.nvidia.com/state\":\"STARTING\""));
        generation_before = seen.generation;
        /* Two further attempts to save it. */
        assert_false(within(2500, state_changed));
        assert_int_equal(rmdir(more), 0);
        assert_int_equal(rmdir(memory), 0);
        assert_true(within(5000, ready_in_a));
        assert_true(within(5000, pod_is_ready));
        assert_int_equal(count("events", "start"), 1);
}

static bool clearing_failed(void) {
        return count("log", "remove '") > 0;
}

/* After SIGTERM nothing is written into the folder, which the daemon is clearing. */
/* failure: the folder of a left domain cannot be cleared -> the daemon still ends on SIGTERM */
static void a_daemon_whose_folder_cannot_be_cleared_ends_on_sigterm(void **state) {
        _cleanup_(freep) char *next = in_dir(NEXT_FILE), *more = in_dir("imexd/" A "/folder");

        set_object(IN_A);
        run_daemon_with_log();
        assert_true(within(5000, ready_in_a) && within(5000, watching));
        assert_int_equal(mkdir(more, 0700), 0);
        set_object(LEAVING_A);
        assert_true(within(5000, clearing_failed));
        assert_int_equal(mkdir(next, 0700), 0);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

static bool state_written_again(void) {
        return ready_in_a() && seen.generation > generation_before;
}

static void a_removed_state_file_is_written_again(void **state) {
        _cleanup_(freep) char *path = in_dir(STATE_FILE);

        run_in_a();
        for (int i = 0; i < 3; i++) {
                generation_before = seen.generation;
                unlink(path);
                assert_true(within(5000, state_written_again));
        }
        /* A forged file is replaced, too. */
        put(STATE_FILE, "{}", 0644);
        assert_true(within(5000, ready_in_a));
        within(100, never);
        assert_true(seen.generation < 20);
}

static void remove_folder_of_a(void) {
        _cleanup_(freep) char *folder = in_dir("imexd/" A), *old = in_dir("old"),
                              *command = xasprintf("rm -rf '%s'", old);

        /* In one step: in between the daemon would fill it again. */
        assert_int_equal(rename(folder, old), 0);
        assert_int_equal(system(command), 0);
}

/* The folder is removed while a daemon runs: it is recreated and watched. */
/* failure: the folder of the state file is removed -> the daemon creates it again */
static void a_removed_folder_is_created_again(void **state) {
        _cleanup_(freep) char *path = in_dir(STATE_FILE);

        put_program("imex", "echo $$ >> pids; echo $$ > alive; trap 'exit 0' TERM\n"
                            "while :; do sleep 1000 & wait $!; done");
        run_in_a();
        for (int i = 0; i < 2; i++) {
                remove_folder_of_a();
                assert_true(within(10000, ready_in_a));
        }
        generation_before = seen.generation;
        unlink(path);
        assert_true(within(5000, state_written_again));
}

static bool state_of_ours(void) {
        return ready_in_a() && streq(seen.claim_uid, CLAIM);
}

static void two_daemons_do_not_replace_each_others_state_file(void **state) {
        _cleanup_(freep) char *folder = in_dir("imexd/" A);
        struct imex_state other = {
                .boot_id = "b", .claim_uid = "other", .pod_uid = "other", .status = "STOPPED"
        };
        int lock = -1;
        struct err e;

        run_in_a();
        assert_int_equal(imex_state_write(folder, &other, &lock, &e), 0);
        within(300, never);
        assert_true(read_a() && streq(seen.claim_uid, "other"));
        close(lock);
        assert_true(within(5000, state_of_ours));
}

/* ---- SIGUSR2 ---- */

static bool state_was_printed(void) {
        return count("log", "\"end of state\"") == 1;
}

static bool recovers(void) {
        return unready_in_a() && streq(seen.status, "WAITING_FOR_RECOVERY");
}

/* SIGUSR2 shows the reason when something on a node waits, and ends nothing. */
/* failure: SIGUSR2 is sent to a daemon -> it prints its state and continues [programs] */
static void sigusr2_prints_the_state(void **state) {
        put("status", "WAITING_FOR_RECOVERY\n", 0644);
        set_object(IN_A_WITH_A_PEER);
        run_daemon_with_log();
        assert_true(within(5000, recovers) && within(5000, watching) && within(5000, peer_known));
        kill(program_pid, SIGUSR2);
        assert_true(within(5000, state_was_printed));
        assert_int_equal(count("log", "\"state\" partition=\"" FABRIC
                                      "\" object=true watched=true domain=\"" A "\" index=2 epoch=1"),
                         1);
        assert_int_equal(count("log", "\"imex\" status=\"WAITING_FOR_RECOVERY\" ready=false"), 1);
        put("status", "READY\n", 0644);
        assert_true(within(5000, ready_in_a));
        assert_int_equal(count("events", "start"), 1);
}

/* failure: SIGUSR2 is sent to a daemon without a partition -> it prints that and continues [programs] */
static void sigusr2_on_a_node_in_no_partition(void **state) {
        put("imexd/fabric", "\n", 0644);
        run_daemon_with_log();
        assert_true(within(5000, reported_no_partition));
        kill(program_pid, SIGUSR2);
        assert_true(within(5000, state_was_printed));
        assert_int_equal(count("log", "\"state\" partition=\"\" object=false"), 1);
        assert_false(exited());
}

int main(int argc, char **argv) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_killed_daemon_leaves_no_readiness),
                T(an_unreachable_server_does_not_stop_imex),
                T(an_object_that_cannot_be_read_changes_nothing),
                T(a_deleted_object_does_not_stop_imex),
                T(a_refused_report_is_retried_and_changes_nothing),
                T(a_report_that_gets_pages_as_answers_is_retried),
                T(a_daemon_without_a_partition_runs_and_watches_nothing),
                T(a_recovery_names_the_nodes_that_it_waits_for_and_ends_without_them),
                T(a_crashing_imex_is_reported_with_its_cause),
                T(readiness_that_cannot_be_replaced_is_removed),
                T(a_state_that_cannot_be_written_is_reported),
                T(readiness_that_cannot_be_saved_is_reported_and_not_shown),
                T(a_daemon_whose_folder_cannot_be_cleared_ends_on_sigterm),
                T(a_removed_state_file_is_written_again),
                T(a_removed_folder_is_created_again),
                T(two_daemons_do_not_replace_each_others_state_file),
                T(sigusr2_prints_the_state),
                T(sigusr2_on_a_node_in_no_partition),
        };

        if (daemon_asked(argc, argv))
                return be_the_daemon(argv);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
