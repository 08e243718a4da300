/* SPDX-License-Identifier: Apache-2.0 */
/* One IMEX domain a fabric, which agents run for all ComputeDomains, and a channel of its own for each
 * (imex.agents=true with imex.isolation=channel). */
#include "fake_world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "imex/imex_grants.h"

#define AGENT "a0000000-0000-4000-8000-000000000001"
#define ELSEWHERE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.9"
#define OWN ",\"isolation\":\"Channel\""
#define CHANNELS                                                                                             \
        "{\"id\":7,\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" DOMAIN_A "\"}},"                        \
        "{\"id\":8,\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" DOMAIN_B "\"}}"
#define SEAT(index, epoch) "{\"node\":\"n0\",\"index\":" index ",\"epoch\":" epoch "}"

static char uid[37];

static int setup(void **state) {
        if (world_setup(state) < 0)
                return -1;
        fabric_standing_uid(CLIQUE, uid);
        world_mode_agents("channel");
        world_start(BOOT);
        api_domain("user", "cd2", DOMAIN_B, false);
        api_claim("user", "c1", CLAIM_1, "channel-3", CHANNEL, DOMAIN_A, OWN);
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_B, OWN);
        return 0;
}

static void agent_comes(void) {
        struct dra_op op = { 0 };
        api_claim_json(
                "driver", "agent",
                "{\"metadata\":{\"name\":\"agent\",\"namespace\":\"driver\",\"uid\":\"" AGENT
                "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":[{"
                "\"request\":\"daemon\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":"
                "\"daemon-0\"}],\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"daemon\"],\"opaque\":{"
                "\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{\"apiVersion\":"
                "\"resource.nvidia.com/v1beta1\",\"kind\":\"ComputeDomainAgentConfig\"}}}]}}}}");
        kubelet_prepare(w.claims, &op, "driver", "agent", AGENT);
        world_wait(&op, PREPARED);
}

static char *domain_dir(void) {
        return xasprintf("%s/domains/%s", w.plugin_dir, uid);
}

static void agent_says(bool ready, const char *status, int epoch) {
        _cleanup_(freep) char *dir = domain_dir();
        struct imex_state s = { .boot_id = BOOT, .claim_uid = AGENT, .index = 3, .ready = ready };
        struct err e;
        snprintf(s.pod_uid, sizeof s.pod_uid, "%s", "e0000000-0000-4000-8000-000000000001");
        snprintf(s.status, sizeof s.status, "%s", status);
        snprintf(s.version, sizeof s.version, "580.95.05");
        snprintf(s.seat, sizeof s.seat, CLIQUE "/%s/3/%d", uid, epoch);
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        assert_int_equal(imex_state_write(dir, &s, &w.lock_fd, &e), 0);
        world_turn();
}

/* What the agent removes when it has left. */
static void agent_has_left(void) {
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s/" IMEX_STATE_FILE, w.plugin_dir, uid);
        assert_int_equal(unlink(path), 0);
        close(w.lock_fd);
        w.lock_fd = -1;
        world_turn();
}

static void roster(int rv, const char *seats, const char *leaving) {
        _cleanup_(freep) char *domains =
                xasprintf(",\"domains\":[{\"owner\":{\"kind\":\"ComputeDomainFabric\",\"name\":\"" CLIQUE
                          "\",\"uid\":\"%s\"},\"infix\":\"aa\",\"slots\":18,\"port\":28001,\"seats\":[%s],"
                          "\"leaving\":[%s]}]",
                          uid, seats, leaving);
        api_fabric(CLIQUE, rv, CHANNELS, domains);
}

static void domain_is_full(void) {
        api_fabric(CLIQUE, 1, CHANNELS,
                   ",\"conditions\":[{\"type\":\"DomainFull\",\"status\":\"True\",\"message\":\"It has room "
                   "for 18 nodes. Set imex.maxNodesPerDomain\"}]");
}

static void joined(void) {
        agent_comes();
        roster(1, SEAT("3", "1"), "");
        agent_says(true, "READY", 1);
}

static bool noted(const char *domain, const char *claim) {
        _cleanup_(freep) char *path =
                xasprintf("%s/domains/%s/" IMEX_GRANTS_DIR "/%s", w.plugin_dir, domain, claim);
        return access(path, F_OK) == 0;
}

static void waits_and_says(const char *part) {
        struct dra_op op = { .timeout_ms = 400 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        if (!strstr(op.msg, part))
                print_message("'%s' is not in: %s\n", part, op.msg);
        assert_non_null(strstr(op.msg, part));
        assert_null(world_cdi(CLAIM_1));
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

static void two_ComputeDomains_have_channels_of_the_one_domain_that_stands(void **state) {
        (void)state;
        joined();
        prepared("c1", CLAIM_1, "channel7\"");
        prepared("c2", CLAIM_2, "channel8\"");
        /* Whoever ends IMEX looks there, whatever ComputeDomain it is. */
        assert_true(noted(uid, CLAIM_1) && noted(uid, CLAIM_2));
        assert_false(noted(DOMAIN_A, CLAIM_1) || noted(DOMAIN_B, CLAIM_2));
        unprepared("c1", CLAIM_1);
        assert_false(noted(uid, CLAIM_1));
        assert_true(noted(uid, CLAIM_2));
}

static void a_pod_waits_for_the_agent_for_its_seat_and_for_READY(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        roster(1, "", "");
        waits_and_says("n0: no IMEX agent runs on this node yet");
        agent_comes();
        waits_and_says(
                "n0: this node has not been given a seat in the IMEX domain of its fabric on rack-7 yet; if "
                "that lasts, the conditions of ComputeDomainFabric " CLIQUE " say why, or the node is "
                "cordoned");
        roster(2, SEAT("3", "1"), "");
        waits_and_says("n0: the IMEX agent of this node has not joined this IMEX domain yet");
        agent_says(true, "READY", 0);
        waits_and_says(
                "n0: the IMEX agent of this node is still in an earlier seat of its fabric (epoch 0, now 1)");
        agent_says(false, "STARTING", 1);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        agent_says(true, "READY", 1);
        world_wait(&op, PREPARED);
}

/* A claim may be allocated on a node that had a place, and has none any more. */
static void a_pod_on_a_node_for_which_the_domain_has_no_place_says_the_remedy(void **state) {
        (void)state;
        agent_comes();
        domain_is_full();
        waits_and_says(
                "n0: this node has not been given a seat in the IMEX domain of its fabric on rack-7 yet: It "
                "has room for 18 nodes. Set imex.maxNodesPerDomain");
}

/* A10: the seat is taken back for whoever came before the controller knew. */
static void a10_a_pod_on_a_node_that_is_leaving_waits_until_it_stays(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        agent_comes();
        agent_says(true, "READY", 1);
        roster(1, "", SEAT("3", "1"));
        waits_and_says(
                "n0: this node is leaving the IMEX domain of its fabric, because it is cordoned, and nobody "
                "had a claim here; it stays, or comes back");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_true(noted(uid, CLAIM_1));
        roster(2, SEAT("3", "1"), "");
        api_fabric_event();
        world_wait(&op, PREPARED);
}

static void a_daemon_pod_of_before_is_named(void **state) {
        struct dra_op daemon = { 0 };
        (void)state;
        api_daemon_claim_named("cd", "user");
        kubelet_prepare(w.claims, &daemon, "driver", "daemon-claim", DAEMON_1);
        world_wait(&daemon, PREPARED);
        roster(1, "", "");
        waits_and_says(
                "n0: the IMEX daemon of another ComputeDomain, which was formed with daemon pods, is still");
}

static void what_is_prepared_stays_whatever_the_fabric_and_the_agent_say(void **state) {
        struct dra_op again = { 0 };
        (void)state;
        joined();
        prepared("c1", CLAIM_1, "channel7\"");
        roster(2, "", "");
        api_fabric_event();
        agent_has_left();
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

/* ret: what stands in the other fabric. */
static void moves_under_a_claim(char ret[static 37]) {
        joined();
        prepared("c1", CLAIM_1, "channel7\"");
        state_fabric(ELSEWHERE);
        fabric_standing_uid(ELSEWHERE, ret);
}

/* The claim is of the fabric that its channel is of. */
static void a_node_that_moved_holds_the_domain_of_the_fabric_it_was_in(void **state) {
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

/* Its agent stays where the claim is, and joins nothing there. */
static void a_node_that_comes_back_to_its_fabric_leaves_no_folder_of_the_other(void **state) {
        char moved[37];
        (void)state;
        moves_under_a_claim(moved);
        assert_true(has_folder(moved));
        state_fabric(CLIQUE);
        assert_false(has_folder(moved));
        assert_true(noted(uid, CLAIM_1));
}

/* An agent of before the change must not end what is in use, and must not wait for ever either. */
static void over_a_change_of_the_mode_the_notes_stay_as_long_as_their_claims(void **state) {
        void (*const modes[])(void) = { world_mode_own_channels, NULL };
        (void)state;
        joined();
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
                world_mode_agents("channel");
                world_stop(w.claims);
                world_start(BOOT);
                prepared("c1", CLAIM_1, "channel7\"");
                world_stop(w.claims);
                if (modes[i])
                        modes[i]();
                else
                        world_mode_agents("domain");
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
        assert_true(isolation_judge(w.isolations[0], &w.facts, &o));
        return o;
}

static void withheld(const char *reason, const char *part) {
        const struct offering o = offered();
        assert_string_equal(o.reason, reason);
        if (!strstr(o.message, part))
                print_message("'%s' is not in: %s\n", part, o.message);
        assert_non_null(strstr(o.message, part));
}

static void a_node_offers_its_places_from_its_join_to_its_leaving(void **state) {
        (void)state;
        world_turn();
        withheld("IMEXNotJoined", "no IMEX agent runs on this node");
        agent_comes();
        withheld("IMEXNotJoined", "leaves while it is cordoned: the IMEX agent of this node has not joined");
        agent_says(false, "STARTING", 1);
        withheld("IMEXNotJoined", "IMEX daemon is STARTING");
        agent_says(true, "READY", 1);
        assert_true(offered().offered); /* at once */
        agent_says(false, "LEAVING", 1);
        withheld("IMEXNotJoined", "");
        agent_has_left();
        withheld("IMEXNotJoined", "");
        agent_says(true, "READY", 2);
        assert_true(offered().offered); /* at once, again */
}

static void a_node_for_which_the_domain_has_no_place_says_it_instead_of_devices(void **state) {
        (void)state;
        domain_is_full();
        api_fabric_event();
        world_turn();
        withheld("IMEXNoPlace", "(on the node: no IMEX agent runs on this node)");
        agent_comes();
        world_turn();
        withheld("IMEXNoPlace", "fabric: It has room for 18 nodes. Set imex.maxNodesPerDomain");
        withheld("IMEXNoPlace", "(on the node: the IMEX agent of this node has not joined");
        roster(2, SEAT("3", "1"), "");
        api_fabric_event();
        world_turn();
        withheld("IMEXNotJoined", "leaves while it is cordoned: the IMEX agent of this node has not joined");
}

/* What fails where it was well must fail for a while, so that a restart takes nothing from anybody. */
static void an_IMEX_that_restarts_withholds_nothing(void **state) {
        (void)state;
        joined();
        assert_true(offered().offered);
        agent_says(false, "STARTING", 1);
        assert_true(offered().offered);
        close(w.lock_fd);
        w.lock_fd = -1;
        assert_true(offered().offered);
}

static void nothing_is_decided_before_the_prepared_claims_are_known(void **state) {
        struct standing s;
        (void)state;
        joined();
        world_cd()->followed = false;
        standing_get(world_cd(), &s);
        assert_int_equal(s.state, STANDING_NOT_KNOWN);
        struct offering o;
        assert_false(isolation_judge(w.isolations[0], &w.facts, &o));
        world_cd()->followed = true;
        assert_true(offered().offered);
        standing_get(world_cd(), &s);
        assert_string_equal(s.version, "580.95.05");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
        const struct CMUnitTest tests[] = {
                T(two_ComputeDomains_have_channels_of_the_one_domain_that_stands),
                T(a_pod_waits_for_the_agent_for_its_seat_and_for_READY),
                T(a_pod_on_a_node_for_which_the_domain_has_no_place_says_the_remedy),
                T(a10_a_pod_on_a_node_that_is_leaving_waits_until_it_stays),
                T(a_daemon_pod_of_before_is_named),
                T(what_is_prepared_stays_whatever_the_fabric_and_the_agent_say),
                T(a_node_that_moved_holds_the_domain_of_the_fabric_it_was_in),
                T(a_node_that_comes_back_to_its_fabric_leaves_no_folder_of_the_other),
                T(over_a_change_of_the_mode_the_notes_stay_as_long_as_their_claims),
                T(a_node_offers_its_places_from_its_join_to_its_leaving),
                T(a_node_for_which_the_domain_has_no_place_says_it_instead_of_devices),
                T(an_IMEX_that_restarts_withholds_nothing),
                T(nothing_is_decided_before_the_prepared_claims_are_known),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
