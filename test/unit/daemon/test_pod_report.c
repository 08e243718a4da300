/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "daemon/pod_report.h"

static const struct imex_report ready = { .status = "READY",
                                          .reason = "",
                                          .ready = true,
                                          .index = 3,
                                          .node_id = 3,
                                          .peers_connected = 2,
                                          .peers_known = 3 };
static const struct imex_report starting = {
        .status = "STARTING", .reason = "nvidia-imex is starting", .index = 3, .node_id = -1
};

static void test_render(void **state) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);

        pod_report_render("uuid.1", &ready, &b);
        assert_string_equal(
                buf_str(&b),
                "{\"metadata\":{\"labels\":{\"resource.nvidia.com/"
                "computeDomain.cliqueID\":\"uuid.1\"},\"annotations\":{"
                "\"imex.resource.nvidia.com/state\":\"READY\",\"imex.resource.nvidia.com/reason\":null,"
                "\"imex.resource.nvidia.com/ready\":\"true\",\"imex.resource.nvidia.com/index\":\"3\","
                "\"imex.resource.nvidia.com/node-id\":\"3\",\"imex.resource.nvidia.com/peers\":\"2/"
                "3\",\"imex.resource.nvidia.com/awaited\":"
                "null}}}");
        buf_clear(&b);
        pod_report_render(
                "",
                &(struct imex_report){
                        .status = "NO_FABRIC", .reason = "", .ready = true, .index = -1, .node_id = -1 },
                &b);
        assert_non_null(strstr(buf_str(&b), "cliqueID\":\"\""));
        assert_non_null(strstr(buf_str(&b), "node-id\":null"));
        assert_non_null(strstr(buf_str(&b), "/index\":\"-1\""));
        buf_clear(&b);
        pod_report_render(
                "uuid.1",
                &(struct imex_report){ .status = "WAITING_FOR_RECOVERY", .reason = "r", .awaited = "n1, n2" },
                &b);
        assert_non_null(strstr(buf_str(&b), "/awaited\":\"n1, n2\""));
}

static void test_patience(void **state) {
        struct imex_report r = ready;

        /* The first word waits for readiness, readiness for nothing. */
        assert_in_range(pod_report_patience(NULL, &starting), 500, 2000);
        assert_int_equal(pod_report_patience(NULL, &ready), 0);
        assert_int_equal(pod_report_patience(&starting, &ready), 0);
        assert_int_equal(pod_report_patience(&ready, &starting), 0);
        /* Another index means another slot for the controller to believe in. */
        r.index = 4;
        assert_int_equal(pod_report_patience(&ready, &r), 0);
        r = starting;
        r.status = "BACKOFF";
        assert_int_equal(pod_report_patience(&starting, &r), 0);
        /* The way up is of little interest. */
        r.status = "WAITING_FOR_RECOVERY";
        assert_in_range(pod_report_patience(&starting, &r), 1000, 5000);
        /* Peers trickle in. */
        r = ready;
        r.peers_known = 5;
        assert_in_range(pod_report_patience(&ready, &r), 10000, 30000);
        r.peers_connected = 5;
        assert_in_range(pod_report_patience(&ready, &r), 1000, 5000);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_render), cmocka_unit_test(test_patience) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
