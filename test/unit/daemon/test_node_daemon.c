/* SPDX-License-Identifier: Apache-2.0 */
/* The whole daemon in its own process. The test plays the API server and IMEX. */
#include "node_daemon_claims.h"

#include "imex/imex_lock.h"

/* ---- the tests ---- */

static void runs_imex_for_the_domain_that_lists_its_node(void **state) {
        run_daemon();
        assert_true(within(5000, watching));
        set_object("");
        assert_true(within(5000, reported_idle));
        assert_true(not_labelled());
        set_object(IN_A);
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.claim_uid, CLAIM);
        assert_string_equal(seen.assignment, FABRIC "/" A "/2/1");
        assert_int_equal(seen.index, 2);
        assert_int_equal(count("events", "SERVER_PORT=51001"), 1);
        assert_true(within(5000, reported_a));
        assert_true(labelled_a());
        set_object(IN_A_WITH_A_PEER);
        assert_true(within(5000, usr1));
        assert_int_equal(count("hosts", "10.0.0.2\tcompute-domain-daemon-aa-0000\n"), 1);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        /* Readiness was withdrawn before IMEX was stopped. */
        assert_int_equal(count("events", "\"ready\":false"), 1);
}

static bool shows_life(void) {
        _cleanup_(freep) char *path = in_dir("imexd/" IMEX_DAEMON_LOCK);
        bool is;
        struct err e;

        return imex_lock_held(path, &is, &e) == 0 && is;
}

/* The plugin does not unprepare the claim of a daemon that is alive. */
static void an_idle_daemon_shows_that_it_is_alive(void **state) {
        set_object("");
        run_daemon();
        assert_true(within(5000, reported_idle));
        assert_true(shows_life());
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        assert_false(shows_life());
}

/* ---- SIGTERM ---- */

/* failure: the Pod of a daemon is deleted under a pod -> the daemon serves until no claim is prepared */
static void a_terminating_daemon_serves_until_no_claim_is_prepared(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        assert_false(seen.terminating);
        grant(A, true);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, ready_and_terminating));
        assert_false(within(300, exited));
        assert_true(ready_in_a());
        set_object(IN_A "," IN_B); /* it accepts no new assignment */
        kill(program_pid, SIGTERM);
        assert_false(within(300, exited));
        assert_true(ready_in_a());
        grant(A, false);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        assert_int_equal(count("events", "start"), 1);
        assert_false(there("imexd/" B));
}

/* In one step: in between the daemon would fill it again. */
static void remove_folder_of_a(void) {
        _cleanup_(freep) char *folder = in_dir("imexd/" A), *old = in_dir("old"),
                              *command = xasprintf("rm -r '%s'", old);

        assert_int_equal(rename(folder, old), 0);
        assert_int_equal(system(command), 0);
}

/* As in an uninstallation: no plugin runs, so the claim stays prepared, and nothing writes its grant again.
 */
/* failure: the grants are removed under a terminating daemon -> it serves until no claim is prepared */
static void a_terminating_daemon_serves_claims_whose_grants_were_removed(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, ready_and_terminating));
        assert_false(within(300, exited)); /* it has read the grant */
        remove_folder_of_a();
        assert_false(within(300, exited));
        assert_true(within(5000, ready_and_terminating));
        set_cdi(false);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        assert_int_equal(count("events", "start"), 1);
}

/* failure: only waiting claims remain on a terminating daemon -> the daemon ends */
static void a_waiting_claim_does_not_keep_the_daemon(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        note(A, IMEX_GRANT_WAITING);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

/* failure: the Pod of a daemon whose IMEX was never READY is deleted -> the daemon ends at once */
static void a_daemon_whose_imex_was_never_ready_ends_at_once(void **state) {
        put("status", "WAITING\n", 0644);
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, reported_a));
        grant(A, true);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

static void a_daemon_without_an_assignment_ends_at_once(void **state) {
        set_object("");
        run_daemon();
        assert_true(within(5000, reported_idle));
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

/* IMEX ends under a prepared claim while the Pod is deleted. */
/* failure: IMEX ends while its daemon terminates under a pod -> the daemon starts it again */
static void a_terminating_daemon_starts_its_imex_again(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        kill(program_pid, SIGTERM);
        assert_false(within(100, exited));
        kill_imex();
        assert_true(within(5000, started_twice));
        assert_true(within(5000, ready_in_a));
        assert_true(seen.terminating);
        grant(A, false);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        /* The file stays until another daemon writes it. */
        ready_in_a();
        assert_true(!held && !seen.ready && seen.terminating);
}

static bool withdrawn_in_a(void) {
        return !ready_in_a() && held && imex_status_decode(seen.status) == IMEX_STATE_LEAVING;
}

/* The plugin had found IMEX ready before. */
static void imex_starts_again_for_a_claim_prepared_while_it_stops(void **state) {
        put("patient", "", 0644);
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        put("stubborn", "", 0644);
        kill(program_pid, SIGTERM);
        assert_true(within(5000, withdrawn_in_a));
        grant(A, true);
        kill_imex();
        assert_true(within(5000, started_twice));
        assert_true(within(5000, ready_in_a));
        assert_true(seen.terminating);
        _cleanup_(freep) char *stubborn = in_dir("stubborn");
        assert_int_equal(unlink(stubborn), 0);
        grant(A, false);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

/* SIGTERM, but the Pod is not deleted. */
/* failure: a daemon's container gets SIGTERM without a deletion -> the next container serves normally */
static void a_container_that_starts_after_a_terminated_one_does_not_terminate(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        kill(program_pid, SIGTERM);
        assert_true(within(5000, exited));
        watch = NULL;
        run_daemon();
        assert_true(within(5000, ready_in_a));
        assert_false(seen.terminating);
}

/* ---- which claims use a domain ---- */

/* The claim waits when the node has to leave, and finds no IMEX that is about to stop. */
static void a_waiting_claim_does_not_keep_the_domain(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        note(A, IMEX_GRANT_WAITING);
        set_object(LEAVING_A "," AWAITED_IN_B);
        assert_true(within(5000, ready_in_b));
        assert_false(there("imexd/" A "/state.json"));
        assert_true(there("imexd/" A "/grants/" USER));
}

/* After a rollback, the Go driver removes the CDI file, but does not know the grant. */
/* failure: after a rollback the Go driver unprepares a claim -> its remaining grant does not block leaving
 * [go] */
static void an_unprepare_by_the_go_driver_ends_the_hold(void **state) {
        int lock = plugin_begins();

        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        close(lock);
        set_object(LEAVING_A);
        assert_true(within(5000, reported_held));
        assert_true(ready_in_a());
        set_cdi(false);
        assert_true(within(5000, reported_left_1));
        assert_true(there("imexd/" A "/grants/" USER));
}

static bool reported_granting(void) {
        return reported("a claim of it is about to be prepared on this node");
}

/* failure: a plugin dies between grant and CDI file -> the grant does not block leaving */
static void a_plugin_that_died_before_it_prepared_a_claim_blocks_nothing(void **state) {
        int lock = plugin_begins();

        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        note(A, IMEX_GRANT_GRANTING);
        set_object(LEAVING_A);
        assert_true(within(5000, reported_granting));
        assert_true(ready_in_a());
        close(lock);
        assert_true(within(5000, reported_left_1));
}

static bool reported_unseen(void) {
        return reported("it is not known whether a claim of it is prepared");
}

/* failure: the CDI folder cannot be read -> the daemon does not stop IMEX */
static void claims_that_cannot_be_read_block_leaving(void **state) {
        _cleanup_(freep) char *cdi = in_dir("cdi"), *away = in_dir("away");

        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        note(A, IMEX_GRANT_WAITING);
        assert_int_equal(rename(cdi, away), 0);
        set_object(LEAVING_A);
        assert_true(within(5000, reported_unseen));
        assert_true(ready_in_a());
        assert_int_equal(rename(away, cdi), 0);
        assert_true(within(5000, reported_left_1));
}

/* ---- its own Pod ---- */

static bool pod_watched(void) {
        return pod_watch != NULL;
}

/* failure: a restore of etcd rolls a daemon's report back -> the daemon writes it again [etcd] */
static void a_report_that_a_restore_has_rolled_back_is_written_again(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, pod_watched));
        assert_true(within(5000, ready_in_a));
        assert_true(within(5000, reported_a));
        assert_false(within(700, never)); /* everything is reported */
        unsigned before = n_patches;
        roll_pod_back("\"annotations\":{\"imex.resource.nvidia.com/report\":\"{}\"}}}");
        assert_false(within(300, never));
        assert_int_equal(n_patches, before + 1);
        assert_true(reported_a());
        roll_pod_back("\"labels\":{}}}");
        assert_false(within(300, never));
        assert_int_equal(n_patches, before + 2);
        assert_true(reported_a());
}

static bool reported_not_ready(void) {
        return reported("/ready\":\"false\"");
}

/* A restore may undo only annotations for people, such as an earlier state. */
static void a_state_that_a_restore_has_rolled_back_is_written_again(void **state) {
        char earlier[sizeof pod];
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, pod_watched));
        assert_true(within(5000, ready_in_a));
        assert_true(within(5000, reported_ready));
        put("status", "WAITING\n", 0644);
        kill_imex();
        assert_true(within(10000, reported_not_ready));
        assert_true(reported_a());
        snprintf(earlier, sizeof earlier, "%s", patches[(n_patches - 1) % 32]);
        put("status", "READY\n", 0644);
        assert_true(within(10000, reported_ready));
        assert_false(within(700, never)); /* everything is reported */
        unsigned before = n_patches;
        roll_pod_back(earlier + sizeof PATCH_BEGIN - 1);
        assert_false(within(300, never));
        assert_int_equal(n_patches, before + 1);
        assert_true(reported_ready());
}

/* ---- which assignments it accepts ---- */

int main(int argc, char **argv) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(runs_imex_for_the_domain_that_lists_its_node),
                T(an_idle_daemon_shows_that_it_is_alive),
                T(a_terminating_daemon_serves_until_no_claim_is_prepared),
                T(a_terminating_daemon_serves_claims_whose_grants_were_removed),
                T(a_waiting_claim_does_not_keep_the_daemon),
                T(a_daemon_whose_imex_was_never_ready_ends_at_once),
                T(a_daemon_without_an_assignment_ends_at_once),
                T(a_terminating_daemon_starts_its_imex_again),
                T(imex_starts_again_for_a_claim_prepared_while_it_stops),
                T(a_container_that_starts_after_a_terminated_one_does_not_terminate),
                T(a_waiting_claim_does_not_keep_the_domain),
                T(an_unprepare_by_the_go_driver_ends_the_hold),
                T(a_plugin_that_died_before_it_prepared_a_claim_blocks_nothing),
                T(claims_that_cannot_be_read_block_leaving),
                T(a_report_that_a_restore_has_rolled_back_is_written_again),
                T(a_state_that_a_restore_has_rolled_back_is_written_again),
        };

        if (daemon_asked(argc, argv))
                return be_the_daemon(argv);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
