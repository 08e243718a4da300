/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "controller/config.h"

/* Unsets the variables that the chart may set, and sets the required ones. */
static void clear_env(void) {
        static const char *const names[] = { "POD_NAME",
                                             "NAMESPACE",
                                             "IMAGE_NAME",
                                             "LOG_VERBOSITY_CD_DAEMON",
                                             "MAX_NODES_PER_IMEX_DOMAIN",
                                             "CD_DAEMON_IMAGE_PULL_SECRET_NAMES",
                                             "CD_DAEMON_RESOURCES",
                                             "CD_DAEMON_METADATA",
                                             "CD_DAEMON_IMAGE_PULL_POLICY",
                                             "LOGGING_FORMAT",
                                             "ADDITIONAL_NAMESPACES",
                                             "IMEX_MODE",
                                             "IMEX_CONFIG",
                                             "IMEX_ISOLATION",
                                             "FEATURE_GATES",
                                             "LEADER_ELECTION_RENEW_DEADLINE" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                unsetenv(names[i]);
        setenv("POD_NAME", "pod", 1);
        setenv("IMAGE_NAME", "image:1", 1);
        setenv("LOG_VERBOSITY_CD_DAEMON", "4", 1);
}

static int load(struct config *c, struct err *e) {
        char name[] = "compute-domain-controller", *argv[] = { name, NULL };
        return config_load(c, 1, argv, e);
}

static void unset_variables_have_defaults(void **state) {
        struct config c;
        struct err e;
        clear_env();
        if (load(&c, &e) < 0)
                fail_msg("%s", e.msg);
        assert_string_equal(c.ns, "default");
        assert_int_equal(c.max_nodes, 18);
        assert_int_equal(c.lease_duration_ms, 15000);
        assert_string_equal(c.lease_name, "nvidia-compute-domain-controller");
        assert_string_equal(c.daemon.log_verbosity, "4");
        assert_int_equal(c.n_namespaces, 1);
        assert_true(c.apply_crds);
        config_done(&c);
}

static void lists_are_split_and_deduplicated(void **state) {
        struct config c;
        struct err e;
        clear_env();
        setenv("NAMESPACE", "driver", 1);
        setenv("ADDITIONAL_NAMESPACES", "old, driver,,older,old", 1);
        setenv("CD_DAEMON_IMAGE_PULL_SECRET_NAMES", "a b,c", 1);
        setenv("CD_DAEMON_RESOURCES", "{\"requests\":{\"cpu\":\"10m\"}}", 1);
        if (load(&c, &e) < 0)
                fail_msg("%s", e.msg);
        assert_int_equal(c.n_namespaces, 3);
        assert_string_equal(c.namespaces[0], "driver");
        assert_string_equal(c.namespaces[1], "old");
        assert_string_equal(c.namespaces[2], "older");
        assert_int_equal(c.daemon.n_pull_secrets, 3);
        assert_true(str_eq(c.daemon.requests, STR("{\"cpu\":\"10m\"}")));
        assert_int_equal(c.daemon.limits.n, 0);
        config_done(&c);
}

static void the_daemon_settings_of_the_chart_are_loaded(void **state) {
        struct config c;
        struct err e;
        clear_env();
        setenv("CD_DAEMON_METADATA",
               "{\"labels\":{\"team\":\"hpc\",\"example.com/app\":\"x\"},\"annotations\":"
               "{\"note\":\"y\"}}",
               1);
        setenv("CD_DAEMON_IMAGE_PULL_POLICY", "Never", 1);
        setenv("LOGGING_FORMAT", "json", 1);
        if (load(&c, &e) < 0)
                fail_msg("%s", e.msg);
        assert_string_equal(jd_pair_get(c.daemon.labels, c.daemon.n_labels, "team"), "hpc");
        assert_string_equal(jd_pair_get(c.daemon.annotations, c.daemon.n_annotations, "note"), "y");
        assert_string_equal(c.daemon.pull_policy, "Never");
        assert_true(c.daemon.json_log);
        config_done(&c);
}

static void the_mode_comes_from_gates_and_settings(void **state) {
        static const struct {
                const char *gates, *mode, *want;
        } cases[] = {
                { NULL, NULL, MODE_DRIVER_MANAGED },
                { "HostManagedIMEX=true", NULL, MODE_HOST_MANAGED },
                { "HostManagedIMEX=true,", "driverManaged", MODE_HOST_MANAGED }, /* as the chart sends it */
                { NULL, "hostManaged", MODE_HOST_MANAGED },
                { "HostManagedIMEXDaemon=true", "hostManaged", MODE_HOST_MANAGED },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct config c;
                struct err e;
                clear_env();
                if (cases[i].gates)
                        setenv("FEATURE_GATES", cases[i].gates, 1);
                if (cases[i].mode)
                        setenv("IMEX_MODE", cases[i].mode, 1);
                if (load(&c, &e) < 0)
                        fail_msg("%s", e.msg);
                assert_string_equal(c.mode->name, cases[i].want);
                /* The gates that are logged and passed to the daemons are the effective ones. */
                assert_int_equal(strstr(c.daemon.gates, "IMEXDaemonsWithDNSNames=true") != NULL,
                                 mode_runs_daemons(c.mode));
                config_done(&c);
        }
}

static void channel_isolation_requires_a_plugin_selector(void **state) {
        struct config c;
        struct err e;
        clear_env();
        setenv("IMEX_ISOLATION", "channel", 1);
        assert_int_equal(load(&c, &e), -1); /* the plugins report which channels nodes hold */
        assert_non_null(strstr(e.msg, "requires --kubelet-plugin-selector"));
        config_done(&c);
        setenv("KUBELET_PLUGIN_SELECTOR", "app=plugin", 1);
        if (load(&c, &e) < 0)
                fail_msg("%s", e.msg);
        assert_string_equal(c.mode->name, MODE_DRIVER_CHANNEL);
        config_done(&c);
        unsetenv("IMEX_ISOLATION");
        unsetenv("KUBELET_PLUGIN_SELECTOR");
}

static void a_fresh_pod_per_domain_requires_domain_isolation(void **state) {
        struct config c;
        struct err e;
        clear_env();
        setenv("FRESH_POD_PER_DOMAIN", "true", 1);
        assert_int_equal(load(&c, &e), 0);
        assert_true(c.fresh_pods);
        config_done(&c);
        setenv("IMEX_ISOLATION", "channel", 1);
        setenv("KUBELET_PLUGIN_SELECTOR", "app=plugin", 1);
        assert_int_equal(load(&c, &e), -1);
        assert_non_null(strstr(e.msg, "requires imex.mode=driverManaged and imex.isolation=domain"));
        config_done(&c);
        unsetenv("FRESH_POD_PER_DOMAIN");
        unsetenv("IMEX_ISOLATION");
        unsetenv("KUBELET_PLUGIN_SELECTOR");
}

static void automatic_computedomains_require_channel_isolation(void **state) {
        struct config c;
        struct err e;
        clear_env();
        setenv("AUTO_DOMAINS", "true", 1);
        assert_int_equal(load(&c, &e), -1);
        assert_non_null(strstr(e.msg, "--auto-domains (AUTO_DOMAINS) requires imex.isolation=channel"));
        config_done(&c);
        setenv("IMEX_ISOLATION", "channel", 1);
        setenv("KUBELET_PLUGIN_SELECTOR", "app=plugin", 1);
        assert_int_equal(load(&c, &e), 0);
        assert_true(c.auto_domains);
        config_done(&c);
        unsetenv("AUTO_DOMAINS");
        unsetenv("IMEX_ISOLATION");
        unsetenv("KUBELET_PLUGIN_SELECTOR");
}

static void invalid_settings_are_rejected_with_a_message(void **state) {
        static const struct {
                const char *name, *value, *want;
        } cases[] = {
                { "POD_NAME", NULL, "POD_NAME" },
                { "IMAGE_NAME", NULL, "IMAGE_NAME" },
                { "LOG_VERBOSITY_CD_DAEMON", "loud", "LOG_VERBOSITY_CD_DAEMON" },
                { "IMEX_MODE", "somebody", "neither driverManaged nor hostManaged" },
                { "IMEX_ISOLATION", "channel", "requires --kubelet-plugin-selector" },
                { "IMEX_ISOLATION", "wall", "neither domain nor channel" },
                { "FEATURE_GATES", "Warp=true", "unrecognized feature gate: Warp" },
                { "CD_DAEMON_RESOURCES", "{\"requests\":", "not JSON" },
                { "CD_DAEMON_RESOURCES", "{\"cpu\":1}", "unknown field \"cpu\"" },
                { "IMEX_CONFIG", "{\"IMEX_NODE_CONFIG_FILE\":\"/tmp/x\"}",
                  "IMEX_NODE_CONFIG_FILE belongs to the driver" },
                { "CD_DAEMON_METADATA", "{\"labels\":{\"app\":\"mine\"}}",
                  "label \"app\" is reserved for the driver" },
                { "CD_DAEMON_METADATA", "{\"labels\":{\"resource.nvidia.com/computeDomain\":\"x\"}}",
                  "is reserved for the driver" },
                { "CD_DAEMON_METADATA", "{\"labels\":{\"app.kubernetes.io/component\":\"x\"}}",
                  "is reserved for the driver" },
                { "CD_DAEMON_METADATA",
                  "{\"annotations\":{\"cluster-autoscaler.kubernetes.io/enable-ds-eviction\":\"true\"}}",
                  "is reserved for the driver" },
                { "CD_DAEMON_METADATA", "{\"annotations\":{\"imex.resource.nvidia.com/ready\":\"true\"}}",
                  "annotation \"imex.resource.nvidia.com/ready\" is reserved for the driver" },
                { "CD_DAEMON_METADATA", "{\"label\":{}}", "unknown field \"label\"" },
                { "CD_DAEMON_METADATA", "{\"labels\":{\"n\":1}}", "labels.n" },
                { "CD_DAEMON_IMAGE_PULL_POLICY", "Sometimes", "not Always, IfNotPresent or Never" },
                { "MAX_NODES_PER_IMEX_DOMAIN", "0", "not between 1 and 1024" },
                { "LEADER_ELECTION_RENEW_DEADLINE", "20s", "renew deadline < lease duration" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct config c;
                struct err e = { 0 };
                clear_env();
                if (cases[i].value)
                        setenv(cases[i].name, cases[i].value, 1);
                else
                        unsetenv(cases[i].name);
                if (load(&c, &e) == 0 || !strstr(e.msg, cases[i].want))
                        fail_msg("%s=%s: '%s'", cases[i].name, cases[i].value ? cases[i].value : "(unset)",
                                 e.msg);
                config_done(&c);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(unset_variables_have_defaults),
                cmocka_unit_test(lists_are_split_and_deduplicated),
                cmocka_unit_test(the_daemon_settings_of_the_chart_are_loaded),
                cmocka_unit_test(the_mode_comes_from_gates_and_settings),
                cmocka_unit_test(channel_isolation_requires_a_plugin_selector),
                cmocka_unit_test(a_fresh_pod_per_domain_requires_domain_isolation),
                cmocka_unit_test(automatic_computedomains_require_channel_isolation),
                cmocka_unit_test(invalid_settings_are_rejected_with_a_message),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
