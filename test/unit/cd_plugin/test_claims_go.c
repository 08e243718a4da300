/* SPDX-License-Identifier: Apache-2.0 */
/* A ComputeDomain that the Go driver formed: its daemons are prepared and restart here, and its pods get
 * their channel because of the ComputeDomainClique that these daemons write. */
#include "world/cd_node.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"

static bool has_folder(const char *domain) {
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s", w.plugin_dir, domain);
        return access(path, F_OK) == 0;
}

static void its_daemon_gets_the_same_edits_as_from_the_go_driver(void **state) {
        (void)state;
        go_comes();
        _cleanup_(freep) char *cdi = world_cdi(GO_DAEMON);
        _cleanup_(freep) char *mount = xasprintf(
                "{\"hostPath\":\"%s/domains/" DOMAIN_A "\",\"containerPath\":\"/imexd\",", w.plugin_dir);
        static const char *const parts[] = {
                "\"CLIQUE_ID=" CLIQUE "\"",
                "\"COMPUTE_DOMAIN_UUID=" DOMAIN_A "\"",
                "\"COMPUTE_DOMAIN_NAME=cd\"",
                "\"COMPUTE_DOMAIN_NAMESPACE=user\"",
                "\"COMPUTE_DOMAIN_CLAIM_UID=" GO_DAEMON "\"",
                "/usr/bin/nvidia-imex\"",
        };
        assert_non_null(strstr(cdi, mount));
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
                if (!strstr(cdi, parts[i]))
                        fail_msg("'%s' is not in: %s", parts[i], cdi);
        assert_null(strstr(cdi, "COMPUTE_DOMAIN_DAEMON_EDITS"));
        assert_null(strstr(cdi, "\"containerPath\":\"/var/run/cdi\""));
        assert_true(has_folder(DOMAIN_A));
        assert_string_equal(world_entry(w.claims, GO_DAEMON)->devices[0].domain, DOMAIN_A);
}

/* The claim does not have its namespace. */
static void its_domain_is_found_in_any_namespace(void **state) {
        (void)state;
        api_remove_domain(DOMAIN_A);
        api_domain("elsewhere", "mine", DOMAIN_A, false);
        go_comes();
        _cleanup_(freep) char *cdi = world_cdi(GO_DAEMON);
        assert_non_null(strstr(cdi, "\"COMPUTE_DOMAIN_NAME=mine\""));
        assert_non_null(strstr(cdi, "\"COMPUTE_DOMAIN_NAMESPACE=elsewhere\""));
}

#define TEMPLATE "domains/" DOMAIN_A "/imexd.cfg.tmpl"

/* That daemon does not start without it; the Go driver's plugin writes it at each Prepare. */
/* failure: the plugin prepares a daemon of the Go driver -> that daemon gets its configuration template */
static void its_daemon_gets_the_template_of_its_configuration(void **state) {
        (void)state;
        go_prepared();
        _cleanup_(freep) char *path = file_join(w.plugin_dir, TEMPLATE), *text = world_read(path);
        assert_non_null(strstr(text, "SERVER_PORT=50000\nIMEX_NODE_CONFIG_FILE=/imexd/nodes.cfg\n"));
        assert_non_null(strstr(text, "\nIMEX_CMD_BIND_INTERFACE_IP={{.IMEXCmdBindInterfaceIP}}\n"));
}

/* failure: the Go driver's configuration template already exists -> the plugin leaves it unchanged */
static void a_template_of_the_Go_driver_stays(void **state) {
        (void)state;
        tree_put(w.plugin_dir, TEMPLATE, "KEY=of the Go driver\n");
        go_prepared();
        _cleanup_(freep) char *path = file_join(w.plugin_dir, TEMPLATE), *text = world_read(path);
        assert_string_equal(text, "KEY=of the Go driver\n");
}

static void a_daemon_of_a_deleted_domain_is_refused(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        api_remove_domain(DOMAIN_A);
        api_go_claim();
        kubelet_prepare(w.claims, &op, "driver", "go-claim", GO_DAEMON);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "there is no ComputeDomain " DOMAIN_A));
}

static void its_folder_is_removed_with_its_claim(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        go_comes();
        kubelet_unprepare(w.claims, &op, "driver", "go-claim", GO_DAEMON);
        world_wait(&op, UNPREPARED);
        assert_false(has_folder(DOMAIN_A));
        assert_null(pod_annotation("imex.resource.nvidia.com/unprepared-daemon-claim"));
}

static void a_pod_gets_its_channel_when_the_clique_lists_the_node_as_ready(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        go_comes();
        api_clique(DOMAIN_A, "Ready");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        assert_int_equal(api_gets(&kube_cliques), 1);
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        assert_non_null(strstr(cdi, "channel0"));
}

static void a_clique_without_a_ready_entry_of_the_node_prepares_no_claim(void **state) {
        (void)state;
        go_comes();
        waits_with(
                "c1", CLAIM_1,
                "n0: the IMEX daemon that the Go driver runs here for ComputeDomain 'user/cd' has not joined "
                "the ComputeDomainClique of this node; if that lasts, look at its Pod, in namespace "
                "'driver'");
        api_clique(DOMAIN_A, "");
        waits_with("c1", CLAIM_1, "has not joined the ComputeDomainClique of this node");
        api_clique(DOMAIN_A, "NotReady");
        waits_with(
                "c1", CLAIM_1,
                "n0: the IMEX daemon that the Go driver runs here for ComputeDomain 'user/cd' is not ready");
        api_clique(DOMAIN_B, "Ready");
        waits_with("c1", CLAIM_1, "has not joined the ComputeDomainClique of this node");
}

#define REBOOTED "22222222-2222-4222-8222-222222222222"

/* Its entry stays Ready until it has written its present address and state. */
/* failure: after a reboot a ComputeDomainClique still shows the Go driver's daemon as Ready -> claims wait
 * for its new address */
static void after_a_reboot_the_clique_counts_when_the_daemon_has_written_its_address(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        go_comes();
        api_clique(DOMAIN_A, "Ready");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_stop(w.claims);
        world_start(REBOOTED);
        go_prepared();
        waits_with("c1", CLAIM_1,
                   "n0: the IMEX daemon that the Go driver runs here for ComputeDomain 'user/cd' has not "
                   "started yet; if that lasts, look at its Pod, in namespace 'driver'");
        go_starts("10.0.0.77");
        waits_with("c1", CLAIM_1,
                   "has not written its address into the ComputeDomainClique of this node yet");
        api_clique_at(DOMAIN_A, "10.0.0.77", "NotReady");
        waits_with("c1", CLAIM_1, "'user/cd' is not ready");
        api_clique_at(DOMAIN_A, "10.0.0.77", "Ready");
        op = (struct dra_op){ 0 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
}

/* It writes the file in place. */
/* failure: the Go driver's daemon has written half of its configuration -> no claim is prepared */
static void a_half_written_configuration_prepares_no_claim(void **state) {
        (void)state;
        go_prepared();
        api_clique(DOMAIN_A, "Ready");
        tree_put(w.plugin_dir, "domains/" DOMAIN_A "/imexd.cfg", "IMEX_CMD_BIND_INTERFACE_IP=10.0");
        waits_with("c1", CLAIM_1, "has not written its address");
}

/* It is read again every WAITS_INVESTIGATE_MS. */
static void prepared_in_time(const struct dra_op *op) {
        while (op->answer == PENDING) {
                world_turn();
                uv_run(&w.loop, UV_RUN_ONCE);
        }
        assert_int_equal(op->answer, PREPARED);
}

static void the_clique_is_read_again_while_a_pod_waits(void **state) {
        struct dra_op op = { .timeout_ms = WAITS_INVESTIGATE_MS + 2000 };
        (void)state;
        go_comes();
        api_clique(DOMAIN_A, "NotReady");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(api_gets(&kube_cliques), 1);
        api_clique(DOMAIN_A, "Ready");
        prepared_in_time(&op);
        assert_int_equal(api_gets(&kube_cliques), 2);
}

/* The DaemonSet controller deletes its Pod, but its entry is Ready until it has received SIGTERM. */
/* failure: a Node has lost the label of the Go driver's daemon -> no pod gets a channel from this daemon [go]
 */
static void a_daemon_whose_Node_has_lost_the_label_prepares_no_claim(void **state) {
        struct dra_op op = { .timeout_ms = WAITS_INVESTIGATE_MS + 2000 };
        (void)state;
        go_comes();
        api_clique(DOMAIN_A, "Ready");
        api_node_label(NULL);
        waits_with(
                "c1", CLAIM_1,
                "n0: the IMEX daemon that the Go driver runs here for ComputeDomain 'user/cd' ends, because "
                "the last pod that used it here has ended: this node can join again after the other pods "
                "of the ComputeDomain have ended");
        api_node_label(DOMAIN_B);
        waits_with("c1", CLAIM_1, "'user/cd' ends, because");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        api_node_label(DOMAIN_A); /* somebody had removed it, and the controller restores it */
        prepared_in_time(&op);
}

/* failure: the labels of the Node cannot be read -> no pod gets a channel from the Go driver's daemon [go] */
static void an_unreadable_Node_prepares_no_claim(void **state) {
        (void)state;
        go_comes();
        api_clique(DOMAIN_A, "Ready");
        api.fails_for = "n0";
        api.fails_with = ERR_DENIED;
        waits_with("c1", CLAIM_1, "n0: cannot read the labels of the Node: refused");
}

static void an_unreadable_clique_prepares_no_claim(void **state) {
        (void)state;
        go_comes();
        api_clique(DOMAIN_A, "Ready");
        api.fails_for = DOMAIN_A "." CLIQUE;
        api.fails_with = ERR_DENIED;
        waits_with("c1", CLAIM_1,
                   "n0: cannot read ComputeDomainClique 'driver/" DOMAIN_A "." CLIQUE "': refused");
}

static void a_channel_waits_for_its_daemon(void **state) {
        struct dra_op op = { .timeout_ms = WAITS_INVESTIGATE_MS + 2000 };
        (void)state;
        api_clique(DOMAIN_A, "Ready");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_int_equal(api_gets(&kube_cliques), 0);
        go_comes();
        prepared_in_time(&op);
}

/* Its clique counts only on a node with its daemon. */
static void on_a_node_with_our_daemon_its_pods_wait(void **state) {
        (void)state;
        api_clique(DOMAIN_A, "Ready");
        daemon_comes(DAEMON_1);
        waits_with("c1", CLAIM_1,
                   "n0: this node has no assignment in the IMEX domain of ComputeDomain 'user/cd' on " CLIQUE
                   " yet; if that lasts, look at the conditions of the ComputeDomain (one that the Go driver "
                   "formed accepts new nodes after its last pod has ended)");
        assert_int_equal(api_gets(&kube_cliques), 0);
}

static void pods_of_other_domains_wait_until_it_ends(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        go_comes();
        api_clique(DOMAIN_A, "Ready");
        api_domain("user", "cd2", DOMAIN_B, false);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_B, "");
        waits_with(
                "c1", CLAIM_1,
                "n0: the IMEX daemon of another ComputeDomain, which the Go driver formed, is still on this "
                "node: it leaves after the last pod of that ComputeDomain here has ended");
        assert_int_equal(api_gets(&kube_cliques), 0);
        prepare(&op, "c1", CLAIM_1);
        kubelet_unprepare(w.claims, &(struct dra_op){ 0 }, "driver", "go-claim", GO_DAEMON);
        daemon_ready();
        api_assigned(DOMAIN_B);
        daemon_writes_state(DAEMON_1, DOMAIN_B, true, "READY", CLIQUE "/" DOMAIN_B "/3/1");
        world_wait(&op, PREPARED);
}

static void our_daemon_waits_for_its_daemon_and_the_other_way_round(void **state) {
        struct dra_op ours = { .timeout_ms = 600 }, again = { 0 }, gone = { 0 }, go = { .timeout_ms = 600 };
        (void)state;
        go_comes();
        api_daemon_claim("driver", DAEMON_1, "");
        kubelet_prepare(w.claims, &ours, "driver", "daemon-claim", DAEMON_1);
        world_wait(&ours, FAILED);
        assert_non_null(
                strstr(ours.msg, "n0: another IMEX daemon still runs here (claim 'driver/go-claim')"));
        kubelet_prepare(w.claims, &again, "driver", "daemon-claim", DAEMON_1);
        world_turn();
        assert_int_equal(again.answer, PENDING);
        kubelet_unprepare(w.claims, &gone, "driver", "go-claim", GO_DAEMON);
        world_wait(&gone, UNPREPARED);
        world_wait(&again, PREPARED);
        kubelet_prepare(w.claims, &go, "driver", "go-claim", GO_DAEMON);
        world_wait(&go, FAILED);
        assert_non_null(strstr(go.msg, "is still held by claim 'driver/daemon-claim'"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(its_daemon_gets_the_same_edits_as_from_the_go_driver),
                T(its_domain_is_found_in_any_namespace),
                T(its_daemon_gets_the_template_of_its_configuration),
                T(a_template_of_the_Go_driver_stays),
                T(a_daemon_of_a_deleted_domain_is_refused),
                T(its_folder_is_removed_with_its_claim),
                T(a_pod_gets_its_channel_when_the_clique_lists_the_node_as_ready),
                T(a_clique_without_a_ready_entry_of_the_node_prepares_no_claim),
                T(after_a_reboot_the_clique_counts_when_the_daemon_has_written_its_address),
                T(a_half_written_configuration_prepares_no_claim),
                T(the_clique_is_read_again_while_a_pod_waits),
                T(a_daemon_whose_Node_has_lost_the_label_prepares_no_claim),
                T(an_unreadable_Node_prepares_no_claim),
                T(an_unreadable_clique_prepares_no_claim),
                T(a_channel_waits_for_its_daemon),
                T(on_a_node_with_our_daemon_its_pods_wait),
                T(pods_of_other_domains_wait_until_it_ends),
                T(our_daemon_waits_for_its_daemon_and_the_other_way_round),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
