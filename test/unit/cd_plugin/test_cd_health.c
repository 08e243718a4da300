/* SPDX-License-Identifier: Apache-2.0 */
/* The health of the channels of prepared claims, which the kubelet shows in the status of pods. */
#include "world/cd_node.h"

#include <stdio.h>
#include <string.h>

/* ---- the judge ---- */

static struct imex_state state;
static const char *const nodes[] = { "n1", "n2" };

static struct cd_health_facts facts(size_t n_lost) {
        state = (struct imex_state){ .lost_known = true };
        return (struct cd_health_facts){ .runner = CD_HEALTH_OWN,
                                         .node = "n0",
                                         .ready = true,
                                         .why = "n0: IMEX daemon is STARTING",
                                         .state = &state,
                                         .lost = nodes,
                                         .n_lost = n_lost };
}

static struct cd_health_verdict judged;
static void assert_judged(const struct cd_health_facts *f, enum dra_health_state want, const char *part) {
        cd_health_judge(f, &judged);
        if (judged.state != want || !strstr(judged.message, part) || (!*part && *judged.message))
                fail_msg("%d: %s", judged.state, judged.message);
}

static void a_channel_is_healthy_while_no_peer_is_lost(void **st) {
        struct cd_health_facts f = facts(0);
        assert_judged(&f, DRA_HEALTH_GOOD, "");
}

/* failure: IMEX loses a peer with pods of the ComputeDomain -> the status of the pod names the node */
static void a_lost_peer_is_named_with_the_remedy(void **st) {
        struct cd_health_facts f = facts(2);
        assert_judged(&f, DRA_HEALTH_BAD, "n0: IMEX is not connected to n1, n2, so");
        assert_judged(&f, DRA_HEALTH_BAD, "restart the pods");
        f = facts(1);
        f.undecided = true;
        assert_judged(&f, DRA_HEALTH_BAD, "n0: IMEX is not connected to n1, so");
}

static void many_lost_peers_are_counted(void **st) {
        const char *many[20];
        char names[20][80];
        struct cd_health_facts f = facts(20);
        for (int i = 0; i < 20; i++) {
                snprintf(names[i], sizeof names[i], "%070d", i);
                many[i] = names[i];
        }
        f.lost = many;
        assert_judged(&f, DRA_HEALTH_BAD, " and 12 more, so GPU memory");
        assert_judged(&f, DRA_HEALTH_BAD, "imported is lost");
}

static void only_active_nodes_are_lost_peers(void **st) {
        static struct fabric_assignment assignments[] = {
                { .node = "n0", .index = 0, .epoch = 1 },
                { .node = "n1", .index = 1, .epoch = 2 },
                { .node = "n2", .index = 2, .epoch = 3 },
                { .node = "n3", .index = 3, .epoch = 4, .state = "Leaving" },
        };
        const struct fabric_domain d = { .assignments = assignments, .n_assignments = 4 };
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        const char **lost;
        assert_int_equal(cd_health_lost(&d, "0,2,3,17", "n0", a, &lost), 1);
        assert_string_equal(lost[0], "n2");
        assert_int_equal(cd_health_lost(&d, "", "n0", a, &lost), 0);
}

/* failure: IMEX of a pod's node is not READY -> the status of the pod shows the reason and the remedy */
static void an_IMEX_that_is_not_ready_is_unhealthy(void **st) {
        struct cd_health_facts f = facts(0);
        f.ready = false;
        assert_judged(&f, DRA_HEALTH_BAD, "n0: IMEX daemon is STARTING. Pods cannot share");
        assert_judged(&f, DRA_HEALTH_BAD, "restart the pods");
}

static void what_is_not_known_is_unknown(void **st) {
        struct cd_health_facts f = facts(0);
        state.lost_known = false;
        assert_judged(&f, DRA_HEALTH_UNKNOWN, "has not reported its connections");
        f = facts(0);
        f.undecided = true;
        assert_judged(&f, DRA_HEALTH_UNKNOWN, "it is not known whether they have pods");
        f.ready = false;
        f.unreadable = true;
        f.why = "n0: the IMEX daemon's state cannot be read: EIO";
        assert_judged(&f, DRA_HEALTH_UNKNOWN, "EIO");
        f.runner = CD_HEALTH_GO;
        assert_judged(&f, DRA_HEALTH_UNKNOWN, "the Go driver's daemon");
        f.runner = CD_HEALTH_NO_IMEX;
        assert_judged(&f, DRA_HEALTH_UNKNOWN, "no NVLink partition");
}

static void the_hosts_IMEX_is_judged_by_its_own_state(void **st) {
        struct host_imex_status s = { .state = HOST_UP };
        struct cd_health_facts f = {
                .runner = CD_HEALTH_HOST, .node = "n0", .host = HOST_IMEX_READY, .host_status = &s
        };
        assert_judged(&f, DRA_HEALTH_GOOD, "");
        s.state = HOST_DEGRADED;
        snprintf(s.reason, sizeof s.reason, "the IMEX domain is DEGRADED");
        assert_judged(&f, DRA_HEALTH_UNKNOWN, "n0: the IMEX domain is DEGRADED. It is not known");
        f.host = HOST_IMEX_NOT_READY;
        s.state = HOST_DOWN;
        snprintf(s.reason, sizeof s.reason, "the host's nvidia-imex is STARTING");
        assert_judged(&f, DRA_HEALTH_BAD, "n0: the host's nvidia-imex is STARTING. Start");
        f.host = HOST_IMEX_NOT_KNOWN;
        assert_judged(&f, DRA_HEALTH_UNKNOWN, "is not known");
        f.host = HOST_IMEX_NOT_ASKED;
        f.host_status = NULL;
        assert_judged(&f, DRA_HEALTH_UNKNOWN, "is not known");
}

/* ---- the list ---- */

static struct arena *arena;
static struct dra_health_list list;

static void ask(void) {
        arena_free(arena);
        arena = arena_new(1024);
        list = (struct dra_health_list){ 0 };
        cd_health_list(world_cd(), arena, &list);
}

static void assert_listed(enum dra_health_state want, const char *part) {
        ask();
        assert_int_equal(list.n, 1);
        assert_string_equal(list.devices[0].pool, "n0");
        assert_string_equal(list.devices[0].device, "channel-0");
        if (list.devices[0].state != want || !strstr(list.devices[0].message, part))
                fail_msg("%d: %s", list.devices[0].state, list.devices[0].message);
}

static void runs_a_claim(void) {
        struct dra_op op = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_turn();
}

static int teardown(void **st) {
        arena_free(arena);
        arena = NULL;
        return world_teardown(st);
}

static void the_channel_of_a_prepared_claim_is_listed(void **st) {
        struct dra_op op = { 0 };
        ask();
        assert_int_equal(list.n, 0);
        daemon_loses("");
        daemon_ready();
        runs_a_claim(); /* the claim of the daemon is prepared, too, and not listed */
        assert_listed(DRA_HEALTH_GOOD, "");
        daemon_reports(DOMAIN_A, DAEMON_1, BOOT, false, "STARTING", &w.lock_fd);
        assert_listed(DRA_HEALTH_BAD, "n0: IMEX daemon is STARTING: two peers are missing");
        daemon_dies();
        assert_listed(DRA_HEALTH_BAD, "is not running any more");
        kubelet_unprepare(w.claims, &op, "user", "c1", CLAIM_1);
        world_wait(&op, UNPREPARED);
        ask();
        assert_int_equal(list.n, 0);
}

/* failure: a node without a partition loses its GPUs -> the pods without a channel do not count as unhealthy
 */
static void a_pod_without_a_channel_has_no_health(void **st) {
        w.facts.fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_NONE, .reason = "no GPU reports a fabric" };
        runs_a_claim();
        assert_listed(DRA_HEALTH_UNKNOWN, "no NVLink partition");
        w.facts.fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_ERROR };
        assert_listed(DRA_HEALTH_UNKNOWN, "no NVLink partition");
}

/* failure: the daemon is older than the plugin and reports no lost peers -> the health is unknown */
static void an_old_daemon_leaves_the_health_unknown(void **st) {
        daemon_loses(NULL);
        daemon_ready();
        runs_a_claim();
        assert_listed(DRA_HEALTH_UNKNOWN, "has not reported its connections");
}

static void a_lost_peer_is_listed(void **st) {
        daemon_loses("5");
        daemon_ready();
        runs_a_claim();
        api_fabric(CLIQUE, 2000, "",
                   ",\"domains\":[{\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" DOMAIN_A
                   "\"},\"infix\":\"aa\",\"slots\":18,\"port\":28001,\"assignments\":["
                   "{\"node\":\"n0\",\"index\":3,\"epoch\":1,\"claimUID\":\"" DAEMON_1 "\",\"bootID\":\"" BOOT
                   "\"},{\"node\":\"n5\",\"index\":5,\"epoch\":2}]}]");
        api_fabric_event();
        world_turn();
        assert_listed(DRA_HEALTH_BAD, "n0: IMEX is not connected to n5, so");
}

/* The Pod of the plugin on n5 reports that these owners hold channels; NULL: it reports nothing. */
static void holds_elsewhere(const char *held) {
        _cleanup_(freep) char *report =
                held ? xasprintf(
                               ",\"annotations\":{\"" IMEX_ANNOTATION_HOST_CHANNELS "\":\"{\\\"" CLIQUE
                               "\\\":{\\\"uid\\\":\\\"\\\",\\\"channelCount\\\":2048,\\\"held\\\":{%s}}}\"}",
                               held)
                     : xstrdup("");
        _cleanup_(freep) char *json =
                xasprintf("{\"metadata\":{\"name\":\"plugin-n5\",\"namespace\":\"driver\",\"uid\":\"p5\","
                          "\"resourceVersion\":\"1\"%s},\"spec\":{\"nodeName\":\"n5\"}}",
                          report);
        store_set(&api.store, &kube_pods, "driver", "plugin-n5", json);
}
#define HELD(uid) "\\\"7\\\":\\\"" uid "\\\""

static void in_a_standing_domain_a_lost_node_counts_if_it_holds_the_channel(void **st) {
        char uid[37];
        fabric_standing_uid(CLIQUE, uid);
        world_mode_daemons("channel");
        world_start(BOOT);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"isolation\":\"Channel\"");
        daemon_comes(DAEMON_1);
        _cleanup_(freep) char *domains =
                xasprintf(",\"domains\":[{\"owner\":{\"kind\":\"ComputeDomainFabric\",\"name\":\"" CLIQUE
                          "\",\"uid\":\"%s\"},\"infix\":\"aa\",\"slots\":18,\"port\":28001,\"assignments\":["
                          "{\"node\":\"n0\",\"index\":3,\"epoch\":1,\"claimUID\":\"" DAEMON_1
                          "\",\"bootID\":\"" BOOT "\"},{\"node\":\"n5\",\"index\":5,\"epoch\":2}]}]",
                          uid);
        _cleanup_(freep) char *assignment = xasprintf(CLIQUE "/%s/3/1", uid);
        api_fabric(CLIQUE, 1, "{\"id\":7,\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" DOMAIN_A "\"}}",
                   domains);
        daemon_loses("5");
        daemon_writes_state(DAEMON_1, uid, true, "READY", assignment);
        runs_a_claim();
        informers_unsynced = true;
        assert_listed(DRA_HEALTH_UNKNOWN, "it is not known whether they have pods");
        assert_true(list.pending);
        informers_unsynced = false;
        holds_elsewhere(NULL);
        assert_listed(DRA_HEALTH_UNKNOWN, "it is not known whether they have pods");
        assert_false(list.pending);
        holds_elsewhere("");
        assert_listed(DRA_HEALTH_GOOD, "");
        holds_elsewhere(HELD(DOMAIN_B));
        assert_listed(DRA_HEALTH_GOOD, "");
        holds_elsewhere(HELD(DOMAIN_A));
        assert_listed(DRA_HEALTH_BAD, "is not connected to n5, so");
        daemon_loses("");
        daemon_writes_state(DAEMON_1, uid, true, "READY", assignment);
        assert_listed(DRA_HEALTH_GOOD, "");
        assert_true(LIST_EMPTY(&world_cd()->health.watches));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_channel_is_healthy_while_no_peer_is_lost),
                cmocka_unit_test(a_lost_peer_is_named_with_the_remedy),
                cmocka_unit_test(only_active_nodes_are_lost_peers),
                cmocka_unit_test(many_lost_peers_are_counted),
                cmocka_unit_test(an_IMEX_that_is_not_ready_is_unhealthy),
                cmocka_unit_test(what_is_not_known_is_unknown),
                cmocka_unit_test(the_hosts_IMEX_is_judged_by_its_own_state),
                cmocka_unit_test_setup_teardown(the_channel_of_a_prepared_claim_is_listed, world_setup_claims,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_pod_without_a_channel_has_no_health, world_setup_claims,
                                                teardown),
                cmocka_unit_test_setup_teardown(an_old_daemon_leaves_the_health_unknown, world_setup_claims,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_lost_peer_is_listed, world_setup_claims, teardown),
                cmocka_unit_test_setup_teardown(
                        in_a_standing_domain_a_lost_node_counts_if_it_holds_the_channel, world_setup,
                        teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
