/* SPDX-License-Identifier: Apache-2.0 */
/* Our daemon holds daemon-0 and runs IMEX for any domain that the node is in. */
#include "world/cd_node.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"

#define DAEMON_2 "a0000000-0000-4000-8000-000000000002"
#define OTHER_BOOT "22222222-2222-4222-8222-222222222222"

/* The fabric object at version rv: the assignments in the IMEX domain of DOMAIN_A. */
static void fabric_lists(int rv, const char *assignments) {
        _cleanup_(freep) char *domains =
                xasprintf(",\"domains\":[{\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" DOMAIN_A
                          "\"},\"infix\":\"aa\",\"slots\":4,\"port\":28001,\"assignments\":[%s]}]",
                          assignments);
        api_fabric(CLIQUE, rv, "", domains);
}

#define OF(index, epoch, claim, boot, more)                                                                  \
        "{\"node\":\"n0\",\"index\":" index ",\"epoch\":" epoch ",\"claimUID\":\"" claim                     \
        "\",\"bootID\":\"" boot "\"" more "}"
#define ASSIGNED(index, epoch) OF(index, epoch, DAEMON_1, BOOT, "")
#define IN_STATE(state) OF("3", "1", DAEMON_1, BOOT, ",\"state\":\"" state "\"")
#define READY_IN CLIQUE "/" DOMAIN_A "/3/1"

static void writes_state(const char *domain, bool ready, const char *assignment) {
        daemon_writes_state(DAEMON_1, domain, ready, ready ? "READY" : "LEAVING", assignment);
}

static char *shown(const char *name) {
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s", w.plugin_dir, name);
        return world_read(path);
}

static void the_daemon_gets_all_folders_the_cdi_files_and_the_clique_in_a_file(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        _cleanup_(freep) char *cdi = world_cdi(DAEMON_1);
        _cleanup_(freep) char *mount =
                xasprintf("{\"hostPath\":\"%s/domains\",\"containerPath\":\"/imexd\",", w.plugin_dir);
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "domains/fabric");
        _cleanup_(freep) char *fabric = world_read(path);
        assert_non_null(strstr(cdi, mount));
        _cleanup_(freep) char *cdi_mount = xasprintf(
                "{\"hostPath\":\"%s\",\"containerPath\":\"/var/run/cdi\",\"options\":[\"ro\",", w.cdi_root);
        assert_non_null(strstr(cdi, cdi_mount));
        assert_non_null(strstr(cdi, "\"COMPUTE_DOMAIN_CLAIM_UID=" DAEMON_1 "\""));
        assert_null(strstr(cdi, "COMPUTE_DOMAIN_UUID"));
        assert_null(strstr(cdi, "CLIQUE_ID"));
        assert_string_equal(fabric, CLIQUE "\n");
        snprintf(w.facts.fabric.clique_id, sizeof w.facts.fabric.clique_id, "%s",
                 "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.7");
        world_facts();
        _cleanup_(freep) char *moved = world_read(path);
        assert_string_equal(moved, "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.7\n");
}

/* failure: a FIFO replaces a file that the plugin shows to the daemon -> it does not block the plugin */
static void a_fifo_in_the_folder_of_the_daemon_does_not_block_the_plugin(void **state) {
        daemon_comes(DAEMON_1);
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "domains/fabric");
        alarm(20); /* ends a test that waits forever */
        unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        world_facts();
        alarm(0);
        _cleanup_(freep) char *fabric = world_read(path);
        assert_string_equal(fabric, CLIQUE "\n");
}

/* failure: the plugin is killed while it writes a file for the daemon -> its temporary file is removed */
static void the_temporary_file_of_a_killed_plugin_is_removed(void **state) {
        (void)state;
        _cleanup_(freep) char *dir = file_join(w.plugin_dir, "domains");
        _cleanup_(freep) char *path = file_join(dir, ".fabric.tmp.1.0");
        struct err e;
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        assert_int_equal(file_replace_volatile(path, "", 0, 0644, &e), 0);
        daemon_comes(DAEMON_1);
        assert_int_equal(access(path, F_OK), -1);
}

/* The node's channel is for one pod, and the daemon ends with that pod: nothing must be withheld. */
static void a_daemon_that_terminates_serves_its_ComputeDomain(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_comes(DAEMON_1);
        fabric_lists(1, ASSIGNED("3", "1"));
        w.daemon_terminates = true;
        writes_state(DOMAIN_A, true, READY_IN);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
}

static void a_claim_waits_until_the_daemon_is_ready_in_its_domain(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_comes(DAEMON_1);
        fabric_lists(1, ASSIGNED("3", "1"));
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        writes_state(DOMAIN_A, false, CLIQUE "/" DOMAIN_A "/3/1");
        world_turn();
        assert_int_equal(op.answer, PENDING);
        writes_state(DOMAIN_A, true, CLIQUE "/" DOMAIN_A "/3/1");
        world_wait(&op, PREPARED);
}

/* failure: a daemon is READY in another IMEX domain than the claim's -> the claim waits */
static void ready_in_another_domain_prepares_no_claim(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        fabric_lists(1, ASSIGNED("3", "1"));
        writes_state(DOMAIN_A, true, CLIQUE "/" DOMAIN_B "/3/1");
        waits_with("c1", CLAIM_1, "n0: the IMEX daemon of this node is in another IMEX domain");
}

static void ready_without_an_assignment_prepares_no_claim(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        fabric_lists(1, ASSIGNED("3", "1"));
        writes_state(DOMAIN_A, true, "");
        waits_with("c1", CLAIM_1, "n0: the IMEX daemon of this node is in another IMEX domain");
}

/* READY counts only with the assignment that the fabric object lists now. */
/* failure: a daemon is READY with an assignment that the fabric object does not list -> no claim is prepared
 * */
static void ready_with_an_unlisted_assignment_prepares_no_claim(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        writes_state(DOMAIN_A, true, READY_IN);
        waits_with("c1", CLAIM_1,
                   "n0: this node has no assignment in the IMEX domain of ComputeDomain 'user/cd' on " CLIQUE
                   " yet");
        fabric_lists(1, "");
        waits_with("c1", CLAIM_1,
                   "ComputeDomain 'user/cd' on rack-7 yet; if that lasts, look at the conditions of the "
                   "ComputeDomain (");
        fabric_lists(2, ASSIGNED("2", "5"));
        waits_with("c1", CLAIM_1,
                   "n0: the IMEX daemon of this node still has an earlier assignment to the IMEX domain of "
                   "ComputeDomain 'user/cd' (epoch 1, now 5)");
        fabric_lists(3, ASSIGNED("3", "5"));
        waits_with("c1", CLAIM_1, "still has an earlier assignment");
        fabric_lists(4, IN_STATE("Ending"));
        waits_with("c1", CLAIM_1,
                   "n0: ComputeDomain 'user/cd' is being deleted, and this node leaves its IMEX domain");
        writes_state(DOMAIN_A, true, "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.7/" DOMAIN_A "/3/1");
        fabric_lists(5, ASSIGNED("3", "1"));
        waits_with("c1", CLAIM_1, "still has an earlier assignment");
}

/* A new claim makes the controller withdraw `Leaving`. */
/* failure: a claim comes while its node is leaving the IMEX domain -> it waits until the node stays or joins
 * again */
static void a_claim_on_a_node_that_is_leaving_waits_until_it_stays(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_comes(DAEMON_1);
        writes_state(DOMAIN_A, true, READY_IN);
        fabric_lists(1, IN_STATE("Leaving"));
        waits_with("c1", CLAIM_1, "n0: this node is leaving the IMEX domain of ComputeDomain 'user/cd'");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        fabric_lists(2, ASSIGNED("3", "1"));
        api_fabric_event();
        world_wait(&op, PREPARED);
}

/* The controller has ended the epoch, and keeps the index for the next daemon of the node. */
/* failure: a claim comes while the index of its node is reserved -> it waits for the next daemon */
static void a_claim_on_a_node_whose_index_is_reserved_waits_for_its_new_daemon(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_comes(DAEMON_1);
        writes_state(DOMAIN_A, true, READY_IN);
        fabric_lists(1, "{\"node\":\"n0\",\"index\":3,\"epoch\":1,\"state\":\"Reserved\"}");
        waits_with(
                "c1", CLAIM_1,
                "n0: the IMEX daemon of this node has been replaced; the node's index in the IMEX domain of "
                "ComputeDomain 'user/cd' is reserved until the new daemon reports");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        fabric_lists(2, ASSIGNED("3", "2"));
        api_fabric_event();
        world_turn();
        assert_int_equal(op.answer, PENDING);
        writes_state(DOMAIN_A, true, CLIQUE "/" DOMAIN_A "/3/2");
        world_wait(&op, PREPARED);
}

/* failure: an assignment names another daemon, boot or state -> no claim is prepared */
static void an_assignment_of_another_daemon_boot_or_state_prepares_no_claim(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        writes_state(DOMAIN_A, true, READY_IN);
        fabric_lists(1, OF("3", "1", DAEMON_2, BOOT, ""));
        waits_with("c1", CLAIM_1, "is for an earlier IMEX daemon of this node");
        fabric_lists(2, OF("3", "1", DAEMON_1, OTHER_BOOT, ""));
        waits_with("c1", CLAIM_1, "is for an earlier IMEX daemon of this node");
        fabric_lists(3, IN_STATE("Paused"));
        waits_with("c1", CLAIM_1, "has the state 'Paused', which this version of the driver does not know");
}

/* failure: a node has no daemon -> the claim waits, and its message names the label and the DaemonSet */
static void a_claim_on_a_node_without_a_daemon_waits_with_a_remedy(void **state) {
        (void)state;
        waits_with("c1", CLAIM_1,
                   "n0: no IMEX daemon runs on this node yet; if that lasts, check that the Node has the "
                   "label resource.nvidia.com/imex-daemon=true, which the controller sets, and look at the "
                   "pod of DaemonSet compute-domain-daemon on this node");
}

static void a_domain_of_another_mode_is_refused(void **state) {
        (void)state;
        api_domain_mode(DOMAIN_A, "driverManagedChannel");
        waits_with("c1", CLAIM_1,
                   "ComputeDomain 'user/cd' was formed with driverManagedChannel IMEX, but this installation "
                   "is driverManaged");
}

/* failure: an old copy of the fabric object is restored -> its assignments prepare no claim [etcd] */
static void assignments_of_a_copy_prepare_no_claim(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        writes_state(DOMAIN_A, true, READY_IN);
        api_table_of("another");
        api_fabric(CLIQUE, 1, "",
                   ",\"conditions\":[{\"type\":\"ChannelsIncomplete\",\"status\":\"True\",\"message\":\"of "
                   "channels\"},"
                   "{\"type\":\"AssignmentsIncomplete\",\"status\":\"True\","
                   "\"message\":\"waiting for node-9\"}],\"domains\":[{\"owner\":{\"uid\":\"" DOMAIN_A
                   "\"},\"assignments\":[" ASSIGNED("3", "1") "]}]");
        waits_with("c1", CLAIM_1, "yet: waiting for node-9");
}

/* failure: a partition has too many IMEX domains -> the waiting claim names that as the cause */
static void exhausted_domains_are_named_as_the_cause(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        api_fabric(CLIQUE, 1, "",
                   ",\"conditions\":[{\"type\":\"DomainsExhausted\",\"status\":\"True\","
                   "\"message\":\"1000 ComputeDomains have nodes\"}],\"domains\":[]");
        waits_with("c1", CLAIM_1, "yet: 1000 ComputeDomains have nodes");
}

/* A granted channel stays, whatever the fabric object has then. */
/* failure: the assignment disappears under a prepared claim -> the pod keeps its channel */
static void a_pod_keeps_its_channel_when_the_assignment_disappears(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        daemon_comes(DAEMON_1);
        writes_state(DOMAIN_A, true, READY_IN);
        fabric_lists(1, ASSIGNED("3", "1"));
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        fabric_lists(2, "");
        api_fabric_event();
        _cleanup_(freep) char *path = cdi_path(w.cdi_root, CD_CDI_KIND_CLAIM, CLAIM_1);
        assert_int_equal(unlink(path), 0);
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        assert_non_null(cdi);
}

/* The daemon's Pod is older than the present devices and files of its node. */
/* failure: the NVIDIA driver of a node changes -> the daemon sees new CDI edits under the same IDs */
static void a_changed_driver_gets_new_edits_under_the_same_cdi_ids(void **state) {
        (void)state;
        struct dra_op again = { 0 };
        daemon_comes(DAEMON_1);
        _cleanup_(freep) char *before = world_cdi(DAEMON_1), *edits_before = shown("edits");
        _cleanup_(freep) char *name = xasprintf("COMPUTE_DOMAIN_DAEMON_EDITS=%.16s\"", edits_before);
        assert_non_null(strstr(before, name));
        assert_non_null(strstr(before, "libnvidia-ml.so.1"));
        world_facts();
        world_turn();
        _cleanup_(freep) char *same = world_cdi(DAEMON_1), *edits_same = shown("edits");
        assert_string_equal(same, before);
        assert_string_equal(edits_same, edits_before);
        tree_put(w.driver_root, "usr/lib64/libnvidia-ml.so.590.1", "x");
        snprintf(w.facts.driver_version, sizeof w.facts.driver_version, "590.1");
        world_facts();
        world_turn();
        _cleanup_(freep) char *after = world_cdi(DAEMON_1), *edits_after = shown("edits");
        assert_string_not_equal(after, before);
        assert_string_not_equal(edits_after, edits_before);
        _cleanup_(freep) char *now = xasprintf("COMPUTE_DOMAIN_DAEMON_EDITS=%.16s\"", edits_after);
        assert_non_null(strstr(after, now));
        assert_non_null(strstr(after, "\"name\":\"" DAEMON_1 "-daemon-0\""));
        kubelet_prepare(w.claims, &again, "driver", "daemon-claim", DAEMON_1);
        world_wait(&again, PREPARED);
        assert_string_equal(again.devices,
                            "r/n0/daemon-0=k8s.compute-domain.nvidia.com/claim=" DAEMON_1 "-daemon-0");
}

/* The plugin was killed after it wrote the CDI file and before the daemon could see it, or while the API
 * server was away. */
/* failure: the plugin is killed between the CDI file and the daemon's notice -> the daemon sees the edits
 * after its restart */
static void a_daemon_sees_new_edits_after_a_restart_of_the_plugin(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        _cleanup_(freep) char *edits = shown("edits");
        _cleanup_(freep) char *path = xasprintf("%s/domains/edits", w.plugin_dir);
        struct err e;
        world_stop(w.claims);
        assert_int_equal(file_replace(path, "0123456789abcdef\n", 17, 0644, &e), 0);
        world_start(BOOT);
        world_turn();
        _cleanup_(freep) char *now = shown("edits");
        assert_string_equal(now, edits);
}

/* A file for the daemon in its folder, by name. */
static bool is_shown(const char *name) {
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s", w.plugin_dir, name);
        return access(path, F_OK) == 0;
}

static void the_files_shown_to_a_daemon_are_removed_with_its_claim(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        daemon_comes(DAEMON_1);
        assert_true(is_shown("fabric") && is_shown("edits"));
        kubelet_unprepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_wait(&op, UNPREPARED);
        assert_false(is_shown("fabric") || is_shown("edits"));
        daemon_comes(DAEMON_2); /* the next daemon gets them again */
        assert_true(is_shown("fabric") && is_shown("edits"));
}

/* failure: a tenant creates a daemon claim -> the plugin refuses it [tenants] */
static void daemon_claims_of_other_namespaces_or_without_a_domain_are_refused(void **state) {
        (void)state;
        struct dra_op op = { 0 }, unnamed = { 0 };
        api_daemon_claim("user", DAEMON_1, "");
        kubelet_prepare(w.claims, &op, "user", "daemon-claim", DAEMON_1);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "is for the IMEX daemons in the driver's namespaces"));
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, "", "");
        kubelet_prepare(w.claims, &unnamed, "driver", "daemon-claim", DAEMON_1);
        world_wait(&unnamed, FAILED);
        assert_non_null(strstr(unnamed.msg, "domainID is empty"));
}

static void the_daemon_and_its_domain_are_known_after_a_restart_of_the_plugin(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_comes(DAEMON_1);
        fabric_lists(1, ASSIGNED("3", "1"));
        writes_state(DOMAIN_A, true, READY_IN);
        world_stop(w.claims);
        world_start(BOOT);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(the_daemon_gets_all_folders_the_cdi_files_and_the_clique_in_a_file),
                T(a_fifo_in_the_folder_of_the_daemon_does_not_block_the_plugin),
                T(the_temporary_file_of_a_killed_plugin_is_removed),
                T(a_daemon_that_terminates_serves_its_ComputeDomain),
                T(a_claim_waits_until_the_daemon_is_ready_in_its_domain),
                T(ready_in_another_domain_prepares_no_claim),
                T(ready_without_an_assignment_prepares_no_claim),
                T(ready_with_an_unlisted_assignment_prepares_no_claim),
                T(a_claim_on_a_node_that_is_leaving_waits_until_it_stays),
                T(a_claim_on_a_node_without_a_daemon_waits_with_a_remedy),
                T(a_domain_of_another_mode_is_refused),
                T(a_claim_on_a_node_whose_index_is_reserved_waits_for_its_new_daemon),
                T(an_assignment_of_another_daemon_boot_or_state_prepares_no_claim),
                T(assignments_of_a_copy_prepare_no_claim),
                T(exhausted_domains_are_named_as_the_cause),
                T(a_pod_keeps_its_channel_when_the_assignment_disappears),
                T(a_changed_driver_gets_new_edits_under_the_same_cdi_ids),
                T(a_daemon_sees_new_edits_after_a_restart_of_the_plugin),
                T(the_files_shown_to_a_daemon_are_removed_with_its_claim),
                T(daemon_claims_of_other_namespaces_or_without_a_domain_are_refused),
                T(the_daemon_and_its_domain_are_known_after_a_restart_of_the_plugin),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
