/* SPDX-License-Identifier: Apache-2.0 */
/* What check-node judges only for ComputeDomains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "api/states.h"
#include "cd_plugin/cd_check.h"
#include "world/check_items.h"

#define CLUSTER "2df84740-d3cb-b5ce-4e7e-98352b5a71b5"

static struct gates gates;

static const struct imex_mode *mode(const char *imex_mode, const char *isolation) {
        const struct imex_mode *m;
        struct err e;
        gates_init(&gates);
        assert_int_equal(mode_resolve(&gates, imex_mode, isolation, &m, &e), 0);
        return m;
}

static void expect(const char *name, enum check_state state, const char *want) {
        assert_int_equal(list.n, 1);
        assert_string_equal(list.items[0].name, name);
        if (!strstr(list.items[0].text, want) || list.items[0].state != state)
                fail_msg("%s: %d %s", name, list.items[0].state, list.items[0].text);
        assert_int_equal(list.items[0].remedy && *list.items[0].remedy, state == CHECK_PROBLEM);
        list.n = 0;
}

static void the_state_of_the_fabric_is_judged(void **state) {
        struct nvml_gpu gpu = { "NVIDIA GB200", "GPU-a", 0, 3, 0, 2, CLUSTER };
        struct nvml_facts f = { "580.95.05", &gpu, 1 };

        cd_check_fabric(&list, &f, mode(NULL, NULL), true);
        expect("fabric", CHECK_OK, CLUSTER ".2");
        gpu.fabric_state = 2;
        cd_check_fabric(&list, &f, mode(NULL, NULL), true);
        expect("fabric", CHECK_PROBLEM, "GPU-a");
        gpu.fabric_state = 3;
        gpu.fabric_status = 999;
        cd_check_fabric(&list, &f, mode(NULL, NULL), true);
        expect("fabric", CHECK_PROBLEM, "GPU-a");
        f.n_gpus = 0;
        cd_check_fabric(&list, &f, mode(NULL, NULL), true);
        expect("fabric", CHECK_PROBLEM, "NVML reports no GPU");
        f.n_gpus = 1;
        gpu = (struct nvml_gpu){ "NVIDIA H100", "GPU-a", 3, 0, 0, 0, "" };
        cd_check_fabric(&list, &f, mode(NULL, NULL), true);
        expect("fabric", CHECK_OK, "no multi-node NVLink");
        /* No channel can be assigned there. */
        cd_check_fabric(&list, &f, mode(NULL, "channel"), true);
        expect("fabric", CHECK_PROBLEM, "");
}

static void the_driver_needs_imex_channels(void **state) {
        cd_check_channels(&list, STR("Character devices:\n195 nvidia\n234 nvidia-caps-imex-channels\n"),
                          2048);
        expect("imex-channels", CHECK_OK, "2048 IMEX channels (major 234)");
        cd_check_channels(&list, STR("Character devices:\n195 nvidia\n"), 2048);
        expect("imex-channels", CHECK_PROBLEM, "nvidia-caps-imex-channels");
}

static void parameters(const struct imex_mode *m, const char *text, enum check_state state,
                       const char *want) {
        cd_check_parameters(&list, m, str_from(text));
        expect("imex-parameters", state, want);
}

static void parameters_of_the_driver_must_give_enough_channels(void **state) {
        const struct imex_mode *shared = mode("driverManaged", NULL), *own = mode("driverManaged", "channel");

        parameters(shared, "ResmanDebugLevel: 4294967295\nImexChannelCount: 2048\nCreateImexChannel0: 1\n",
                   CHECK_OK, "is 2048, and NVreg_CreateImexChannel0 is 1");
        parameters(shared, "ImexChannelCount: 1\n", CHECK_OK, "is 1");
        parameters(shared, "ImexChannelCount: 0\n", CHECK_PROBLEM, "is 0");
        parameters(own, "ImexChannelCount: 1\nCreateImexChannel0: 0\n", CHECK_PROBLEM, "is 1");
        parameters(own, "ImexChannelCount: 2048\n", CHECK_OK, "is 2048");
        parameters(shared, "", CHECK_SKIPPED, "no ImexChannelCount");
        parameters(shared, "ImexChannelCount: many\nXImexChannelCount: 3\n", CHECK_SKIPPED,
                   "no ImexChannelCount");
}

/* failure: /proc/devices cannot be read -> the list still has both items about channels */
static void both_items_about_channels_are_skipped_without_proc_devices(void **state) {
        const struct node_flags flags = { .alt_proc_devices = "/nonexistent/devices",
                                          .root_here = "/nonexistent" };
        cd_check_read_channels(&list, &(struct check_node_options){ .flags = &flags },
                               mode("driverManaged", NULL));
        assert_int_equal(list.n, 2);
        assert_string_equal(list.items[0].name, "imex-parameters");
        assert_int_equal(list.items[0].state, CHECK_SKIPPED);
        assert_non_null(strstr(list.items[0].text, "/nonexistent/devices"));
        list.items[0] = list.items[1];
        list.n = 1;
        expect("imex-channels", CHECK_SKIPPED, "/nonexistent/devices");
}

static void host(const struct imex_mode *m, enum host_state state, enum imex_status imex,
                 const char *reason) {
        struct host_imex_status s = { .state = state };
        s.imex = imex;
        snprintf(s.reason, sizeof s.reason, "%s", reason);
        cd_check_host(&list, m, &s);
}

static void imex_of_the_host_is_in_the_way_of_the_daemon(void **state) {
        const struct imex_mode *m = mode(NULL, NULL);

        host(m, HOST_UNKNOWN, IMEX_STATE_NONE, "the host has no command socket");
        expect("host-imex", CHECK_OK, "no command socket");
        host(m, HOST_DOWN, IMEX_STATE_UNAVAILABLE, "");
        expect("host-imex", CHECK_OK, "in the way");
        host(m, HOST_UP, IMEX_STATE_READY, "");
        expect("host-imex", CHECK_PROBLEM, "(READY)");
        host(m, HOST_DOWN, IMEX_STATE_NONE, "it did not answer");
        expect("host-imex", CHECK_SKIPPED, "it did not answer");
}

static void hosts_that_run_imex_must_be_ready(void **state) {
        const struct imex_mode *m = mode("hostManaged", NULL);

        host(m, HOST_UP, IMEX_STATE_READY, "");
        expect("host-imex", CHECK_OK, "READY");
        host(m, HOST_DEGRADED, IMEX_STATE_READY, "n2 is missing");
        expect("host-imex", CHECK_PROBLEM, "n2 is missing");
        host(m, HOST_DOWN, IMEX_STATE_UNAVAILABLE, "it is UNAVAILABLE");
        expect("host-imex", CHECK_PROBLEM, "UNAVAILABLE");
        host(m, HOST_UNKNOWN, IMEX_STATE_NONE, "");
        expect("host-imex", CHECK_PROBLEM, "does not answer");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_state_of_the_fabric_is_judged, begin, end),
                cmocka_unit_test_setup_teardown(the_driver_needs_imex_channels, begin, end),
                cmocka_unit_test_setup_teardown(both_items_about_channels_are_skipped_without_proc_devices,
                                                begin, end),
                cmocka_unit_test_setup_teardown(parameters_of_the_driver_must_give_enough_channels, begin,
                                                end),
                cmocka_unit_test_setup_teardown(imex_of_the_host_is_in_the_way_of_the_daemon, begin, end),
                cmocka_unit_test_setup_teardown(hosts_that_run_imex_must_be_ready, begin, end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
