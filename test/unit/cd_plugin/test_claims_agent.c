/* SPDX-License-Identifier: Apache-2.0 */
/* A resident agent holds daemon-0 and runs IMEX for whichever domain the node is in. */
#include "fake_world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"

#define AGENT "a0000000-0000-4000-8000-000000000001"

static void agent_claim(const char *ns, const char *extra) {
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"agent\",\"namespace\":\"%s\",\"uid\":\"" AGENT
                "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":[{"
                "\"request\":\"daemon\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":"
                "\"daemon-0\"}],\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"daemon\"],\"opaque\":{"
                "\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{\"apiVersion\":"
                "\"resource.nvidia.com/v1beta1\",\"kind\":\"ComputeDomainAgentConfig\"%s}}}]}}}}",
                ns, extra);
        api_claim_json(ns, "agent", json);
}

static void agent_comes(void) {
        struct dra_op op = { 0 };
        agent_claim("driver", "");
        kubelet_prepare(w.claims, &op, "driver", "agent", AGENT);
        world_wait(&op, PREPARED);
}

static void agent_says(const char *domain, bool ready, const char *seat) {
        _cleanup_(freep) char *dir = xasprintf("%s/domains/%s", w.plugin_dir, domain);
        struct imex_state s = { .boot_id = BOOT, .claim_uid = AGENT, .index = 3, .ready = ready };
        struct err e;
        snprintf(s.pod_uid, sizeof s.pod_uid, "%s", "e0000000-0000-4000-8000-000000000001");
        snprintf(s.status, sizeof s.status, "%s", ready ? "READY" : "LEAVING");
        snprintf(s.seat, sizeof s.seat, "%s", seat);
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        assert_int_equal(imex_state_write(dir, &s, &w.lock_fd, &e), 0);
}

/* The fabric's object, at version rv: the lists of the IMEX domain of DOMAIN_A. */
static void roster(int rv, const char *seats, const char *leaving) {
        _cleanup_(freep) char *domains =
                xasprintf(",\"domains\":[{\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" DOMAIN_A
                          "\"},\"infix\":\"aa\",\"slots\":4,\"port\":28001,\"seats\":[%s],\"leaving\":[%s]}]",
                          seats, leaving);
        api_fabric(CLIQUE, rv, "", domains);
}

#define SEAT(index, epoch) "{\"node\":\"n0\",\"index\":" index ",\"epoch\":" epoch "}"
#define READY_IN CLIQUE "/" DOMAIN_A "/3/1"

static void waits_and_says(const char *part) {
        struct dra_op op = { .timeout_ms = 600 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        if (!strstr(op.msg, part))
                print_message("'%s' is not in: %s\n", part, op.msg);
        assert_non_null(strstr(op.msg, part));
        assert_null(world_cdi(CLAIM_1));
}

static char *told(const char *name) {
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s", w.plugin_dir, name);
        return world_read(path);
}

static void agent_is_given_all_folders_and_the_clique_in_a_file(void **state) {
        (void)state;
        agent_comes();
        _cleanup_(freep) char *cdi = world_cdi(AGENT);
        _cleanup_(freep) char *mount =
                xasprintf("{\"hostPath\":\"%s/domains\",\"containerPath\":\"/imexd\",", w.plugin_dir);
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "domains/fabric");
        _cleanup_(freep) char *fabric = world_read(path);
        assert_non_null(strstr(cdi, mount));
        assert_non_null(strstr(cdi, "\"COMPUTE_DOMAIN_CLAIM_UID=" AGENT "\""));
        assert_null(strstr(cdi, "COMPUTE_DOMAIN_UUID"));
        assert_null(strstr(cdi, "CLIQUE_ID"));
        assert_string_equal(fabric, CLIQUE "\n");
        snprintf(w.facts.fabric.clique_id, sizeof w.facts.fabric.clique_id, "%s",
                 "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.7");
        world_facts();
        _cleanup_(freep) char *moved = world_read(path);
        assert_string_equal(moved, "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.7\n");
}

static void claim_waits_until_the_agent_is_ready_in_its_domain(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        agent_comes();
        roster(1, SEAT("3", "1"), "");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        agent_says(DOMAIN_A, false, CLIQUE "/" DOMAIN_A "/3/1");
        world_turn();
        assert_int_equal(op.answer, PENDING);
        agent_says(DOMAIN_A, true, CLIQUE "/" DOMAIN_A "/3/1");
        world_wait(&op, PREPARED);
}

static void ready_in_another_domain_releases_nobody(void **state) {
        (void)state;
        agent_comes();
        roster(1, SEAT("3", "1"), "");
        agent_says(DOMAIN_A, true, CLIQUE "/" DOMAIN_B "/3/1");
        waits_and_says("n0: the IMEX agent of this node is in another IMEX domain");
}

static void ready_without_a_seat_releases_nobody(void **state) {
        (void)state;
        agent_comes();
        roster(1, SEAT("3", "1"), "");
        agent_says(DOMAIN_A, true, "");
        waits_and_says("n0: the IMEX agent of this node is in another IMEX domain");
}

/* A1: READY counts only for the seat that the fabric's object names now. */
static void ready_in_a_seat_that_the_fabric_does_not_name_releases_nobody(void **state) {
        (void)state;
        agent_comes();
        agent_says(DOMAIN_A, true, READY_IN);
        waits_and_says(
                "n0: this node has not been given a seat in the IMEX domain of ComputeDomain 'user/cd' "
                "on " CLIQUE " yet");
        roster(1, "", "");
        waits_and_says("ComputeDomain 'user/cd' on rack-7 yet; if that lasts, the conditions");
        roster(2, SEAT("2", "5"), "");
        waits_and_says("n0: the IMEX agent of this node is still in an earlier seat of ComputeDomain "
                       "'user/cd' (epoch 1, now 5)");
        roster(3, SEAT("3", "5"), "");
        waits_and_says("is still in an earlier seat");
        roster(4, "", "{\"node\":\"n0\",\"index\":3,\"epoch\":1,\"ordered\":\"deleted\"}");
        waits_and_says("n0: ComputeDomain 'user/cd' is being deleted, and this node leaves it");
        agent_says(DOMAIN_A, true, "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.7/" DOMAIN_A "/3/1");
        roster(5, SEAT("3", "1"), "");
        waits_and_says("is still in an earlier seat");
}

/* A1: a new claim for a seat that is `leaving` waits, and the controller takes `leaving` back. */
static void a_claim_for_a_seat_that_is_leaving_waits_until_it_is_kept(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        agent_comes();
        agent_says(DOMAIN_A, true, READY_IN);
        roster(1, "", SEAT("3", "1"));
        waits_and_says("n0: this node is leaving the IMEX domain of ComputeDomain 'user/cd'");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        roster(2, SEAT("3", "1"), "");
        api_fabric_event();
        world_wait(&op, PREPARED);
}

static void who_waits_for_an_agent_or_for_its_leaving_is_told(void **state) {
        (void)state;
        api_domain_mode(DOMAIN_A, "driverManagedAgents");
        waits_and_says(
                "n0: no IMEX agent runs on this node yet; if that lasts, look whether the Node has the "
                "label resource.nvidia.com/imex-agent=true");
        agent_comes();
        api_domain_mode(DOMAIN_A, "driverManaged");
        waits_and_says(
                "n0: ComputeDomain 'user/cd' was formed with daemon pods, and its daemon starts here when "
                "the IMEX agent of this node has made way");
}

static void an_agent_waits_for_a_daemon_that_is_still_here(void **state) {
        (void)state;
        struct dra_op daemon = { 0 }, agent = { .timeout_ms = 600 };
        api_daemon_claim_named("cd", "user");
        kubelet_prepare(w.claims, &daemon, "driver", "daemon-claim", DAEMON_1);
        world_wait(&daemon, PREPARED);
        agent_claim("driver", "");
        kubelet_prepare(w.claims, &agent, "driver", "agent", AGENT);
        world_wait(&agent, FAILED);
        assert_non_null(strstr(agent.msg, "n0: an IMEX daemon that is not this agent still runs here (claim "
                                          "'driver/daemon-claim'): this agent takes over"));
        api_domain("user", "cd2", DOMAIN_B, false);
        api_domain_mode(DOMAIN_B, "driverManagedAgents");
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_B, "");
        waits_and_says(
                "n0: the IMEX daemon of another ComputeDomain, which was formed with daemon pods, is still "
                "on this node: an IMEX agent comes when");
}

static void seats_of_a_table_that_was_put_back_release_nobody(void **state) {
        (void)state;
        agent_comes();
        agent_says(DOMAIN_A, true, READY_IN);
        w.table_of = "another";
        api_fabric(CLIQUE, 1, "",
                   ",\"conditions\":[{\"type\":\"TableLost\",\"status\":\"True\","
                   "\"message\":\"waiting for node-9\"}],\"domains\":[{\"owner\":{\"uid\":\"" DOMAIN_A
                   "\"},\"seats\":[" SEAT("3", "1") "]}]");
        waits_and_says("yet: waiting for node-9");
}

static void a_fabric_with_too_many_domains_is_the_cause(void **state) {
        (void)state;
        agent_comes();
        api_fabric(CLIQUE, 1, "",
                   ",\"conditions\":[{\"type\":\"DomainsExhausted\",\"status\":\"True\","
                   "\"message\":\"1000 ComputeDomains have nodes\"}],\"domains\":[]");
        waits_and_says("yet: 1000 ComputeDomains have nodes");
}

/* What was granted stays, whatever the fabric says then. */
static void a_pod_keeps_its_channel_when_the_seat_goes(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        agent_comes();
        agent_says(DOMAIN_A, true, READY_IN);
        roster(1, SEAT("3", "1"), "");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        roster(2, "", "");
        api_fabric_event();
        _cleanup_(freep) char *path = cdi_path(w.cdi_root, CD_CDI_KIND_CLAIM, CLAIM_1);
        assert_int_equal(unlink(path), 0);
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        assert_non_null(cdi);
}

/* A10: the agent's Pod is older than what its node has. */
static void a_driver_that_changed_is_in_the_cdi_file_under_the_same_ids_and_the_agent_is_told(void **state) {
        (void)state;
        struct dra_op again = { 0 };
        agent_comes();
        _cleanup_(freep) char *before = world_cdi(AGENT), *edits_before = told("edits");
        _cleanup_(freep) char *name = xasprintf("COMPUTE_DOMAIN_AGENT_EDITS=%.16s\"", edits_before);
        assert_non_null(strstr(before, name));
        assert_non_null(strstr(before, "libnvidia-ml.so.1"));
        world_facts();
        world_turn();
        _cleanup_(freep) char *same = world_cdi(AGENT), *edits_same = told("edits");
        assert_string_equal(same, before);
        assert_string_equal(edits_same, edits_before);
        tree_put(w.driver_root, "usr/lib64/libnvidia-ml.so.590.1", "x");
        snprintf(w.facts.driver_version, sizeof w.facts.driver_version, "590.1");
        world_facts();
        world_turn();
        _cleanup_(freep) char *after = world_cdi(AGENT), *edits_after = told("edits");
        assert_string_not_equal(after, before);
        assert_string_not_equal(edits_after, edits_before);
        _cleanup_(freep) char *now = xasprintf("COMPUTE_DOMAIN_AGENT_EDITS=%.16s\"", edits_after);
        assert_non_null(strstr(after, now));
        assert_non_null(strstr(after, "\"name\":\"" AGENT "-daemon-0\""));
        kubelet_prepare(w.claims, &again, "driver", "agent", AGENT);
        world_wait(&again, PREPARED);
        assert_string_equal(again.devices,
                            "daemon/n0/daemon-0=k8s.compute-domain.nvidia.com/claim=" AGENT "-daemon-0");
}

/* Killed after the CDI file was written and before the agent was told; or while the API server was away. */
static void an_agent_that_was_not_told_is_told_after_a_restart_of_the_plugin(void **state) {
        (void)state;
        agent_comes();
        _cleanup_(freep) char *edits = told("edits");
        _cleanup_(freep) char *path = xasprintf("%s/domains/edits", w.plugin_dir);
        struct err e;
        world_stop(w.claims);
        assert_int_equal(file_replace(path, "0123456789abcdef\n", 17, 0644, &e), 0);
        world_start(BOOT);
        world_turn();
        _cleanup_(freep) char *now = told("edits");
        assert_string_equal(now, edits);
}

/* What the folder holds of an agent, by name. */
static bool is_told(const char *name) {
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s", w.plugin_dir, name);
        return access(path, F_OK) == 0;
}

static void what_an_agent_was_told_goes_with_its_claim(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        agent_comes();
        assert_true(is_told("fabric") && is_told("edits"));
        kubelet_unprepare(w.claims, &op, "driver", "agent", AGENT);
        world_wait(&op, UNPREPARED);
        assert_false(is_told("fabric") || is_told("edits"));
        agent_comes(); /* the next one is told again */
        assert_true(is_told("fabric") && is_told("edits"));
}

static void who_may_not_run_imex_is_no_agent(void **state) {
        (void)state;
        struct dra_op op = { 0 }, named = { 0 };
        agent_claim("user", "");
        kubelet_prepare(w.claims, &op, "user", "agent", AGENT);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "is for the IMEX daemons in the driver's namespaces"));
        agent_claim("driver", ",\"domainID\":\"" DOMAIN_A "\"");
        kubelet_prepare(w.claims, &named, "driver", "agent", AGENT);
        world_wait(&named, FAILED);
        assert_non_null(strstr(named.msg, "unknown field \"domainID\""));
}

static void agent_and_its_domain_are_known_after_a_restart_of_the_plugin(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        agent_comes();
        roster(1, SEAT("3", "1"), "");
        agent_says(DOMAIN_A, true, READY_IN);
        world_stop(w.claims);
        world_start(BOOT);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(agent_is_given_all_folders_and_the_clique_in_a_file),
                T(claim_waits_until_the_agent_is_ready_in_its_domain),
                T(ready_in_another_domain_releases_nobody),
                T(ready_without_a_seat_releases_nobody),
                T(ready_in_a_seat_that_the_fabric_does_not_name_releases_nobody),
                T(a_claim_for_a_seat_that_is_leaving_waits_until_it_is_kept),
                T(who_waits_for_an_agent_or_for_its_leaving_is_told),
                T(an_agent_waits_for_a_daemon_that_is_still_here),
                T(seats_of_a_table_that_was_put_back_release_nobody),
                T(a_fabric_with_too_many_domains_is_the_cause),
                T(a_pod_keeps_its_channel_when_the_seat_goes),
                T(a_driver_that_changed_is_in_the_cdi_file_under_the_same_ids_and_the_agent_is_told),
                T(an_agent_that_was_not_told_is_told_after_a_restart_of_the_plugin),
                T(what_an_agent_was_told_goes_with_its_claim),
                T(who_may_not_run_imex_is_no_agent),
                T(agent_and_its_domain_are_known_after_a_restart_of_the_plugin),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
