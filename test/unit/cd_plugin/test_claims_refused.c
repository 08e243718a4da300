/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input is refused at once, without a record or a side effect. */
#include "world/cd_node.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

/* failure: a claim's configuration has an unknown field -> the claim is refused with the field's name
 * [tenants] */
static void an_unknown_field_is_refused(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"unexpected\":1");
        refused_at_once("c1", CLAIM_1, "strict decoding error: unknown field \"unexpected\"");
}

/* failure: a claim's configuration has the wrong kind -> the claim is refused [tenants] */
static void a_wrong_kind_is_refused(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-0", DAEMON, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "channel-0");
        api_claim("user", "c1", CLAIM_1, "channel-0", "GpuConfig", DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "GpuConfig");
}

/* failure: domainID is empty, not a UID, or a path -> the claim is refused [tenants] */
static void bad_domain_ids_are_refused(void **state) {
        (void)state;
        static const char *const bad[] = { "", "../../etc", "x", DOMAIN_A "/..",
                                           "aaaaaaaa-0000-4000-8000-00000000000" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, bad[i], "");
                refused_at_once("c1", CLAIM_1, "domainID");
        }
}

static void an_unknown_allocation_mode_is_refused(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"Some\"");
        refused_at_once("c1", CLAIM_1, "allocationMode");
}

/* failure: a claim names a ComputeDomain of another namespace -> the claim is refused [tenants] */
static void a_domain_of_another_namespace_is_refused(void **state) {
        (void)state;
        api_domain("other", "theirs", DOMAIN_B, false);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_B, "");
        refused_at_once("c1", CLAIM_1, "in namespace 'user'");
}

/* The claim is for the first one: its UID counts, not its name. */
/* failure: a ComputeDomain is recreated under its name -> a claim of the old one is refused */
static void a_claim_of_a_recreated_domain_is_refused(void **state) {
        (void)state;
        api_remove_domain(DOMAIN_A);
        api_domain("user", "cd", DOMAIN_B, false);
        refused_at_once("c1", CLAIM_1, "there is no ComputeDomain " DOMAIN_A);
}

static void a_domain_that_is_being_deleted_is_refused(void **state) {
        (void)state;
        api_domain("user", "cd", DOMAIN_A, true);
        refused_at_once("c1", CLAIM_1, "ComputeDomain 'user/cd' is being deleted");
}

static void a_missing_or_replaced_claim_is_refused(void **state) {
        (void)state;
        api_remove_claim("user", "c1");
        refused_at_once("c1", CLAIM_1, "not found");
        api_claim("user", "c1", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "replaced");
}

static void a_claim_without_an_allocation_is_refused(void **state) {
        (void)state;
        api_claim_json("user", "c1",
                       "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                       "\",\"resourceVersion\":\"1\"},\"status\":{}}");
        refused_at_once("c1", CLAIM_1, "not allocated");
}

static void a_device_of_another_node_or_an_unknown_device_is_refused(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-7", CHANNEL, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "channel-7");
}

static void a_daemon_claim_in_a_users_namespace_is_refused(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "daemon-0", DAEMON, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "daemons in the driver's namespaces ('driver') only");
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        assert_int_equal(access(dir, F_OK), -1);
}

/* failure: the capability file of fabric-imex-mgmt is garbage -> Prepare fails and names the file [host] */
static void a_garbage_capability_file_is_named(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct err e;
        _cleanup_(freep) char *path = file_join(w.driver_root, "capabilities/fabric-imex-mgmt");
        assert_int_equal(file_replace(path, "garbage", 7, 0644, &e), 0);
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, CD_DAEMON_DOMAIN, "");
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, "DeviceFileMinor"));
        assert_null(world_cdi(DAEMON_1));
}

/* An earlier installation was in another namespace, and its domains still exist. */
/* failure: daemons of an earlier installation run in an additional namespace -> their claims are prepared
 * there only [go] */
static void a_daemon_claim_in_an_additional_namespace_is_prepared(void **state) {
        struct dra_op op = { 0 };
        world_stop(w.claims);
        w.more_ns = "older, old";
        world_start(BOOT);
        api_claim("old", "d", DAEMON_1, "daemon-0", DAEMON, DOMAIN_A, "");
        kubelet_prepare(w.claims, &op, "old", "d", DAEMON_1);
        world_wait(&op, PREPARED);
        api_claim("user", "c1", CLAIM_1, "daemon-0", DAEMON, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "daemons in the driver's namespaces ('driver', older, old) only");
}

/* Two configurations, one good and one bad, in both orders: neither is applied. */
/* failure: one of two configurations of a claim is bad -> neither is applied [tenants] */
static void one_bad_configuration_refuses_the_claim_in_any_order(void **state) {
        (void)state;
        static const char good[] = "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"" DAEMON
                                   "\",\"domainID\":\"" DOMAIN_A "\"}";
        static const char bad[] = "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"" CHANNEL
                                  "\",\"domainID\":\"x\"}";
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        for (int order = 0; order < 2; order++) {
                struct dra_op op = { 0 };
                _cleanup_(freep) char *json = xasprintf(
                        "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"driver\",\"uid\":\"" CLAIM_1
                        "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":["
                        "{\"request\":\"%s\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\","
                        "\"device\":\"%s\"},"
                        "{\"request\":\"%s\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\","
                        "\"device\":\"%s\"}],\"config\":["
                        "{\"source\":\"FromClaim\",\"requests\":[\"d\"],\"opaque\":{\"driver\":\"compute-"
                        "domain.nvidia.com\","
                        "\"parameters\":%s}},"
                        "{\"source\":\"FromClaim\",\"requests\":[\"c\"],\"opaque\":{\"driver\":\"compute-"
                        "domain.nvidia.com\","
                        "\"parameters\":%s}}]}}}}",
                        order ? "d" : "c", order ? "daemon-0" : "channel-0", order ? "c" : "d",
                        order ? "channel-0" : "daemon-0", good, bad);
                api_claim_json("driver", "c1", json);
                kubelet_prepare(w.claims, &op, "driver", "c1", CLAIM_1);
                world_turn();
                assert_int_equal(op.answer, FAILED);
                assert_int_equal(access(dir, F_OK), -1);
                assert_false(world_recorded(CLAIM_1));
        }
}

/* Runs `refuse`; returns the log of that time, at verbosity 0. */
static char *log_of(void (*refuse)(void)) {
        static char said[16384];
        int ends[2], own = dup(STDERR_FILENO);
        log_setup(LOG_TEXT, 0);
        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
        refuse();
        assert_int_equal(dup2(own, STDERR_FILENO), STDERR_FILENO);
        ssize_t n = read(ends[0], said, sizeof said - 1);
        said[n > 0 ? n : 0] = '\0';
        close(ends[0]);
        close(ends[1]);
        close(own);
        return said;
}

static void refuse_for_its_configuration(void) {
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"unexpected\":1");
        refused_at_once("c1", CLAIM_1, "unknown field");
}

static void refuse_for_its_domain(void) {
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_B, "");
        refused_at_once("c1", CLAIM_1, "there is no ComputeDomain");
}

static void fail_for_a_while(void) {
        struct dra_op op = { .timeout_ms = 100 };
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        prepare(&op, "c1", CLAIM_1); /* no daemon is ready */
        world_wait(&op, FAILED);
}

/* failure: a claim is refused permanently -> the log has the reason at default verbosity */
static void a_permanent_refusal_is_in_the_log(void **state) {
#define OF_CLAIM " claim=\"user/c1\" uid=\"" CLAIM_1 "\" err=\""
        const char *log = log_of(refuse_for_its_configuration);
        assert_non_null(strstr(log, "\"Permanent error: cannot prepare claim\"" OF_CLAIM));
        assert_non_null(strstr(log, "unknown field \\\"unexpected\\\""));
        log = log_of(refuse_for_its_domain);
        assert_non_null(strstr(log, "\"Permanent error: cannot prepare claim\"" OF_CLAIM));
        assert_non_null(strstr(log, "there is no ComputeDomain " DOMAIN_B));
        log = log_of(fail_for_a_while);
        assert_non_null(strstr(log, "\"cannot prepare claim\"" OF_CLAIM));
        assert_null(strstr(log, "Permanent"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(an_unknown_field_is_refused),
                T(a_wrong_kind_is_refused),
                T(bad_domain_ids_are_refused),
                T(an_unknown_allocation_mode_is_refused),
                T(a_domain_of_another_namespace_is_refused),
                T(a_claim_of_a_recreated_domain_is_refused),
                T(a_domain_that_is_being_deleted_is_refused),
                T(a_missing_or_replaced_claim_is_refused),
                T(a_claim_without_an_allocation_is_refused),
                T(a_device_of_another_node_or_an_unknown_device_is_refused),
                T(a_daemon_claim_in_a_users_namespace_is_refused),
                T(a_daemon_claim_in_an_additional_namespace_is_prepared),
                T(a_garbage_capability_file_is_named),
                T(one_bad_configuration_refuses_the_claim_in_any_order),
                T(a_permanent_refusal_is_in_the_log),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
