/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "cd_plugin/cd_metrics.h"

/* A rate over a series misses the first event if the series appears with that event. */
/* failure: no request has come yet -> each metric already exists with the value 0 [programs] */
static void each_series_exists_before_the_first_request(void **state) {
        static const char *const series[] = {
                "nvidia_dra_requests_total{driver=\"compute-domain.nvidia.com\",operation=\"prepare\"} 0\n",
                "nvidia_dra_requests_total{driver=\"compute-domain.nvidia.com\",operation=\"unprepare\"} 0\n",
                "nvidia_dra_requests_inflight{driver=\"compute-domain.nvidia.com\",operation=\"prepare\"} "
                "0\n",
                "nvidia_dra_request_duration_seconds_count{driver=\"compute-domain.nvidia.com\",operation="
                "\"prepare\"} 0\n",
                "nvidia_dra_request_duration_seconds_bucket{driver=\"compute-domain.nvidia.com\",operation="
                "\"unprepare\",le=\"+Inf\"} 0\n",
                "nvidia_dra_node_prepare_errors_total{driver=\"compute-domain.nvidia.com\",error_type="
                "\"prepare_devices\"} 0\n",
                "nvidia_dra_node_unprepare_errors_total{driver=\"compute-domain.nvidia.com\",error_type="
                "\"lock_acquire\"} 0\n",
                "nvidia_dra_prepare_attempt_seconds_count 0\n",
        };
        struct cd_metrics m;
        struct buf out = BUF_INIT(1 << 20);
        cd_metrics_init(&m, "n0");
        metrics_render(m.node.registry, &out);
        for (size_t i = 0; i < ARRAY_LEN(series); i++) {
                if (!strstr(buf_str(&out), series[i]))
                        fail_msg("%s is not in\n%s", series[i], buf_str(&out));
        }
        buf_done(&out);
        node_metrics_done(&m.node);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(each_series_exists_before_the_first_request) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
