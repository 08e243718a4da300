/* SPDX-License-Identifier: Apache-2.0 */
/* A standing domain: one IMEX domain per partition, which our daemons run for all ComputeDomains, and an
 * assigned channel for each ComputeDomain (imex.isolation=channel). */
#include "world/cd_node.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define ELSEWHERE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.9"
#define OWN ",\"isolation\":\"Channel\""
#define CHANNELS                                                                                             \
        "{\"id\":7,\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" DOMAIN_A "\"}},"                        \
        "{\"id\":8,\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" DOMAIN_B "\"}}"
#define ASSIGNED(state)                                                                                      \
        "{\"node\":\"n0\",\"index\":3,\"epoch\":1,\"claimUID\":\"" DAEMON_1 "\",\"bootID\":\"" BOOT          \
        "\",\"state\":\"" state "\"}"

#define DAEMON_2 "d0000000-0000-4000-8000-000000000002"

static char uid[37];

static int setup(void **state) {
        if (world_setup(state) < 0)
                return -1;
        fabric_standing_uid(CLIQUE, uid);
        world_mode_daemons("channel");
        world_start(BOOT);
        api_domain("user", "cd2", DOMAIN_B, false);
        api_claim("user", "c1", CLAIM_1, "channel-3", CHANNEL, DOMAIN_A, OWN);
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_B, OWN);
        return 0;
}

static void writes_state(bool ready, const char *status, int epoch) {
        _cleanup_(freep) char *assignment = xasprintf(CLIQUE "/%s/3/%d", uid, epoch);
        daemon_writes_state(DAEMON_1, uid, ready, status, assignment);
}

/* Removes the files that the daemon removes when it has left. */
static void daemon_has_left(void) {
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s/" IMEX_STATE_FILE, w.plugin_dir, uid);
        assert_int_equal(unlink(path), 0);
        daemon_dies();
        world_turn();
}

static void fabric_lists(int rv, const char *assignments) {
        _cleanup_(freep) char *domains =
                xasprintf(",\"domains\":[{\"owner\":{\"kind\":\"ComputeDomainFabric\",\"name\":\"" CLIQUE
                          "\",\"uid\":\"%s\"},\"infix\":\"aa\",\"slots\":18,\"port\":28001,"
                          "\"assignments\":[%s]}]",
                          uid, assignments);
        api_fabric(CLIQUE, rv, CHANNELS, domains);
}

static void domain_is_full(void) {
        api_fabric(CLIQUE, 1, CHANNELS,
                   ",\"conditions\":[{\"type\":\"DomainFull\",\"status\":\"True\",\"message\":\"It has room "
                   "for 18 nodes. Set imex.maxNodesPerDomain\"}]");
}

static void joined(void) {
        daemon_comes(DAEMON_1);
        fabric_lists(1, ASSIGNED(""));
        writes_state(true, "READY", 1);
}

/* The claim is prepared. */
static bool noted(const char *domain, const char *claim) {
        const char *note = world_note(domain, claim);
        assert_true(streq(note, "") || streq(note, "granting"));
        return *note;
}

static void prepared(const char *name, const char *claim, const char *channel) {
        struct dra_op op = { 0 };
        prepare(&op, name, claim);
        world_wait(&op, PREPARED);
        _cleanup_(freep) char *cdi = world_cdi(claim);
        assert_non_null(strstr(cdi, channel));
}

static void unprepared(const char *name, const char *claim) {
        struct dra_op op = { 0 };
        kubelet_unprepare(w.claims, &op, "user", name, claim);
        world_wait(&op, UNPREPARED);
        world_turn();
}

static void two_ComputeDomains_have_channels_in_the_standing_domain(void **state) {
        (void)state;
        joined();
        prepared("c1", CLAIM_1, "channel7\"");
        prepared("c2", CLAIM_2, "channel8\"");
        /* The daemon looks there before it stops IMEX, for all ComputeDomains. */
        assert_true(noted(uid, CLAIM_1) && noted(uid, CLAIM_2));
        assert_false(noted(DOMAIN_A, CLAIM_1) || noted(DOMAIN_B, CLAIM_2));
        unprepared("c1", CLAIM_1);
        assert_false(noted(uid, CLAIM_1));
        assert_true(noted(uid, CLAIM_2));
}

/* failure: daemon, assignment or READY is missing -> the claim waits and names which */
static void a_claim_waits_for_daemon_assignment_and_READY(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        fabric_lists(1, "");
        waits_with("c1", CLAIM_1, "n0: no IMEX daemon runs on this node yet");
        daemon_comes(DAEMON_1);
        waits_with("c1", CLAIM_1,
                   "n0: this node has no assignment in the IMEX domain of its NVLink partition on rack-7 "
                   "yet; if that lasts, look at the conditions of ComputeDomainFabric " CLIQUE
                   ", and check whether the node is cordoned");
        fabric_lists(2, ASSIGNED(""));
        waits_with("c1", CLAIM_1, "n0: the IMEX daemon of this node has not joined this IMEX domain yet");
        writes_state(true, "READY", 0);
        waits_with(
                "c1", CLAIM_1,
                "n0: the IMEX daemon of this node still has an earlier assignment to the IMEX domain of its "
                "NVLink partition (epoch 0, now 1)");
        writes_state(false, "STARTING", 1);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        writes_state(true, "READY", 1);
        world_wait(&op, PREPARED);
}

/* A claim may be allocated on a node that had a slot, and no longer has one. */
/* failure: the standing domain has no index for a node -> a waiting claim names the remedy */
static void a_claim_on_a_node_without_an_index_names_the_remedy(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        domain_is_full();
        waits_with("c1", CLAIM_1,
                   "n0: this node has no assignment in the IMEX domain of its NVLink partition on rack-7 "
                   "yet: It has room for 18 nodes. Set imex.maxNodesPerDomain");
}

/* A new claim makes the controller withdraw `Leaving`. */
/* failure: a claim comes while its node is leaving -> it waits until the node stays or joins again */
static void a_pod_on_a_node_that_is_leaving_waits_until_it_stays(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        daemon_comes(DAEMON_1);
        writes_state(true, "READY", 1);
        fabric_lists(1, ASSIGNED("Leaving"));
        waits_with("c1", CLAIM_1,
                   "n0: this node is leaving the IMEX domain of its NVLink partition, because it is "
                   "cordoned, and no claim used it; it stays, or joins again");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        world_wait_note(uid, CLAIM_1, "waiting");
        fabric_lists(2, ASSIGNED(""));
        api_fabric_event();
        world_wait(&op, PREPARED);
}

/* failure: a daemon of the Go driver is still on a node -> claims wait until it has left [go] */
static void a_claim_waits_for_a_daemon_of_the_Go_driver_to_leave(void **state) {
        (void)state;
        go_comes();
        fabric_lists(1, "");
        waits_with("c1", CLAIM_1,
                   "n0: the IMEX daemon of another ComputeDomain, which the Go driver formed, is still");
}

/* failure: assignment and daemon disappear under a prepared claim -> the claim stays prepared */
static void prepared_claims_stay_whatever_fabric_object_and_daemon_report(void **state) {
        struct dra_op again = { 0 };
        (void)state;
        joined();
        prepared("c1", CLAIM_1, "channel7\"");
        fabric_lists(2, "");
        api_fabric_event();
        daemon_has_left();
        world_stop(w.claims);
        world_start(BOOT);
        assert_true(noted(uid, CLAIM_1));
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

static void state_fabric(const char *clique) {
        snprintf(w.facts.fabric.clique_id, sizeof w.facts.fabric.clique_id, "%s", clique);
        world_facts();
        world_turn();
}

/* ret: the UID of the standing domain in the other partition. */
static void moves_under_a_claim(char ret[static 37]) {
        joined();
        prepared("c1", CLAIM_1, "channel7\"");
        state_fabric(ELSEWHERE);
        fabric_standing_uid(ELSEWHERE, ret);
}

/* The grant of a claim is in the domain of the channel's partition. */
/* failure: a node gets another partition under a claim -> the grant stays in the old standing domain */
static void a_moved_node_keeps_the_grants_of_its_old_partition(void **state) {
        char moved[37];
        (void)state;
        moves_under_a_claim(moved);
        assert_true(noted(uid, CLAIM_1));
        assert_false(noted(moved, CLAIM_1));
        world_stop(w.claims);
        world_start(BOOT);
        assert_true(noted(uid, CLAIM_1));
        assert_false(noted(moved, CLAIM_1));
        unprepared("c1", CLAIM_1);
        assert_false(noted(uid, CLAIM_1));
}

static bool has_folder(const char *domain) {
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s", w.plugin_dir, domain);
        return access(path, F_OK) == 0;
}

/* Its daemon stays in the partition of the claim, and joins no domain in the other one. */
/* failure: a node has another partition for a while -> no folder of the other remains */
static void a_node_that_returns_to_its_partition_leaves_no_folder_of_the_other(void **state) {
        char moved[37];
        (void)state;
        moves_under_a_claim(moved);
        assert_true(has_folder(moved));
        state_fabric(CLIQUE);
        assert_false(has_folder(moved));
        assert_true(noted(uid, CLAIM_1));
}

/* A daemon from before the change must not stop an IMEX that is in use, and must not wait forever either. */
/* failure: the mode is changed under prepared claims -> their grants stay until Unprepare */
static void grants_stay_over_a_change_of_the_mode_until_unprepare(void **state) {
        void (*const modes[])(void) = { world_mode_own_channels, NULL };
        (void)state;
        joined();
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
                world_mode_daemons("channel");
                world_stop(w.claims);
                world_start(BOOT);
                prepared("c1", CLAIM_1, "channel7\"");
                world_stop(w.claims);
                if (modes[i])
                        modes[i]();
                else
                        world_mode_daemons("domain");
                world_start(BOOT);
                world_turn();
                assert_true(noted(uid, CLAIM_1));
                assert_false(noted(DOMAIN_A, CLAIM_1));
                unprepared("c1", CLAIM_1);
                assert_false(noted(uid, CLAIM_1));
        }
}

/* ---- health before placement ---- */

static struct offering offered(void) {
        struct offering o;
        assert_true(isolation_evaluate(w.isolations[0], &w.facts, &o));
        return o;
}

static void withheld(const char *reason, const char *part) {
        const struct offering o = offered();
        assert_string_equal(o.reason, reason);
        if (!strstr(o.message, part))
                print_message("'%s' is not in: %s\n", part, o.message);
        assert_non_null(strstr(o.message, part));
}

/* failure: a daemon has not joined yet -> the node withholds its channels and reports why */
static void a_node_offers_its_channels_while_it_is_in_the_domain(void **state) {
        (void)state;
        world_turn();
        withheld("IMEXNotJoined", "no IMEX daemon runs on this node");
        daemon_comes(DAEMON_1);
        withheld("IMEXNotJoined", "leaves while it is cordoned: the IMEX daemon of this node has not joined");
        writes_state(false, "STARTING", 1);
        withheld("IMEXNotJoined", "IMEX daemon is STARTING");
        writes_state(true, "READY", 1);
        assert_true(offered().offered); /* immediately */
        writes_state(false, "LEAVING", 1);
        withheld("IMEXNotJoined", "");
        daemon_has_left();
        withheld("IMEXNotJoined", "");
        writes_state(true, "READY", 2);
        assert_true(offered().offered); /* immediately again */
}

/* failure: the standing domain has no index for a node -> the node withholds its devices and reports why */
static void a_node_without_an_index_withholds_its_devices(void **state) {
        (void)state;
        domain_is_full();
        api_fabric_event();
        world_turn();
        withheld("IMEXNoIndex", "(on the node: no IMEX daemon runs on this node yet");
        daemon_comes(DAEMON_1);
        world_turn();
        withheld("IMEXNoIndex", "partition: It has room for 18 nodes. Set imex.maxNodesPerDomain");
        withheld("IMEXNoIndex", "(on the node: the IMEX daemon of this node has not joined");
        fabric_lists(2, ASSIGNED(""));
        api_fabric_event();
        world_turn();
        withheld("IMEXNotJoined", "leaves while it is cordoned: the IMEX daemon of this node has not joined");
}

static void daemon_gets_SIGTERM(void) {
        w.daemon_terminates = true;
        writes_state(true, "READY", 1);
}

static void the_next_daemon_comes(void) {
        w.daemon_terminates = false;
        daemon_comes(DAEMON_2);
        fabric_lists(3, "{\"node\":\"n0\",\"index\":3,\"epoch\":2,\"claimUID\":\"" DAEMON_2
                        "\",\"bootID\":\"" BOOT "\"}");
        api_fabric_event();
        _cleanup_(freep) char *assignment = xasprintf(CLIQUE "/%s/3/2", uid);
        daemon_writes_state(DAEMON_2, uid, true, "READY", assignment);
}

/* Otherwise the folder would never be empty, and the daemon would never end. */
/* failure: a daemon's Pod is deleted while pods keep coming -> new pods wait for the next daemon */
static void a_terminating_daemon_gets_no_new_pods(void **state) {
        struct dra_op op = { .timeout_ms = 400 }, again = { 0 };
        (void)state;
        joined();
        prepared("c1", CLAIM_1, "channel7\"");
        assert_true(offered().offered);
        daemon_gets_SIGTERM();
        withheld("IMEXDaemonTerminating",
                 "it serves the pods that have channels here, and ends after the last of them. Devices are "
                 "offered again when the next daemon");
        /* A claim that was allocated here before. */
        prepare(&op, "c2", CLAIM_2);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "n0: the IMEX daemon of this node is terminating, because its Pod is "
                                       "being deleted"));
        /* The running pods continue, and no Event reports that their channels are not served. */
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        struct standing now;
        standing_get(world_cd(), &now);
        assert_int_equal(now.state, STANDING_READY);
        assert_true(noted(uid, CLAIM_1));
        assert_string_not_equal(world_note(uid, CLAIM_2),
                                "granting"); /* it does not keep the daemon running */
}

/* failure: a terminating daemon has ended -> channels are withheld until the next one is READY */
static void after_a_terminated_daemon_nothing_is_offered_until_the_next_one_is_READY(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        joined();
        prepared("c1", CLAIM_1, "channel7\"");
        daemon_gets_SIGTERM();
        prepare(&op, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        unprepared("c1", CLAIM_1);
        writes_state(false, "LEAVING", 1);
        withheld("IMEXDaemonTerminating", "");
        daemon_dies();
        world_turn();
        withheld("IMEXDaemonTerminating", "");
        daemon_ends(DAEMON_1);
        withheld("IMEXNotJoined", "no IMEX daemon runs on this node");
        assert_int_equal(op.answer, PENDING);
        the_next_daemon_comes();
        assert_true(offered().offered);
        world_wait(&op, PREPARED);
}

/* It was killed, and its Pod still exists. */
/* failure: a terminating daemon dies -> channels are withheld until the next container is READY */
static void a_terminating_daemon_that_died_offers_nothing(void **state) {
        (void)state;
        joined();
        assert_true(offered().offered);
        daemon_gets_SIGTERM();
        daemon_dies();
        world_turn();
        withheld("IMEXDaemonTerminating", "");
        w.daemon_terminates = false; /* a new container of the same Pod, which is not deleted */
        writes_state(false, "STARTING", 1);
        withheld("", "");
        writes_state(true, "READY", 1);
        assert_true(offered().offered);
}

/* failure: the plugin restarts while a daemon terminates -> channels stay withheld */
static void a_plugin_that_restarts_still_knows_that_the_daemon_terminates(void **state) {
        struct offering o;
        (void)state;
        joined();
        prepared("c1", CLAIM_1, "channel7\"");
        daemon_gets_SIGTERM();
        world_stop(w.claims);
        world_start(BOOT);
        world_turn();
        while (!isolation_evaluate(w.isolations[0], &w.facts, &o))
                world_turn();
        withheld("IMEXDaemonTerminating", "");
}

/* The file of an earlier daemon is no information about the present one. */
/* failure: an earlier daemon was terminating -> that does not count for the present one */
static void the_state_of_an_earlier_daemon_does_not_count(void **state) {
        (void)state;
        joined();
        daemon_gets_SIGTERM();
        daemon_dies();
        daemon_ends(DAEMON_1);
        daemon_comes(DAEMON_2);
        writes_state(true, "READY", 1); /* for claim DAEMON_1 */
        withheld("IMEXNotJoined", "the state file is from another daemon");
}

/* After READY, a failure must last for a while before it counts, so that a restart has no effect. */
/* failure: IMEX of a node restarts -> its channels are not withheld */
static void an_IMEX_that_restarts_withholds_nothing(void **state) {
        (void)state;
        joined();
        assert_true(offered().offered);
        writes_state(false, "STARTING", 1);
        assert_true(offered().offered);
        daemon_dies();
        assert_true(offered().offered);
}

/* failure: the plugin has just started -> nothing is withheld until its prepared claims are known */
static void nothing_is_decided_before_the_prepared_claims_are_known(void **state) {
        struct standing s;
        (void)state;
        joined();
        world_cd()->followed = false;
        standing_get(world_cd(), &s);
        assert_int_equal(s.state, STANDING_NOT_KNOWN);
        struct offering o;
        assert_false(isolation_evaluate(w.isolations[0], &w.facts, &o));
        world_cd()->followed = true;
        assert_true(offered().offered);
        standing_get(world_cd(), &s);
        assert_string_equal(s.version, "580.95.05");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
        const struct CMUnitTest tests[] = {
                T(two_ComputeDomains_have_channels_in_the_standing_domain),
                T(a_claim_waits_for_daemon_assignment_and_READY),
                T(a_claim_on_a_node_without_an_index_names_the_remedy),
                T(a_pod_on_a_node_that_is_leaving_waits_until_it_stays),
                T(a_claim_waits_for_a_daemon_of_the_Go_driver_to_leave),
                T(prepared_claims_stay_whatever_fabric_object_and_daemon_report),
                T(a_moved_node_keeps_the_grants_of_its_old_partition),
                T(a_node_that_returns_to_its_partition_leaves_no_folder_of_the_other),
                T(grants_stay_over_a_change_of_the_mode_until_unprepare),
                T(a_node_offers_its_channels_while_it_is_in_the_domain),
                T(a_node_without_an_index_withholds_its_devices),
                T(a_terminating_daemon_gets_no_new_pods),
                T(after_a_terminated_daemon_nothing_is_offered_until_the_next_one_is_READY),
                T(a_terminating_daemon_that_died_offers_nothing),
                T(a_plugin_that_restarts_still_knows_that_the_daemon_terminates),
                T(the_state_of_an_earlier_daemon_does_not_count),
                T(an_IMEX_that_restarts_withholds_nothing),
                T(nothing_is_decided_before_the_prepared_claims_are_known),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
