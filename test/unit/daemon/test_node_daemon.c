/* SPDX-License-Identifier: Apache-2.0 */
/* The whole daemon in its own process. The test plays the API server and IMEX. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node_daemon_world.h"

#include "api/names.h"
#include "cdi/cdi.h"
#include "imex/imex_grants.h"
#include "model/fabric.h"

#define IN_B DOMAIN(B, "bb", "51002", ACTIVE("n0", "0", "3", "10.0.0.1"))
#define USER "eeeeeeee-0000-4000-8000-000000000005"

/* ---- conditions ---- */

static bool left_a(void) {
        return !there("imexd/" A);
}

static bool reported_left_1(void) {
        return reported("\\\"left\\\":\\\"1\\\"");
}
static bool reported_a(void) {
        return reported("\\\"assignment\\\":\\\"" FABRIC "/" A "/2/1\\\"");
}
/* The label by which other tools find the daemon of a ComputeDomain. */
static bool labelled_a(void) {
        return reported("\"resource.nvidia.com/computeDomain\":\"" A "\"");
}
static bool not_labelled(void) {
        return reported("\"resource.nvidia.com/computeDomain\":null");
}
static bool reported_held(void) {
        return reported("a claim of it is prepared on this node");
}
static bool reported_refused(void) {
        return reported("an invalid assignment for this node");
}
static bool reported_ready(void) {
        return reported("/ready\":\"true\"");
}
static bool reported_idle(void) {
        return reported("no IMEX domain needs this node");
}
static bool reported_waits(void) {
        return reported("the fabric object of the partition does not exist yet");
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
static const char *awaited_peer; /* its address */
static bool knows_the_peer(void) {
        return count("hosts", awaited_peer) == 1;
}
static bool reported_recount(void) {
        return reported("\\\"recount\\\":9");
}

/* ---- the plugin ---- */

static void note(const char *domain, enum imex_grant_state state) {
        _cleanup_(freep) char *folder = xasprintf("%s/imexd/%s", dir, domain);
        struct err e;

        assert_int_equal(imex_grants_put(folder, USER, state, &e), 0);
}

static void set_cdi(bool is) {
        _cleanup_(freep) char *folder = in_dir("cdi"), *path = cdi_path(folder, CD_CDI_KIND_CLAIM, USER);

        if (is)
                put("cdi/k8s.compute-domain.nvidia.com-claim_" USER ".yaml", "", 0600);
        else
                unlink(path);
}

/* Prepares the claim, or unprepares it. */
static void grant(const char *domain, bool is) {
        _cleanup_(freep) char *folder = xasprintf("%s/imexd/%s", dir, domain);
        struct err e;

        if (is)
                note(domain, IMEX_GRANT_GRANTING);
        set_cdi(is);
        if (!is)
                assert_int_equal(imex_grants_remove(folder, USER, false, &e), 0);
}

static int plugin_begins(void) {
        _cleanup_(freep) char *shared = in_dir("imexd");
        struct err e;
        int lock;

        assert_int_equal(imex_grants_lock(shared, &lock, &e), 0);
        return lock;
}

/* The plugin releases no new pods in this state (cd_plugin/may_prepare). */
static bool ready_and_terminating(void) {
        return ready_in_a() && seen.terminating;
}

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
                T(runs_imex_for_the_domain_that_lists_its_node),
                T(a_terminating_daemon_serves_until_no_claim_is_prepared),
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
                T(an_idle_daemon_restarts_when_the_driver_has_changed),
                T(a_daemon_in_use_restarts_after_a_driver_change_when_no_claim_uses_it),
                T(a_daemon_whose_imex_cannot_start_restarts_under_a_waiting_pod),
                T(a_copy_of_an_object_does_not_start_or_stop_imex),
                T(an_impossible_assignment_is_refused),
                T(another_partition_is_joined_when_no_claim_uses_the_old_one),
        };

        if (daemon_asked(argc, argv))
                return be_the_daemon(argv);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
