/* SPDX-License-Identifier: Apache-2.0 */
/* Which assignments the daemon accepts. test_node_daemon.c has the rest. */
#include "node_daemon_claims.h"

static const char *awaited_peer; /* its address */
static bool knows_the_peer(void) {
        return count("hosts", awaited_peer) == 1;
}

static bool reported_left_5(void) {
        return reported("\\\"left\\\":\\\"5\\\"");
}

/* failure: an assignment names the daemon claim of another Pod -> the daemon leaves it and does not accept
 * it */
static void an_assignment_of_another_claim_is_left_and_not_taken(void **state) {
        set_object(DOMAIN(A, "aa", "51001", ASSIGNMENT("n0", "2", "5", "\"claimUID\":\"" USER "\"")));
        run_daemon();
        assert_true(within(5000, reported_left_5));
        assert_int_equal(count("events", "start"), 0);
}

/* failure: an assignment names an earlier boot -> the rebooted daemon leaves it and does not start IMEX
 * [rebooted] */
static void an_assignment_of_another_boot_is_left_and_not_taken(void **state) {
        set_object(DOMAIN(A, "aa", "51001",
                          "{\"node\":\"n0\",\"index\":2,\"epoch\":5,\"bootID\":\"" USER "\"," OURS "}"));
        run_daemon();
        assert_true(within(5000, reported_left_5));
        assert_int_equal(count("events", "start"), 0);
}

/* failure: the index of a node is reserved -> its daemon neither accepts nor leaves it */
static void a_reserved_index_is_neither_taken_nor_left(void **state) {
        set_object(
                DOMAIN(A, "aa", "51001", "{\"node\":\"n0\",\"index\":2,\"epoch\":5,\"state\":\"Reserved\"}"));
        run_daemon();
        assert_true(within(5000, reported_idle));
        assert_false(reported("left"));
        assert_int_equal(count("events", "start"), 0);
}

/* failure: the controller starts a recount -> each daemon reports again [etcd] */
static void a_recount_is_answered(void **state) {
        set_object("");
        run_daemon();
        assert_true(within(5000, reported_idle));
        recount = 9;
        set_object("");
        assert_true(within(5000, reported_recount));
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

/* failure: memory is short on a node -> the kernel kills the daemon before its IMEX */
static void the_kernel_kills_the_daemon_before_its_imex(void **state) {
        int64_t ours = oom_score_adj(getpid()), imex = 0;

        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        _cleanup_(freep) char *pids = get("pids");
        struct str rest = str_from(pids), line;
        assert_true(str_next_line(&rest, &line) && str_to_i64(line, &imex));
        assert_int_equal(oom_score_adj(imex), ours);
        assert_int_equal(oom_score_adj(program_pid), ours > 900 ? 1000 : ours + 100);
}

static void a_daemon_moves_from_one_domain_to_the_next(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        set_object(LEAVING_A "," AWAITED_IN_B);
        assert_true(within(5000, ready_in_b));
        assert_string_equal(seen.assignment, FABRIC "/" B "/0/3");
        assert_true(left_a());
        assert_true(within(5000, reported_left_1));
        assert_int_equal(count("events", "start"), 2);
        assert_int_equal(count("events", "\"ready\":false"), 1);
}

/* Checks the number of writes of the Pod after the first `n`: at most `most`, and one more for each pause of
 * the daemon. */
static void assert_writes(unsigned n, unsigned most, uint64_t since, unsigned pause_ms) {
        uint64_t ms = uv_hrtime() / 1000000 - since;

        assert_true(n_patches - n <= most + ms / pause_ms);
}

static void nodes_that_join_cost_the_others_one_write(void **state) {
        static const char *const peers[] = { "10.0.0.2", "10.0.0.3", "10.0.0.4" };
        struct buf list = BUF_INIT(4096);

        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, reported_ready));
        unsigned n = n_patches;
        uint64_t since = uv_hrtime() / 1000000;
        buf_adds(&list, ACTIVE("n0", "2", "1", "10.0.0.1"));
        for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
                buf_addf(&list, "," ASSIGNMENT("n%zu", "%zu", "%d", "\"claimUID\":\"" POD "\",\"ip\":\"%s\""),
                         i + 1, i == 2 ? 3 : i, ++epoch, peers[i]);
                _cleanup_(freep) char *joined = xasprintf(DOMAIN(A, "aa", "51001", "%s"), buf_str(&list));
                set_object(joined);
                awaited_peer = peers[i];
                assert_true(within(5000, knows_the_peer));
                domains = IN_A;
        }
        _cleanup_(freep) char *all = xasprintf(DOMAIN(A, "aa", "51001", "%s"), buf_str(&list));
        recount = 9;
        set_object(all);
        assert_true(within(5000, reported_recount));
        assert_true(reported("\\\"seen\\\":12"));
        assert_writes(n, 1, since, 3000);
        domains = NULL;
        buf_done(&list);
}

/* The fabric object drops the left epoch when it lists the next one. */
static void a_daemon_that_has_left_joins_with_one_write(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, reported_ready));
        set_object(LEAVING_A);
        assert_true(within(5000, reported_left_1));
        unsigned n = n_patches;
        uint64_t since = uv_hrtime() / 1000000;
        set_object(IN_B);
        assert_true(within(5000, ready_in_b));
        assert_true(within(5000, reported_ready));
        assert_writes(n, 1, since, 500);
}

static void a_pod_has_the_label_of_its_domain_until_it_has_left(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, labelled_a));
        assert_true(reported_a());
        grant(A, true);
        set_object(LEAVING_A);
        assert_true(within(5000, reported_held));
        assert_true(labelled_a());
        grant(A, false);
        assert_true(within(5000, reported_left_1));
        assert_true(not_labelled());
}

static void a_standing_domain_has_no_label(void **state) {
        char standing[37];

        fabric_standing_uid(FABRIC, standing);
        _cleanup_(freep) char *object = xasprintf(
                "{\"owner\":{\"kind\":\"ComputeDomainFabric\",\"uid\":\"%s\"},\"infix\":\"aa\",\"slots\":4,"
                "\"port\":51001,\"assignments\":[" ACTIVE("n0", "2", "1", "10.0.0.1") "]}",
                standing);
        set_object(object);
        run_daemon();
        assert_true(within(5000, reported_ready));
        assert_true(reported(standing) && not_labelled());
}

/* The daemon cannot know which one is right, but it runs the first one. */
/* failure: two IMEX domains list a node -> its daemon stays in the first one */
static void two_domains_list_a_node_and_its_daemon_stays_in_the_first(void **state) {
        static const char *const objects[] = { IN_A "," IN_B, IN_B "," IN_A };

        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
                set_object(objects[i]);
                assert_false(within(150, never));
                assert_true(ready_in_a());
        }
        assert_int_equal(count("events", "start"), 1);
        set_object(LEAVING_A "," IN_B);
        assert_true(within(5000, ready_in_b));
        assert_true(left_a());
}

/* failure: the fabric object drops or changes an assignment under a pod -> IMEX continues until Unprepare */
static void no_object_stops_imex_while_a_claim_is_prepared(void **state) {
        static const char *const objects[] = {
                LEAVING_A,
                LEAVING_A "," AWAITED_IN_B,
                "",
                AWAITED_IN_B,
                DOMAIN(A, "aa", "51001", ACTIVE("n0", "3", "1", "")),
                DOMAIN(A, "zz", "51001", ACTIVE("n0", "2", "1", "")),
                DOMAIN(A, "aa", "51001", ACTIVE("n0", "1", "5", "")),
        };
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
                set_object(objects[i]);
                assert_false(within(150, never));
                assert_true(ready_in_a());
        }
        assert_int_equal(count("events", "start"), 1);
        assert_int_equal(count("events", "ready"), 0); /* IMEX was not stopped either */
        set_object(LEAVING_A);
        assert_true(within(5000, reported_held));
        /* The last pod ends: leaving needs no API server. */
        fake_server_kill(server);
        grant(A, false);
        assert_true(within(5000, left_a));
        assert_int_equal(count("events", "start"), 1);
        watch = NULL;
}

/* failure: a ComputeDomain is deleted under a prepared claim -> IMEX ends */
static void a_deleted_domain_ends_although_a_claim_is_prepared(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        set_object(DOMAIN(A, "aa", "51001", ENDING("n0", "2", "1")));
        assert_true(within(5000, reported_left_1));
        /* The grant belongs to the plugin. */
        assert_true(there("imexd/" A "/grants/" USER));
        assert_false(there("imexd/" A "/state.json"));
}

/* failure: a stale controller assigns a left epoch again -> the daemon does not accept it */
static void a_left_assignment_is_not_taken_again(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        set_object(LEAVING_A);
        assert_true(within(5000, reported_left_1));
        set_object(IN_A); /* a controller that has not seen the report */
        assert_false(within(300, never));
        assert_int_equal(count("events", "start"), 1);
        assert_true(reported_left_1());
        set_object(DOMAIN(A, "aa", "51001", ACTIVE("n0", "2", "4", "10.0.0.1")));
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.assignment, FABRIC "/" A "/2/4");
}

/* failure: a daemon is killed while the API server is down -> it continues its assignment */
static void a_killed_daemon_resumes_its_assignment_without_the_api(void **state) {
        set_object(IN_A_WITH_A_PEER);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        assert_false(ready_in_a());
        kill_imex();
        fake_server_kill(server);
        watch = NULL;
        run_daemon();
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.assignment, FABRIC "/" A "/2/1");
}

/* While there was no Pod, the controller may have assigned it to another node. */
/* failure: a daemon's Pod is deleted -> the next one does not continue its assignment */
static void a_new_pod_does_not_continue_the_assignment_of_an_earlier_pod(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        _cleanup_(freep) char *memory = get("imexd/daemon.json");
        assert_non_null(strstr(memory, POD));
        for (char *uid; (uid = strstr(memory, POD));)
                *uid = 'e';
        put("imexd/daemon.json", memory, 0600);
        watch = NULL;
        run_daemon();
        assert_true(within(5000, reported_left_1));
        assert_true(left_a());
        assert_int_equal(count("events", "start"), 1);
        assert_true(within(5000, watching));
        set_object(DOMAIN(A, "aa", "51001", ACTIVE("n0", "3", "4", "10.0.0.1")));
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.assignment, FABRIC "/" A "/3/4");
}

/* Its peers may map this node's memory, and do not know that IMEX has ended. */
/* failure: IMEX does not stop and must be killed -> it starts again to recover before the node leaves */
static void imex_that_was_killed_starts_again_before_the_domain_is_left(void **state) {
        set_object(IN_A_WITH_A_PEER);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        put("stubborn", "", 0644);
        set_object(LEAVING_A_WITH_A_PEER "," AWAITED_IN_B);
        assert_true(within(5000, started_twice));
        assert_false(there("imexd/" B "/state.json"));
        _cleanup_(freep) char *stubborn = in_dir("stubborn");
        unlink(stubborn);
        assert_true(within(5000, ready_in_b));
        assert_true(left_a());
        assert_true(within(5000, started_thrice));
}

static bool reported_recovers(void) {
        return reported("waits for the nodes that had imported its memory");
}
static bool started_again(void) {
        return count("events", "start") >= 2;
}

/* After an unclean end the node joins no other domain until each importer is accounted for, even if the
 * ComputeDomain is being deleted. */
/* failure: IMEX ended uncleanly and its ComputeDomain is deleted -> the node leaves only after peers
 * recovered */
static void peers_recover_from_an_unclean_end_before_a_deleted_domain_is_left(void **state) {
        set_object(IN_A_WITH_A_PEER);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        put("status", "WAITING_FOR_RECOVERY\n", 0644);
        set_object(
                DOMAIN(A, "aa", "51001", ENDING("n1", "0", "2") "," ENDING("n0", "2", "1")) "," AWAITED_IN_B);
        watch = NULL;
        run_daemon();
        assert_true(within(5000, reported_recovers));
        assert_true(within(5000, started_again));
        assert_true(there("run/persist.dat"));
        assert_false(there("imexd/" B "/state.json"));
        /* The other node has left, so no node can map this node's memory. */
        set_object(DOMAIN(A, "aa", "51001", ENDING("n0", "2", "1")) "," AWAITED_IN_B);
        put("status", "READY\n", 0644);
        assert_true(within(5000, ready_in_b));
        assert_true(left_a());
}

/* The disk fails while the container restarts. The file would show that IMEX was READY. */
/* failure: the daemon's memory file cannot be read -> the daemon ends, and does not begin without it */
static void a_daemon_that_cannot_read_its_memory_ends(void **state) {
        _cleanup_(freep) char *file = in_dir("imexd/daemon.json"), *kept = in_dir("kept");
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        assert_int_equal(rename(file, kept), 0);
        assert_int_equal(mknod(file, S_IFSOCK | 0600, 0), 0); /* it cannot be opened */
        run_daemon();
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 1);
        assert_int_equal(unlink(file), 0);
        assert_int_equal(rename(kept, file), 0);
        watch = NULL;
        run_daemon();
        assert_true(within(5000, started_twice));
}

/* failure: the daemon's memory file is invalid -> the node leaves only after peers recovered */
static void a_daemon_whose_memory_is_invalid_counts_as_having_been_ready(void **state) {
        set_object(IN_A_WITH_A_PEER);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        put("imexd/daemon.json", "{", 0600);
        put("status", "WAITING_FOR_RECOVERY\n", 0644);
        watch = NULL;
        run_daemon();
        assert_true(within(5000, started_again) && within(5000, watching));
        set_object(LEAVING_A_WITH_A_PEER "," AWAITED_IN_B);
        assert_true(within(5000, reported_recovers));
        assert_false(there("imexd/" B "/state.json"));
        put("status", "READY\n", 0644);
        assert_true(within(5000, ready_in_b));
        assert_true(left_a());
}

/* The node's files for IMEX have changed, so a new container is needed. */
/* failure: the NVIDIA driver changes under an idle daemon -> its container restarts at once */
static void an_idle_daemon_restarts_when_the_driver_has_changed(void **state) {
        put("imexd/edits", "e1\n", 0644);
        run_daemon();
        assert_true(within(5000, watching));
        set_object("");
        assert_true(within(5000, reported_idle));
        put("imexd/edits", "e2\n", 0644);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

/* failure: the NVIDIA driver changes under a daemon in use -> it restarts when no claim uses it */
static void a_daemon_in_use_restarts_after_a_driver_change_when_no_claim_uses_it(void **state) {
        put("imexd/edits", "e1\n", 0644);
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        put("imexd/edits", "e2\n", 0644);
        assert_false(within(300, exited));
        assert_true(ready_in_a());
        assert_int_equal(count("events", "start"), 1);
        grant(A, false);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        /* Readiness was withdrawn before IMEX was stopped. */
        assert_int_equal(count("events", "\"ready\":false"), 1);
        put("imexd/edits", "e1\n", 0644); /* the edits of the next container */
        watch = NULL;
        run_daemon();
        assert_true(within(5000, ready_in_a));
        assert_string_equal(seen.assignment, FABRIC "/" A "/2/1");
}

/* The plugin has written the CDI file of this container, but could not report it in the file "edits". */
/* failure: the plugin could not report the edits of a restarted daemon -> IMEX starts for prepared claims */
static void a_restarted_daemon_serves_prepared_claims_although_its_edits_are_not_reported(void **state) {
        put("imexd/edits", "e1\n", 0644);
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        kill(program_pid, SIGKILL);
        assert_true(within(5000, exited));
        kill_imex();
        put("imexd/edits", "e0\n", 0644);
        watch = NULL;
        run_daemon();
        assert_true(within(5000, started_twice) && within(5000, ready_in_a));
        assert_false(within(300, exited));
        grant(A, false);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

/* A pod waits for an IMEX that cannot start in the present container. */
/* failure: IMEX cannot start until the container sees a changed driver -> its daemon restarts under
 * the waiting pod */
static void a_daemon_whose_imex_cannot_start_restarts_under_a_waiting_pod(void **state) {
        put("imexd/edits", "e1\n", 0644);
        put_program("imex", "exit 1");
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, reported_a));
        note(A, IMEX_GRANT_WAITING);
        put("imexd/edits", "e2\n", 0644);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
}

/* A copy that was restored belongs to another object. */
/* failure: an old copy of the fabric object is restored -> no IMEX starts or ends [etcd] */
static void a_copy_of_an_object_does_not_start_or_stop_imex(void **state) {
        table_of = "another";
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, reported_waits));
        assert_false(within(200, never));
        assert_int_equal(count("events", "start"), 0);
        table_of = "ffffffff-0000-4000-8000-00000000000f";
        set_object(IN_A);
        assert_true(within(5000, ready_in_a));
        table_of = "another";
        set_object(LEAVING_A "," AWAITED_IN_B);
        assert_false(within(300, never));
        assert_true(ready_in_a());
}

/* failure: the fabric object has a path for a UID, or an impossible index -> the daemon rejects and
 * reports it */
static void an_impossible_assignment_is_refused(void **state) {
        set_object(DOMAIN("../../../tmp/x", "aa", "51001", ACTIVE("n0", "2", "1", "")));
        run_daemon();
        assert_true(within(5000, reported_refused));
        set_object(DOMAIN(A, "a/b", "51001", ACTIVE("n0", "2", "1", "")));
        assert_false(within(200, never));
        set_object(DOMAIN(A, "aa", "51001", ACTIVE("n0", "4", "1", "")));
        assert_false(within(200, never));
        assert_int_equal(count("events", "start"), 0);
        set_object(IN_A);
        assert_true(within(5000, ready_in_a));
}

/* failure: a node gets another partition under a pod -> its daemon changes after the last claim */
static void another_partition_is_joined_when_no_claim_uses_the_old_one(void **state) {
        set_object(IN_A);
        run_daemon();
        assert_true(within(5000, ready_in_a));
        grant(A, true);
        put("imexd/fabric", "ffffffff-0000-0000-0000-000000000000.2\n", 0644);
        assert_false(within(300, exited));
        assert_true(ready_in_a());
        /* Until then it answers a recount of the old partition. */
        recount = 9;
        set_object(IN_A);
        assert_true(within(5000, reported_recount));
        grant(A, false);
        assert_true(within(5000, exited));
        assert_int_equal(exit_status, 0);
        assert_true(left_a());
}

int main(int argc, char **argv) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(an_assignment_of_another_claim_is_left_and_not_taken),
                T(an_assignment_of_another_boot_is_left_and_not_taken),
                T(a_reserved_index_is_neither_taken_nor_left),
                T(a_recount_is_answered),
                T(the_kernel_kills_the_daemon_before_its_imex),
                T(a_daemon_moves_from_one_domain_to_the_next),
                T(nodes_that_join_cost_the_others_one_write),
                T(a_daemon_that_has_left_joins_with_one_write),
                T(a_pod_has_the_label_of_its_domain_until_it_has_left),
                T(a_standing_domain_has_no_label),
                T(no_object_stops_imex_while_a_claim_is_prepared),
                T(two_domains_list_a_node_and_its_daemon_stays_in_the_first),
                T(a_deleted_domain_ends_although_a_claim_is_prepared),
                T(a_left_assignment_is_not_taken_again),
                T(a_killed_daemon_resumes_its_assignment_without_the_api),
                T(a_new_pod_does_not_continue_the_assignment_of_an_earlier_pod),
                T(imex_that_was_killed_starts_again_before_the_domain_is_left),
                T(peers_recover_from_an_unclean_end_before_a_deleted_domain_is_left),
                T(a_daemon_that_cannot_read_its_memory_ends),
                T(a_daemon_whose_memory_is_invalid_counts_as_having_been_ready),
                T(an_idle_daemon_restarts_when_the_driver_has_changed),
                T(a_daemon_in_use_restarts_after_a_driver_change_when_no_claim_uses_it),
                T(a_restarted_daemon_serves_prepared_claims_although_its_edits_are_not_reported),
                T(a_daemon_whose_imex_cannot_start_restarts_under_a_waiting_pod),
                T(a_copy_of_an_object_does_not_start_or_stop_imex),
                T(an_impossible_assignment_is_refused),
                T(another_partition_is_joined_when_no_claim_uses_the_old_one),
        };

        if (daemon_asked(argc, argv))
                return be_the_daemon(argv);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
