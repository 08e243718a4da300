/* SPDX-License-Identifier: Apache-2.0 */
/* The claims' state machine with host-managed IMEX. */
#include "world/cd_node.h"

#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "cd_plugin/state.h"

#define CDI_1 "k8s.compute-domain.nvidia.com/claim=" CLAIM_1 "-channel-0"
#define NO_CLIQUE "host-managed IMEX requires an NVLink clique on this node; NVML reports none"

static int setup_mode(const char *gates, const char *imex_mode, bool waits) {
        if (world_setup(NULL) < 0)
                return -1;
        world_mode(gates, imex_mode);
        w.wait_for_host = w.wait_for_host || waits;
        world_start(BOOT);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"Single\"");
        return 0;
}

static int setup(void **state) {
        (void)state;
        return setup_mode("HostManagedIMEX=true", "", false);
}

static int setup_driver_managed(void **state) {
        (void)state;
        return setup_mode("", "", false);
}

static void no_clique(void) {
        w.facts.fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_NONE, .reason = "no GPU reports a fabric" };
}

static void channel_node(void) {
        tree_put(w.driver_root, "dev/nvidia-caps-imex-channels/channel0", "");
}

/* ---- preparing ---- */

static void channel_prepare_waits_for_no_daemon_and_mounts_no_imexd(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        channel_node();
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
        assert_string_equal(op.devices, "r/n0/channel-0=" CDI_1);
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        assert_non_null(strstr(cdi, "/dev/nvidia-caps-imex-channels/channel0\""));
        assert_null(strstr(cdi, "channel1"));
        assert_null(strstr(cdi, "imexd"));
        assert_null(strstr(cdi, "mounts"));
        _cleanup_(freep) char *folder = file_join(w.plugin_dir, "domains");
        assert_int_equal(access(folder, F_OK), -1);
        /* The claim and the domains of its namespace were read; nothing was written, no Node labelled, no
         * Event made. */
        assert_int_equal(api.requests, 2);
        assert_string_equal(api.events, "");
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_COMPLETED);
}

static void channel_prepare_accepts_empty_and_Single(void **state) {
        (void)state;
        static const char *const accepted[] = { "", ",\"allocationMode\":\"\"",
                                                ",\"allocationMode\":\"Single\"" };
        for (size_t i = 0; i < ARRAY_LEN(accepted); i++) {
                struct dra_op op = { 0 }, gone = { 0 };
                api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, accepted[i]);
                prepare(&op, "c1", CLAIM_1);
                world_wait(&op, PREPARED);
                kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
                world_wait(&gone, UNPREPARED);
        }
}

static void channel_prepare_rejects_allocation_mode_All(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"All\"");
        refused_at_once("c1", CLAIM_1, "allocationMode \"All\"");
}

static void channel_prepare_rejects_unknown_allocation_mode_foo(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"foo\"");
        refused_at_once("c1", CLAIM_1, "allocationMode \"foo\"");
}

static void channel_prepare_rejects_empty_clique_id_as_a_permanent_error(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        no_clique();
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, NO_CLIQUE));
        assert_null(world_cdi(CLAIM_1));
        assert_null(world_entry(w.claims, CLAIM_1));
}

#define RESULT(request, device)                                                                              \
        "{\"request\":\"" request                                                                            \
        "\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":\"" device "\"}"

static void channel_prepare_requires_exactly_one_allocation_result(void **state) {
        (void)state;
        api_claim_json("user", "c1",
                       "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                       "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":"
                       "[" RESULT("a", "channel-0") "," RESULT(
                               "b", "channel-0") "],\"config\":[{\"source\":\"FromClaim\",\"opaque\":{"
                                                 "\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{"
                                                 "\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":"
                                                 "\"" CHANNEL "\",\"domainID\":\"" DOMAIN_A "\"}}}]}}}}");
        refused_at_once("c1", CLAIM_1, "exactly one channel");
}

static void a_domain_of_another_namespace_is_a_permanent_error(void **state) {
        (void)state;
        api_domain("other", "theirs", DOMAIN_B, false);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_B, "");
        refused_at_once("c1", CLAIM_1, "in namespace 'user'");
}

/* ---- the order of the checks ---- */

static void each_step_is_checked_before_the_next(void **state) {
        (void)state;
        struct dra_op holder = { 0 }, conflict = { 0 }, gone = { 0 };
        prepare(&holder, "c1", CLAIM_1);
        world_wait(&holder, PREPARED);
        no_clique();
        /* the mode before the checkpoint */
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_B, ",\"allocationMode\":\"All\"");
        refused_at_once("c2", CLAIM_2, "allocationMode");
        /* the checkpoint before the namespace: the claim waits, because the conflict may end */
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_B, "");
        prepare(&conflict, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(conflict.answer, PENDING);
        /* the namespace before the clique */
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&conflict, FAILED);
        assert_non_null(strstr(conflict.msg, "in namespace 'user'"));
}

static void second_channel_claim_on_the_node_waits_for_the_first_and_names_it(void **state) {
        (void)state;
        struct dra_op one = { 0 }, late = { .timeout_ms = 200 }, two = { 0 }, gone = { 0 };
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        prepare(&late, "c2", CLAIM_2);
        world_wait(&late, FAILED);
        assert_non_null(strstr(late.msg, "device 'channel-0' is still held by claim 'user/c1'"));
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&two, PREPARED);
}

/* ---- the daemon's claims ---- */

static void daemon_claim_that_reaches_prepare_is_a_permanent_error(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, CD_DAEMON_DOMAIN, "");
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, "daemon claims are disabled"));
        assert_non_null(strstr(op.msg, "HostManagedIMEX=true"));
        assert_false(world_recorded(DAEMON_1));
        /* A daemon's configuration for a channel is refused, too. */
        api_claim("user", "c1", CLAIM_1, "channel-0", DAEMON, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "daemon claims are disabled");
}

/* ---- unpreparing ---- */

static void unprepare_removes_cdi_and_checkpoint_from_local_state(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        api.down = true;
        unsigned before = api.requests;
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_turn();
        assert_int_equal(gone.answer, UNPREPARED);
        assert_int_equal(api.requests, before);
        assert_null(world_cdi(CLAIM_1));
        assert_false(world_recorded(CLAIM_1));
}

/* ---- the other mode ---- */

static void domain_of_the_other_mode_must_be_recreated(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_domain_mode(DOMAIN_A, MODE_DRIVER_MANAGED);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, "delete and recreate it"));
        assert_non_null(strstr(op.msg, MODE_DRIVER_MANAGED));
        api_domain_mode(DOMAIN_A, MODE_HOST_MANAGED);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
}

static void a_host_managed_domain_is_refused_in_a_driver_managed_installation(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_domain_mode(DOMAIN_A, MODE_HOST_MANAGED);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        assert_non_null(
                strstr(op.msg, "formed with hostManaged IMEX, but this installation is driverManaged"));
}

/* ---- the host's device node ---- */

static void host_channel0_chardev_missing_is_a_warning_and_no_failure(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct err e;
        _cleanup_(freep) char *dir = file_join(w.dir, "channel-nodes");
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        ((struct cd *)w.claims->o.u)->o.channel_nodes = dir;
        tree_put(w.driver_root, "dev/nvidiactl", "");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        assert_string_equal(op.devices, "r/n0/channel-0=" CDI_1);
        assert_non_null(strstr(api.events, "Pod/pod-c1 IMEXChannelNodeMissing"));
        assert_int_equal(rmdir(dir), 0); /* the plugin makes none: that would hide the missing one */
}

/* failure: the driver root of GKE has no dev folder -> no missing device node is reported [host-managed] */
static void a_driver_root_without_device_nodes_proves_nothing(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        assert_null(strstr(api.events, "IMEXChannelNodeMissing"));
}

/* ---- imex.waitForHost ---- */

static int setup_waiting(void **state) {
        (void)state;
        return setup_mode("", MODE_HOST_MANAGED, true);
}

/* As users of the Go driver set it. */
static int setup_go_spelling(void **state) {
        (void)state;
        return setup_mode("HostManagedIMEXDaemon=true", MODE_HOST_MANAGED, false);
}

static void a_claim_waits_for_the_start_gate_after_the_host(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_domain_gate(DOMAIN_A, "true", "False", "1 of 2 nodes are connected");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_true(w.host_hurried);
        host_answers("READY");
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_false(w.host_hurried);
        api_domain_gate(DOMAIN_A, "true", "True", "2 nodes were connected");
        world_wait(&op, PREPARED);
}

static void a_claim_waits_until_the_host_reports_READY_and_nothing_else(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        static const char *const others[] = { "INITIALIZING", "NOT_READY", "", "UNAVAILABLE" };
        /* An answer from before the claim came: nvidia-imex may have ended since. */
        host_answers("READY");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_true(w.host_hurried);
        for (size_t i = 0; i < ARRAY_LEN(others); i++) {
                host_answers(others[i]);
                world_turn();
                assert_int_equal(op.answer, PENDING);
                assert_true(w.host_hurried);
        }
        host_answers("READY");
        world_wait(&op, PREPARED);
        assert_false(w.host_hurried);
}

static void at_the_deadline_the_hosts_state_is_the_cause(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 300 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        host_answers("WAITING_FOR_RECOVERY");
        world_wait(&op, FAILED);
        assert_string_equal(op.msg, "n0: the host's nvidia-imex is WAITING_FOR_RECOVERY");
}

static void a_claim_waits_for_the_channel_and_then_for_the_host(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 }, gone = { 0 };
        prepare(&one, "c1", CLAIM_1);
        world_turn();
        host_answers("READY");
        world_wait(&one, PREPARED);
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        assert_false(w.host_hurried);
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        assert_true(w.host_hurried);
        host_answers("READY");
        world_wait(&two, PREPARED);
}

static void permanent_errors_are_refused_before_the_wait(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"All\"");
        refused_at_once("c2", CLAIM_2, "allocationMode \"All\" is not possible with host-managed IMEX");
        no_clique();
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, NO_CLIQUE));
        assert_false(w.host_hurried);
        assert_null(world_entry(w.claims, CLAIM_1));
}

static void a_prepared_claim_does_not_wait(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        host_answers("READY");
        world_wait(&op, PREPARED);
        host_answers("UNAVAILABLE");
        no_clique();
        prepare(&again, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(again.answer, PREPARED);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
#define WAITS(f) cmocka_unit_test_setup_teardown(f, setup_waiting, world_teardown)
#define GO(f) cmocka_unit_test_setup_teardown(f, setup_go_spelling, world_teardown)
        const struct CMUnitTest tests[] = {
                T(channel_prepare_waits_for_no_daemon_and_mounts_no_imexd),
                T(channel_prepare_accepts_empty_and_Single),
                T(channel_prepare_rejects_allocation_mode_All),
                T(channel_prepare_rejects_unknown_allocation_mode_foo),
                T(channel_prepare_rejects_empty_clique_id_as_a_permanent_error),
                T(channel_prepare_requires_exactly_one_allocation_result),
                T(a_domain_of_another_namespace_is_a_permanent_error),
                T(each_step_is_checked_before_the_next),
                T(second_channel_claim_on_the_node_waits_for_the_first_and_names_it),
                T(daemon_claim_that_reaches_prepare_is_a_permanent_error),
                T(unprepare_removes_cdi_and_checkpoint_from_local_state),
                T(domain_of_the_other_mode_must_be_recreated),
                cmocka_unit_test_setup_teardown(
                        a_host_managed_domain_is_refused_in_a_driver_managed_installation,
                        setup_driver_managed, world_teardown),
                T(host_channel0_chardev_missing_is_a_warning_and_no_failure),
                T(a_driver_root_without_device_nodes_proves_nothing),
                WAITS(a_claim_waits_for_the_start_gate_after_the_host),
                WAITS(a_claim_waits_until_the_host_reports_READY_and_nothing_else),
                GO(a_claim_waits_until_the_host_reports_READY_and_nothing_else),
                WAITS(at_the_deadline_the_hosts_state_is_the_cause),
                WAITS(a_claim_waits_for_the_channel_and_then_for_the_host),
                WAITS(permanent_errors_are_refused_before_the_wait),
                WAITS(a_prepared_claim_does_not_wait),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
