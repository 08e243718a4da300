/* SPDX-License-Identifier: Apache-2.0 */
#include "runner_world.h"

#include <errno.h>

#include "faults.h"

/* Sets the members as the controller does: our index, and peers n1 (index 1), n2 (index 2) with these
 * addresses (NULL: no such peer). */
static void members_with(int64_t own, const char *infix, const char *ip1, const char *ip2) {
        struct imex_peer peers[3] = { { .index = own, .ip = "10.0.0.1", .node = "n0" } };
        struct imex_members m = { .own_index = own, .infix = infix, .peers = peers, .n_peers = own >= 0 };

        if (ip1)
                peers[m.n_peers++] = (struct imex_peer){ .index = 1, .ip = ip1, .node = "n1" };
        if (ip2)
                peers[m.n_peers++] = (struct imex_peer){ .index = 2, .ip = ip2, .node = "n2" };
        imex_runner_set_members(runner, &m);
}

static void members(int64_t own, const char *ip1, const char *ip2) {
        members_with(own, "ab", ip1, ip2);
}

static bool is_unready(void) {
        return !last.ready;
}
static bool reported(void) {
        return reports > 0;
}
static bool is_idle(void) {
        return last.phase == IMEX_IDLE;
}
static bool is_stopped(void) {
        return stopped > 0;
}
static bool usr1_once(void) {
        return count("events", "usr1") >= 1;
}
static bool started_twice(void) {
        return count("events", "start") >= 2;
}
static bool asked_thrice(void) {
        return count("asked", "-q") >= 3;
}
static bool wrong_id(void) {
        return streq(last_reason, "nvidia-imex took ID 3, but this node has index 0") && !last.ready;
}
static bool restarted_thrice(void) {
        return last.restarts >= 3;
}
static bool reported_trouble(void) {
        return troubles > 0;
}
static bool explains(void) {
        return strstr(last_reason, "nvidia-imex-ctl prints 'Failed to connect to 10.0.0.1:50005'") != NULL;
}
static bool hung(void) {
        return strstr(last_reason, "did not answer") != NULL;
}
static bool asked_since(void) {
        return count("asked", "-q") > asked_before;
}
static bool asked_twice_since(void) {
        return count("asked", "-q") >= asked_before + 2;
}
static bool second_peer_seen(void) {
        return count("hosts.seen", "10.0.0.5\tcompute-domain-daemon-ab-0001\n") == 1;
}
static bool one_connected(void) {
        return last.peers_connected == 1;
}

static void test_idle_without_index(void **state) {
        make();
        assert_true(within(5000, reported));
        assert_int_equal(last.phase, IMEX_IDLE);
        assert_int_equal(last.index, -1);
        members(-1, "10.0.0.2", NULL);
        within(100, never);
        assert_int_equal(count("events", "start"), 0);
}

/* failure: peers are missing -> a node becomes READY by its own nvidia-imex */
static void test_becomes_ready(void **state) {
        _cleanup_(freep) char *nodes = NULL, *hosts = NULL, *config = NULL;

        make();
        put("id", "0", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
        assert_int_equal(last.phase, IMEX_READY);
        assert_int_equal(last.index, 0);
        assert_int_equal(last.node_id, 0);
        assert_string_equal(last_status, "READY");
        assert_non_null(strstr(log_text, "Identified this node as ID 0"));

        nodes = get("nodes.seen");
        assert_string_equal(nodes, "compute-domain-daemon-ab-0000\ncompute-domain-daemon-ab-0001\ncompute-"
                                   "domain-daemon-ab-0002\ncompute-domain-daemon-ab-0003\n");
        hosts = get("hosts.seen");
        assert_non_null(strstr(hosts, HOSTS));
        assert_non_null(strstr(
                hosts,
                "\n10.0.0.1\tcompute-domain-daemon-ab-0000\n127.0.0.2\tcompute-domain-daemon-ab-0001\n"));
        config = get("imexd.cfg");
        assert_non_null(strstr(config, "IMEX_CMD_BIND_INTERFACE_IP=10.0.0.1\n"));
        assert_int_equal(troubles, 0);
}

/* Queries at the idle rate, and not more often. */
static void test_ready_imex_is_queried_rarely(void **state) {
        uint64_t begin;

        make();
        put("id", "0", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
        asked_before = count("asked", "-q");
        begin = uv_hrtime();
        within(450, never);
        assert_true(within(5000, asked_twice_since));
        /* 100 ms are between two queries, and one may have been under way. */
        assert_in_range(count("asked", "-q") - asked_before, 2, 1 + (uv_hrtime() - begin) / 100000000);
        assert_in_range(reports, 2, 5);
}

static void test_id_from_the_domain(void **state) {
        make();
        put("domain",
            "{\"nodes\":{\"2\":{\"host\":\"10.0.0.1\",\"connections\":{\"1\":{\"status\":\"CONNECTED\"},"
            "\"2\":{\"status\":\"CONNECTED\"}}},"
            "\"1\":{\"host\":\"10.0.0.2\"}}}",
            0644);
        members(2, "10.0.0.2", NULL);
        assert_true(within(5000, is_ready));
        assert_int_equal(last.node_id, 2);
        assert_true(within(5000, one_connected));
        assert_int_equal(last.peers_known, 1);
}

#define CONNECTED_TO_1(status)                                                                               \
        "{\"nodes\":{\"0\":{\"host\":\"10.0.0.1\",\"connections\":{\"1\":{\"status\":\"" status "\"}}}}}"

static bool knows_its_peers(void) {
        return last.lost_known && !*last.lost;
}
static bool lost_one(void) {
        return last.lost_known && streq(last.lost, "1");
}

/* failure: nvidia-imex reports that a peer is no longer connected -> the daemon queries again and reports it
 */
static void a_lost_peer_is_reported_after_two_answers(void **state) {
        make();
        put("id", "0", 0644);
        put("domain", CONNECTED_TO_1("CONNECTED"), 0644);
        members(0, "10.0.0.2", NULL);
        assert_true(within(5000, is_ready));
        assert_false(last.lost_known);
        assert_true(within(5000, knows_its_peers));
        put("domain", CONNECTED_TO_1("RECOVERING"), 0644);
        assert_true(within(10000, lost_one));
        assert_true(last.ready);
        put("domain", CONNECTED_TO_1("CONNECTED"), 0644);
        assert_true(within(10000, knows_its_peers));
}

/* The log reports a lost connection, so a query about all peers is needed only rarely. */
static void connected_peers_are_queried_at_the_idle_rate(void **state) {
        make_programs();
        assert_null(make_with((struct setting){ .ask_idle_ms = 30000 }));
        put("id", "0", 0644);
        put("domain", CONNECTED_TO_1("CONNECTED"), 0644);
        members(0, "10.0.0.2", NULL);
        assert_true(within(5000, is_ready));
        assert_true(within(5000, knows_its_peers));
        asked_before = count("asked", "-N");
        within(1500, never); /* the next query came a second after an answer */
        assert_int_equal(count("asked", "-N"), asked_before);
}

/* failure: nvidia-imex takes a wrong ID -> it does not count as READY, and is restarted */
static void test_wrong_id_is_not_ready_and_restarts(void **state) {
        make();
        put("id", "3", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, wrong_id));
        assert_true(within(5000, restarted_thrice));
        assert_int_equal(count("asked", "READY"), 0);
        put("id", "0", 0644);
        assert_true(within(5000, is_ready));
}

/* failure: the address of a peer changes -> nvidia-imex gets the new address */
static void test_peers_change_hosts_and_signal(void **state) {
        _cleanup_(freep) char *hosts = NULL;

        make();
        put("id", "0", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
        assert_int_equal(count("events", "usr1"), 0);

        /* Known, but without an address yet: IMEX needs no signal. */
        members(0, "", NULL);
        within(100, never);
        assert_int_equal(count("events", "usr1"), 0);

        members(0, "10.0.0.2", NULL);
        members(0, "10.0.0.2", "10.0.0.3");
        assert_true(within(5000, usr1_once));
        within(300, never);
        assert_int_equal(count("events", "usr1"), 1);
        hosts = get("hosts.seen");
        assert_non_null(strstr(hosts, "10.0.0.1\tcompute-domain-daemon-ab-0000\n10.0.0.2\tcompute-domain-"
                                      "daemon-ab-0001\n10.0.0.3\tcompute-domain-daemon-ab-0002\n"));
        assert_int_equal(last.peers_known, 2);
        assert_true(last.ready);

        /* The last change of a burst is never lost. */
        members(0, "10.0.0.4", "10.0.0.3");
        within(20, never);
        members(0, "10.0.0.5", "10.0.0.3");
        assert_true(within(5000, second_peer_seen));
        assert_int_equal(count("events", "start"), 1);
}

/* failure: the index of a node changes -> nvidia-imex is restarted with it */
static void test_own_index_change_restarts(void **state) {
        _cleanup_(freep) char *hosts = NULL;

        make();
        put("id", "0", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
        put("id", "3", 0644);
        members(3, NULL, NULL);
        assert_true(within(5000, is_unready));
        assert_true(within(5000, is_ready));
        assert_int_equal(last.index, 3);
        assert_int_equal(last.restarts, 0); /* the owner asked for the restart */
        assert_int_equal(count("events", "start"), 2);
        assert_int_equal(count("events", "term"), 1);
        hosts = get("hosts.seen");
        assert_non_null(strstr(
                hosts,
                "10.0.0.1\tcompute-domain-daemon-ab-0003\n127.0.0.2\tcompute-domain-daemon-ab-0000\n"));
}

static void test_infix_change_restarts(void **state) {
        make();
        members_with(0, "ab", NULL, NULL);
        assert_true(within(5000, is_ready));
        members_with(0, "", NULL, NULL);
        assert_true(within(5000, started_twice));
        assert_true(within(5000, is_ready));
        assert_int_equal(count("hosts", "-ab-"), 0);
        assert_int_equal(count("nodes.cfg", "compute-domain-daemon-000"), 4);
}

static void test_leaving_stops(void **state) {
        make();
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
        members(-1, NULL, NULL);
        assert_true(within(5000, is_unready));
        assert_true(within(5000, is_idle));
        assert_int_equal(count("events", "term"), 1);
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
}

/* failure: nvidia-imex crashes once -> it is restarted and becomes READY */
static void test_crash_once(void **state) {
        make();
        put("id", "0", 0644);
        put("before", "[ -e crashed ] || { touch crashed; exit 5; }\n", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, is_backoff));
        assert_string_equal(last_reason, "nvidia-imex ended with exit code 5");
        assert_string_equal(last_status, "BACKOFF");
        assert_true(within(5000, is_ready));
        assert_int_equal(last.restarts, 1);
}

/* Starts nvidia-imex, and kills it when it is READY. The next one lives. */
static void crash_while_ready(void) {
        make();
        put("id", "0", 0644);
        put("before", "(while [ ! -e die ]; do sleep 0.01; done; kill -KILL $$) &\n", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
        put("before", "", 0644);
        put("die", "", 0644);
}

static void test_crash_while_ready_withdraws(void **state) {
        crash_while_ready();
        assert_true(within(5000, is_unready));
        assert_true(within(5000, is_ready));
        assert_int_equal(last.restarts, 1);
}

/* The files of the configuration cannot be replaced, but have the right content. */
/* failure: the disk is full when nvidia-imex crashes -> it is restarted, because no file has to change */
static void imex_is_restarted_while_the_disk_is_full(void **state) {
        crash_while_ready();
        faults_at_with("rename", 1, ENOSPC, true);
        bool restarted = within(5000, is_unready) && within(5000, is_ready);
        assert_false(faults_off());
        assert_true(restarted);
        assert_int_equal(last.restarts, 1);
}

static void crash_loop(const char *last_words, const char *cause) {
        _cleanup_(freep) char *script = xasprintf("echo '%s' >&2; exit 1\n", last_words);

        make();
        put("before", script, 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, restarted_thrice));
        assert_true(within(5000, is_backoff));
        assert_non_null(strstr(last_reason, cause));
        assert_null(strchr(phases, 'r'));
        put("before", "", 0644);
        assert_true(within(5000, is_ready));
}

static void test_crash_loop_reports_the_cause(void **state) {
        crash_loop("Failed to allocate Imex session, status = NV_ERR_IN_USE", "nvidia-imex.service");
}

/* failure: nvidia-imex finds no matching network interface -> it is not READY, and the reason is reported */
static void test_no_matching_interface_is_not_ready(void **state) {
        crash_loop("[ERROR] No matching network interface found for any IP addresses in the node "
                   "configuration file",
                   "none of this node");
}

/* failure: nvidia-imex-ctl prints an error -> the error is reported */
static void test_the_output_of_ctl_is_reported(void **state) {
        make();
        put("status", "warning: of no interest\nFailed to connect to 10.0.0.1:50005\n", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, explains));
        assert_false(last.ready);
        put("status", "READY\n", 0644);
        assert_true(within(5000, is_ready));
}

static void test_missing_program(void **state) {
        make();
        free_runner();
        make_with((struct setting){ .imex_path = "/no/such/nvidia-imex" });
        members(0, NULL, NULL);
        assert_true(within(5000, is_backoff));
        assert_non_null(strstr(last_reason, "needs the nvidia-imex package"));
}

/* failure: nvidia-imex-ctl misses one answer -> nvidia-imex is queried as rarely as before */
static void test_one_missed_answer_does_not_query_more_often(void **state) {
        enum { IDLE_MS = 500 };
        make_programs();
        assert_null(make_with((struct setting){ .ask_idle_ms = IDLE_MS }));
        put("id", "0", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
        asked_before = count("asked", "-q");
        put("hang", "", 0644);
        assert_true(within(5000, asked_since));
        _cleanup_(freep) char *hang = in_dir("hang");
        unlink(hang);
        assert_true(within(5000, asked_twice_since));
        assert_true(is_ready());

        uint64_t begin = uv_hrtime();
        asked_before = count("asked", "-q");
        within(1500, never);
        assert_in_range(count("asked", "-q") - asked_before, 0,
                        1 + (uv_hrtime() - begin) / (IDLE_MS * 1000000));
}

static void test_hanging_ctl_withdraws_readiness(void **state) {
        make();
        put("id", "0", 0644);
        put("hang", "", 0644);
        members(0, NULL, NULL);
        assert_true(within(10000, hung));
        assert_false(last.ready);
        _cleanup_(freep) char *hang = in_dir("hang");
        unlink(hang);
        assert_true(within(5000, is_ready));

        put("hang", "", 0644);
        assert_true(within(5000, is_unready));
        unlink(hang);
        assert_true(within(5000, is_ready));
}

static void test_no_signal_before_it_answers(void **state) {
        make();
        put("status", "", 0644);
        put("id", "0", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, asked_thrice));
        members(0, "10.0.0.2", NULL);
        within(200, never);
        assert_int_equal(count("events", "usr1"), 0);
        put("status", "READY\n", 0644);
        assert_true(within(5000, usr1_once));
}

static void test_index_out_of_range(void **state) {
        make();
        members(4, NULL, NULL);
        assert_true(within(5000, reported));
        within(100, never);
        assert_non_null(strstr(last_reason, "only 4 slots"));
        assert_int_equal(count("events", "start"), 0);
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
}

static void test_wrong_peers_do_not_disturb_running_imex(void **state) {
        make();
        members(0, "10.0.0.2", NULL);
        assert_true(within(5000, is_ready));
        members(0, "not an address", NULL);
        assert_true(within(5000, reported_trouble));
        assert_non_null(strstr(trouble_text, "'not an address' for an IP address"));
        within(100, never);
        assert_true(last.ready);
        assert_int_equal(count("events", "usr1"), 0);
        assert_int_equal(count("hosts", "10.0.0.2"), 1);
}

/* A stale entry of a peer in our slot, or with our address, must not get into the files. */
static void test_no_peer_gets_our_slot_or_address(void **state) {
        struct imex_peer peers[] = { { .index = 0, .ip = "10.0.0.9", .node = "old me" },
                                     { .index = 1, .ip = "10.0.0.1", .node = "stale" } };

        make();
        imex_runner_set_members(
                runner,
                &(struct imex_members){ .own_index = 0, .infix = "ab", .peers = peers, .n_peers = 2 });
        assert_true(within(5000, is_ready));
        assert_int_equal(count("hosts", "10.0.0.9"), 0);
        assert_int_equal(count("hosts", "10.0.0.1"), 1);
        assert_int_equal(last.peers_known, 0);
}

static void test_hosts_cannot_be_written(void **state) {
        _cleanup_(freep) char *hosts = in_dir("hosts");

        make();
        unlink(hosts);
        members(0, NULL, NULL);
        assert_true(within(5000, is_backoff));
        assert_non_null(strstr(last_reason, "hosts"));
        put("hosts", HOSTS, 0644);
        assert_true(within(5000, is_ready));
}

static void test_stop(void **state) {
        make();
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
        imex_runner_stop(runner);
        assert_true(last.ready); /* nothing happens inside the call */
        memset(phases, 0, sizeof phases);
        assert_true(within(5000, is_stopped));
        assert_string_equal(phases, "xX"); /* stopping, stopped */
        assert_int_equal(count("events", "term"), 1);
        members(1, NULL, NULL); /* ignored after the stop */
        within(100, never);
        assert_int_equal(stopped, 1);
        assert_int_equal(count("events", "start"), 1);
}

static void test_stop_ignored_is_killed(void **state) {
        make();
        put("before", "trap '' TERM\n", 0644);
        members(0, NULL, NULL);
        assert_true(within(5000, is_ready));
        imex_runner_stop(runner);
        assert_true(within(5000, is_stopped));
}

static void test_stop_while_idle(void **state) {
        make();
        imex_runner_stop(runner);
        assert_true(within(5000, is_stopped));
        assert_int_equal(last.phase, IMEX_STOPPED);
}

static void test_starts_from_the_members_file(void **state) {
        const struct imex_members *known;

        make();
        put("id", "2", 0644);
        members(2, "10.0.0.2", NULL);
        assert_true(within(5000, is_ready));
        free_runner();

        known = make_with((struct setting){ 0 });
        assert_non_null(known);
        assert_int_equal(known->own_index, 2);
        assert_true(within(5000, is_ready)); /* from the file alone */
        assert_int_equal(last.index, 2);
        assert_int_equal(count("hosts", "10.0.0.2"), 1);
        free_runner();

        /* The node was removed from the domain, and the file has that, too. */
        known = make_with((struct setting){ 0 });
        assert_non_null(known);
        assert_true(within(5000, is_ready));
        members(-1, NULL, NULL);
        assert_true(within(5000, is_idle));
        free_runner();
        known = make_with((struct setting){ 0 });
        assert_true(known && known->own_index < 0);
        free_runner();

        /* Another pod, claim, boot or domain does not use the file. */
        assert_null(make_with((struct setting){ .identity = "another" }));
        assert_true(within(5000, reported));
        within(100, never);
        assert_int_equal(last.phase, IMEX_IDLE);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, make_dir, finish)
        const struct CMUnitTest tests[] = {
                T(test_idle_without_index),
                T(test_becomes_ready),
                T(test_ready_imex_is_queried_rarely),
                T(test_id_from_the_domain),
                T(a_lost_peer_is_reported_after_two_answers),
                T(connected_peers_are_queried_at_the_idle_rate),
                T(test_wrong_id_is_not_ready_and_restarts),
                T(test_peers_change_hosts_and_signal),
                T(test_own_index_change_restarts),
                T(test_infix_change_restarts),
                T(test_leaving_stops),
                T(test_crash_once),
                T(test_crash_while_ready_withdraws),
                T(imex_is_restarted_while_the_disk_is_full),
                T(test_crash_loop_reports_the_cause),
                T(test_no_matching_interface_is_not_ready),
                T(test_the_output_of_ctl_is_reported),
                T(test_missing_program),
                T(test_one_missed_answer_does_not_query_more_often),
                T(test_hanging_ctl_withdraws_readiness),
                T(test_no_signal_before_it_answers),
                T(test_index_out_of_range),
                T(test_wrong_peers_do_not_disturb_running_imex),
                T(test_no_peer_gets_our_slot_or_address),
                T(test_hosts_cannot_be_written),
                T(test_stop),
                T(test_stop_ignored_is_killed),
                T(test_stop_while_idle),
                T(test_starts_from_the_members_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
