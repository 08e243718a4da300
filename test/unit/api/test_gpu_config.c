/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "api/gpu_config.h"

static struct err e;
static struct gates none, all;

#define CONFIG(kind, rest) "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"" kind "\"" rest "}"
#define SHARING(rest) CONFIG("GpuConfig", ",\"sharing\":{" rest "}")

static int setup(void **state) {
        (void)state;
        gates_init(&none);
        all = none;
        all.on[GATE_TIME_SLICING_SETTINGS] = all.on[GATE_MPS_SUPPORT] = true;
        return 0;
}

static void errors_use_the_words_of_the_go_driver(void **state) {
        (void)state;
        const struct {
                const char *json;
                const struct gates *gates;
                const char *msg;
        } cases[] = {
                { SHARING("\"strategy\":\"TimeSlicing\""), &none,
                  "\"TimeSlicing\" is selected as the GPU sharing strategy, but the \"TimeSlicingSettings\" "
                  "feature gate is "
                  "not enabled" },
                { SHARING("\"strategy\":\"MPS\",\"mpsConfig\":{}"), &none,
                  "\"MPS\" is selected as the GPU sharing strategy, but the \"MPSSupport\" feature gate is "
                  "not enabled" },
                { SHARING("\"strategy\":\"Fabric\""), &all,
                  "unknown GPU sharing strategy: Fabric, supported GPU sharing strategies: TimeSlicing, "
                  "MPS" },
                { SHARING("\"strategy\":\"TimeSlicing\",\"timeSlicingConfig\":{\"interval\":\"Tiny\"}"), &all,
                  "unknown time-slice interval: Tiny, supported time-slice intervals: Default, Short, "
                  "Medium, Long" },
                { SHARING("\"strategy\":\"MPS\",\"mpsConfig\":{\"defaultActiveThreadPercentage\":-1}"), &all,
                  "active thread percentage must not be negative" },
                { SHARING("\"strategy\":\"MPS\",\"mpsConfig\":{\"defaultActiveThreadPercentage\":101}"), &all,
                  "active thread percentage must not be greater than 100" },
                { SHARING("\"strategy\":\"TimeSlicing\",\"mpsConfig\":{}"), &all,
                  "cannot use MpsConfig with the 'TimeSlicing' strategy" },
                { SHARING("\"strategy\":\"MPS\",\"timeSlicingConfig\":{}"), &all,
                  "cannot use TimeSlicingConfig with the 'MPS' strategy" },
                { CONFIG("GpuConfig", ",\"bogus\":1"), &all,
                  "strict decoding error: unknown field \"bogus\"" },
                { CONFIG("GpuConfig", ",\"sharing\":{\"strategy\":\"MPS\",\"bogus\":1}"), &all,
                  "strict decoding error: unknown field \"sharing.bogus\"" },
                { CONFIG("MigDeviceConfig",
                         ",\"sharing\":{\"strategy\":\"TimeSlicing\",\"timeSlicingConfig\":{}}"),
                  &all, "strict decoding error: unknown field \"sharing.timeSlicingConfig\"" },
                { CONFIG("VfioDeviceConfig", ",\"iommu\":{\"backendPolicy\":\"Best\"}"), &all,
                  "unknown IOMMU backend policy: Best" },
                { CONFIG("ComputeDomainChannelConfig", ""), &all,
                  "kind \"ComputeDomainChannelConfig\" is not one of the driver gpu.nvidia.com: want "
                  "GpuConfig, "
                  "MigDeviceConfig or VfioDeviceConfig" },
                { "{\"apiVersion\":\"resource.nvidia.com/v1\",\"kind\":\"GpuConfig\"}", &all,
                  "apiVersion \"resource.nvidia.com/v1\" is not resource.nvidia.com/v1beta1" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct gpu_config c;
                assert_int_equal(gpu_config_decode(str_from(cases[i].json), cases[i].gates, &c, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
                assert_string_equal(e.msg, cases[i].msg);
        }
}

static void missing_settings_have_their_defaults(void **state) {
        (void)state;
        const struct {
                const char *json;
                struct gpu_config want;
        } cases[] = {
                { CONFIG("GpuConfig", ""), { GPU_CONFIG_GPU, GPU_EXCLUSIVE, GPU_INTERVAL_DEFAULT } },
                { CONFIG("GpuConfig", ",\"sharing\":null"),
                  { GPU_CONFIG_GPU, GPU_EXCLUSIVE, GPU_INTERVAL_DEFAULT } },
                { CONFIG("MigDeviceConfig", ""), { GPU_CONFIG_MIG, GPU_EXCLUSIVE, GPU_INTERVAL_DEFAULT } },
                { CONFIG("VfioDeviceConfig", ""), { GPU_CONFIG_VFIO, GPU_EXCLUSIVE, GPU_INTERVAL_DEFAULT } },
                { SHARING("\"strategy\":\"TimeSlicing\""),
                  { GPU_CONFIG_GPU, GPU_TIME_SLICING, GPU_INTERVAL_DEFAULT } },
                /* the Go driver's plugin ends at this input */
                { SHARING("\"strategy\":\"TimeSlicing\",\"timeSlicingConfig\":{}"),
                  { GPU_CONFIG_GPU, GPU_TIME_SLICING, GPU_INTERVAL_DEFAULT } },
                { SHARING("\"strategy\":\"TimeSlicing\",\"timeSlicingConfig\":{\"interval\":\"Long\"}"),
                  { GPU_CONFIG_GPU, GPU_TIME_SLICING, GPU_INTERVAL_LONG } },
                { SHARING("\"strategy\":\"MPS\""), { GPU_CONFIG_GPU, GPU_MPS, GPU_INTERVAL_DEFAULT } },
                { CONFIG("MigDeviceConfig", ",\"sharing\":{\"strategy\":\"TimeSlicing\"}"),
                  { GPU_CONFIG_MIG, GPU_TIME_SLICING, GPU_INTERVAL_DEFAULT } },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct gpu_config c;
                if (gpu_config_decode(str_from(cases[i].json), &all, &c, &e) < 0)
                        fail_msg("%s: %s", cases[i].json, e.msg);
                assert_int_equal(c.kind, cases[i].want.kind);
                assert_int_equal(c.sharing, cases[i].want.sharing);
                assert_int_equal(c.interval, cases[i].want.interval);
        }
}

/* ---- choice of the configuration ---- */

#define SLICED(interval)                                                                                     \
        SHARING("\"strategy\":\"TimeSlicing\",\"timeSlicingConfig\":{\"interval\":\"" interval "\"}")

static struct claim_config from(const char *source, const char **requests, const char *json) {
        return (struct claim_config){ .source = source,
                                      .requests = requests,
                                      .n_requests = requests ? 1 : 0,
                                      .driver = "gpu.nvidia.com",
                                      .parameters = str_from(json) };
}

static const struct claim_result gpu = { "gpu", "gpu.nvidia.com", "n0", "gpu-0", false },
                                 sub = { "gpu/big", "gpu.nvidia.com", "n0", "gpu-0", false },
                                 mig = {
                                         "gpu", "gpu.nvidia.com", "n0", "gpu-0-mig-1g10gb-19-0", false
                                 };
static const char *named_gpu[] = { "gpu", NULL }, *named_other[] = { "other", NULL };

static int choose(struct claim_config *configs, size_t n, const struct claim_result *r,
                  enum gpu_config_kind kind, struct gpu_config_choice *ret) {
        struct claim c = { .configs = configs, .n_configs = n };
        return gpu_config_for(&c, r, kind, &all, ret, &e);
}

static void the_claim_counts_before_the_class_and_later_ones_before_earlier_ones(void **state) {
        (void)state;
        struct gpu_config_choice c;
        struct claim_config configs[] = { from("FromClaim", NULL, SLICED("Short")),
                                          from("FromClaim", NULL, SLICED("Medium")),
                                          from("FromClass", named_gpu, SLICED("Long")),
                                          from("FromClaim", named_other, SLICED("Default")) };
        assert_int_equal(choose(configs, 4, &gpu, GPU_CONFIG_GPU, &c), 0);
        assert_int_equal(c.config.interval, GPU_INTERVAL_MEDIUM);
        assert_int_equal(c.index, 1);
        assert_int_equal(choose(configs + 2, 2, &gpu, GPU_CONFIG_GPU, &c), 0);
        assert_int_equal(c.config.interval, GPU_INTERVAL_LONG);
        assert_int_equal(choose(configs, 0, &gpu, GPU_CONFIG_GPU, &c), 0);
        assert_int_equal(c.config.sharing, GPU_EXCLUSIVE);
        assert_int_equal(c.index, 0);
}

static void a_config_for_the_request_counts_for_its_alternatives(void **state) {
        (void)state;
        struct gpu_config_choice c;
        struct claim_config config = from("FromClaim", named_gpu, SLICED("Short"));
        assert_int_equal(choose(&config, 1, &sub, GPU_CONFIG_GPU, &c), 0);
        assert_int_equal(c.config.interval, GPU_INTERVAL_SHORT);
}

static void a_config_of_another_kind_is_skipped_unless_it_names_the_request(void **state) {
        (void)state;
        struct gpu_config_choice c;
        struct claim_config config = from("FromClaim", NULL, SLICED("Short"));
        assert_int_equal(choose(&config, 1, &mig, GPU_CONFIG_MIG, &c), 0);
        assert_int_equal(c.config.sharing, GPU_EXCLUSIVE);
        config = from("FromClaim", named_gpu, CONFIG("MigDeviceConfig", ""));
        assert_int_equal(choose(&config, 1, &gpu, GPU_CONFIG_GPU, &c), -1);
        assert_string_equal(
                e.msg, "cannot apply MigDeviceConfig to device \"gpu-0\" of type \"gpu\" (request: gpu)");
}

static void a_config_that_does_not_count_must_only_be_well_formed(void **state) {
        (void)state;
        struct gpu_config_choice c;
        struct claim_config configs[] = { from("FromClaim", named_other, SLICED("Short")),
                                          { .source = "FromClaim", .driver = "example.com" } };
        struct claim claim = { .configs = configs, .n_configs = 2 };
        assert_int_equal(gpu_config_for(&claim, &gpu, GPU_CONFIG_GPU, &none, &c, &e), 0);
        configs[0] = from("FromClaim", named_other, CONFIG("GpuConfig", ",\"bogus\":1"));
        assert_int_equal(gpu_config_for(&claim, &gpu, GPU_CONFIG_GPU, &none, &c, &e), -1);
        assert_string_equal(
                e.msg, "error decoding config parameters: strict decoding error: unknown field \"bogus\"");
        configs[0] = from("FromElsewhere", NULL, "{}");
        assert_int_equal(gpu_config_for(&claim, &gpu, GPU_CONFIG_GPU, &none, &c, &e), -1);
        assert_string_equal(e.msg, "invalid config source: FromElsewhere");
        configs[0] = (struct claim_config){ .source = "FromClass" };
        assert_int_equal(gpu_config_for(&claim, &gpu, GPU_CONFIG_GPU, &none, &c, &e), -1);
        assert_string_equal(e.msg, "only opaque parameters are supported by this driver");
}

static void a_percentage_of_0_or_100_is_valid(void **state) {
        (void)state;
        struct gpu_config c;
        assert_int_equal(gpu_config_decode(STR(SHARING("\"strategy\":\"MPS\",\"mpsConfig\":{"
                                                       "\"defaultActiveThreadPercentage\":0}")),
                                           &all, &c, &e),
                         0);
        assert_int_equal(gpu_config_decode(STR(SHARING("\"strategy\":\"MPS\",\"mpsConfig\":{"
                                                       "\"defaultActiveThreadPercentage\":100}")),
                                           &all, &c, &e),
                         0);
}

static void errors_of_a_chosen_config_are_reported(void **state) {
        (void)state;
        struct gpu_config config;
        struct gpu_config_choice c;
        struct claim_config chosen = from("FromClaim", NULL, SLICED("Short"));
        struct claim claim = { .configs = &chosen, .n_configs = 1 };
        assert_int_equal(gpu_config_decode(STR("{\"kind\":7}"), &all, &config, &e), -1);
        assert_non_null(strstr(e.msg, "kind"));
        assert_int_equal(gpu_config_for(&claim, &gpu, GPU_CONFIG_GPU, &none, &c, &e), -1);
        assert_non_null(strstr(e.msg, "feature gate is not enabled"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(errors_use_the_words_of_the_go_driver),
                cmocka_unit_test(missing_settings_have_their_defaults),
                cmocka_unit_test(the_claim_counts_before_the_class_and_later_ones_before_earlier_ones),
                cmocka_unit_test(a_config_for_the_request_counts_for_its_alternatives),
                cmocka_unit_test(a_config_of_another_kind_is_skipped_unless_it_names_the_request),
                cmocka_unit_test(a_config_that_does_not_count_must_only_be_well_formed),
                cmocka_unit_test(a_percentage_of_0_or_100_is_valid),
                cmocka_unit_test(errors_of_a_chosen_config_are_reported),
        };
        return cmocka_run_group_tests(tests, setup, NULL);
}
