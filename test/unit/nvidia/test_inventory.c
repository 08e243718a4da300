/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder of the worker's inventory, and names of MIG profiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nvidia/inventory.h"

static struct err e;

static struct arena *arena;
static struct inventory in;

static int decode(const char *json) {
        arena_free(arena);
        arena = arena_new(1024);
        e = (struct err){ 0 };
        return inventory_decode(str_from(json), arena, &in, &e);
}

#define GPU(more) "{\"driverVersion\":\"1\",\"gpus\":[{\"index\":0" more "}]}"
#define MIG(more) GPU(",\"minor\":0,\"uuid\":\"GPU-0\",\"mig\":[{\"uuid\":\"MIG-0\"" more "}]")

static void an_inventory_is_read(void **state) {
        assert_int_equal(decode("{\"driverVersion\":\"580.95.05\",\"gpus\":[]}"), 0);
        assert_int_equal(decode(GPU(",\"minor\":0,\"uuid\":\"GPU-0\"")), 0);
        assert_int_equal(decode(GPU(",\"call\":\"nvmlDeviceGetUUID\",\"error\":15")), 0);
        assert_int_equal(decode(MIG("")), 0);
        assert_int_equal(decode(MIG(",\"giProfile\":-1,\"future\":[]")), 0);
}

/* failure: the NVML process sends an invalid inventory -> all of it is refused */
static void an_invalid_inventory_is_refused(void **state) {
        static const char *const bad[] = {
                "", "[]", "{}", "{\"gpus\":[]}", "{\"driverVersion\":\"1\"}", MIG(",\"name\":7"),
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                assert_int_equal(decode(bad[i]), -1);
                assert_int_equal(e.kind, ERR_INVALID);
        }
}

#define OTHER ",{\"index\":1,\"minor\":1,\"uuid\":\"GPU-1\"}"
#define TWO(more) "{\"driverVersion\":\"1\",\"gpus\":[{\"index\":0" more "}" OTHER "]}"
#define TWO_MIG(more)                                                                                        \
        TWO(",\"minor\":0,\"uuid\":\"GPU-0\",\"mig\":[{\"uuid\":\"MIG-0\"" more "},{\"uuid\":\"MIG-1\"}]")

/* failure: an inventory has impossible values of one device -> only that device is left out */
static void an_impossible_device_is_left_out_alone(void **state) {
        static const char *const gpus[] = {
                TWO(""),
                TWO(",\"minor\":-1,\"uuid\":\"GPU-0\""),
                TWO(",\"minor\":99999999,\"uuid\":\"GPU-0\""),
                TWO(",\"minor\":0,\"uuid\":\"../etc\""),
                TWO(",\"minor\":0,\"uuid\":\"a b\""),
                TWO(",\"minor\":0,\"uuid\":\"GPU-0\",\"memory\":-1"),
        };
        static const char *const migs[] = {
                TWO_MIG(",\"gi\":-1"),
                TWO_MIG(",\"size\":65"),
                TWO_MIG(",\"memoryMB\":99999999999999"),
        };
        for (size_t i = 0; i < ARRAY_LEN(gpus); i++) {
                assert_int_equal(decode(gpus[i]), 0);
                assert_int_equal(in.n_gpus, 2);
                assert_non_null(in.gpus[0].failure.odd);
                assert_int_equal(in.gpus[0].n_mig, 0);
                assert_false(inventory_failed(&in.gpus[1].failure));
                assert_string_equal(in.gpus[1].uuid, "GPU-1");
        }
        for (size_t i = 0; i < ARRAY_LEN(migs); i++) {
                assert_int_equal(decode(migs[i]), 0);
                assert_int_equal(in.n_gpus, 2);
                assert_false(inventory_failed(&in.gpus[0].failure));
                assert_int_equal(in.gpus[0].n_mig, 2);
                assert_non_null(strstr(in.gpus[0].mig[0].failure.odd, "MIG device 0 of GPU 0"));
                assert_string_equal(in.gpus[0].mig[1].uuid, "MIG-1");
        }
}

static const char *of_length(char ret[static 128], size_t n) {
        memset(ret, 'a', n);
        ret[n] = '\0';
        return ret;
}

static void texts_have_at_most_96_bytes(void **state) {
        static const char *const gpus[] = { "name", "cc", "pci", "addressingMode", "uuid" }, *const migs[] = {
                "name", "uuid"
        };
        char text[128];
        struct buf b = BUF_INIT(4096);
        for (size_t n = INVENTORY_TEXT_MAX; n <= INVENTORY_TEXT_MAX + 1; n++) {
                for (size_t i = 0; i < ARRAY_LEN(gpus); i++) {
                        bool is_uuid = strcmp(gpus[i], "uuid") == 0;
                        buf_clear(&b);
                        buf_addf(&b, TWO(",\"minor\":0%s,\"%s\":\"%s\""),
                                 is_uuid ? "" : ",\"uuid\":\"GPU-0\"", gpus[i], of_length(text, n));
                        assert_int_equal(decode(buf_str(&b)), 0);
                        assert_int_equal(inventory_failed(&in.gpus[0].failure), n > INVENTORY_TEXT_MAX);
                }
                for (size_t i = 0; i < ARRAY_LEN(migs); i++) {
                        bool is_uuid = strcmp(migs[i], "uuid") == 0;
                        buf_clear(&b);
                        buf_addf(&b, GPU(",\"minor\":0,\"uuid\":\"GPU-0\",\"mig\":[{%s\"%s\":\"%s\"}]"),
                                 is_uuid ? "" : "\"uuid\":\"M\",", migs[i], of_length(text, n));
                        assert_int_equal(decode(buf_str(&b)), 0);
                        assert_int_equal(inventory_failed(&in.gpus[0].mig[0].failure),
                                         n > INVENTORY_TEXT_MAX);
                }
                buf_clear(&b);
                buf_addf(&b, "{\"gpus\":[],\"driverVersion\":\"%s\"}", of_length(text, n));
                assert_int_equal(decode(buf_str(&b)), n > INVENTORY_TEXT_MAX ? -1 : 0);
        }
        buf_done(&b);
}

static void uuids_have_letters_digits_hyphens_and_slashes(void **state) {
        static const struct {
                const char *json;
                bool ok;
        } rows[] = { { GPU(",\"uuid\":\"a\""), true },      { GPU(",\"uuid\":\"MIG-GPU-0a/1/0\""), true },
                     { GPU(",\"uuid\":\"\""), false },      { GPU(""), false },
                     { GPU(",\"uuid\":\"GPU.0\""), false }, { GPU(",\"uuid\":\"GPU-0 \""), false },
                     { GPU(",\"uuid\":\"GPU-0_\""), false } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                assert_int_equal(decode(rows[i].json), 0);
                assert_int_equal(inventory_failed(&in.gpus[0].failure), !rows[i].ok);
        }
}

static void the_largest_numbers_are_accepted(void **state) {
        assert_int_equal(decode(GPU(",\"uuid\":\"a\",\"minor\":1048576,\"memory\":9223372036854775807")), 0);
        assert_false(inventory_failed(&in.gpus[0].failure));
        for (int index = INVENTORY_GPUS_MAX - 1; index <= INVENTORY_GPUS_MAX; index++) {
                _cleanup_(freep) char *gpu = xasprintf(
                        "{\"driverVersion\":\"1\",\"gpus\":[{\"index\":%d,\"minor\":0,\"uuid\":\"a\"}]}",
                        index);
                bool refused = decode(gpu) < 0 || inventory_failed(&in.gpus[0].failure);
                assert_int_equal(refused, index == INVENTORY_GPUS_MAX);
        }
        assert_int_equal(decode(GPU(",\"uuid\":\"a\",\"minor\":1048577")), 0);
        assert_true(inventory_failed(&in.gpus[0].failure));
        assert_int_equal(decode(GPU(",\"uuid\":\"a\",\"migMore\":9223372036854775807")), 0);
        assert_true(inventory_failed(&in.gpus[0].failure));
        assert_int_equal(decode(MIG(",\"size\":64")), 0);
        assert_false(inventory_failed(&in.gpus[0].mig[0].failure));
        /* The last of several. */
        assert_int_equal(decode(MIG("},{\"uuid\":\"?\"")), 0);
        assert_false(inventory_failed(&in.gpus[0].mig[0].failure));
        assert_true(inventory_failed(&in.gpus[0].mig[1].failure));
}

/* failure: an inventory has more GPUs than a node can have -> it is refused */
static void too_many_gpus_are_refused(void **state) {
        struct buf b = BUF_INIT(1 << 20);
        buf_adds(&b, "{\"driverVersion\":\"1\",\"gpus\":[");
        for (int i = 0; i <= INVENTORY_GPUS_MAX; i++)
                buf_addf(&b, "%s{\"index\":%d,\"minor\":%d,\"uuid\":\"GPU-%d\"}", i ? "," : "", i, i, i);
        buf_adds(&b, "]}");
        assert_int_equal(decode(buf_str(&b)), -1);
        assert_non_null(strstr(e.msg, "65 GPUs"));
        buf_clear(&b);
        buf_adds(&b, "{\"driverVersion\":\"1\",\"gpus\":[");
        for (int i = 0; i < INVENTORY_GPUS_MAX; i++)
                buf_addf(&b, "%s{\"index\":%d,\"minor\":%d,\"uuid\":\"GPU-%d\"}", i ? "," : "", i, i, i);
        buf_adds(&b, "]}");
        assert_int_equal(decode(buf_str(&b)), 0);
        buf_clear(&b);
        buf_adds(&b,
                 "{\"driverVersion\":\"1\",\"gpus\":[{\"index\":0,\"minor\":0,\"uuid\":\"GPU-0\",\"mig\":[");
        for (int i = 0; i <= INVENTORY_MIG_MAX; i++)
                buf_addf(&b, "%s{\"uuid\":\"MIG-%d\"}", i ? "," : "", i);
        buf_adds(&b, "]}]}");
        assert_int_equal(decode(buf_str(&b)), 0);
        assert_int_equal(in.gpus[0].n_mig, INVENTORY_MIG_MAX);
        assert_int_equal(in.gpus[0].n_mig_more, 1);
        buf_clear(&b);
        buf_adds(&b, "{\"gpus\":[],\"driverVersion\":\"");
        for (int i = 0; i <= INVENTORY_TEXT_MAX; i++)
                buf_addc(&b, '1');
        buf_adds(&b, "\"}");
        assert_int_equal(decode(buf_str(&b)), -1);
        buf_done(&b);
}

static const char *profile(int64_t gi_profile, int64_t g, int64_t c, int64_t mib, int64_t gpu_mib) {
        static char name[64];
        const struct mig_profile p = { gi_profile, g, c, mib, gpu_mib << 20 };
        return mig_profile_name(&p, name, sizeof name) ? name : "none";
}

/* What nvidia-smi mig -lgip prints on these GPUs. */
static void profiles_have_the_names_that_users_know(void **state) {
        enum { A100_40 = 40960, H100_80 = 81559, H200 = 143771 };
        assert_string_equal(profile(0, 1, 1, 4864, A100_40), "1g.5gb");
        assert_string_equal(profile(7, 1, 1, 4864, A100_40), "1g.5gb+me");
        assert_string_equal(profile(9, 1, 1, 9856, A100_40), "1g.10gb");
        assert_string_equal(profile(1, 2, 2, 9856, A100_40), "2g.10gb");
        assert_string_equal(profile(2, 3, 3, 19968, A100_40), "3g.20gb");
        assert_string_equal(profile(3, 4, 4, 19968, A100_40), "4g.20gb");
        assert_string_equal(profile(4, 7, 7, 40192, A100_40), "7g.40gb");
        assert_string_equal(profile(2, 3, 1, 19968, A100_40), "1c.3g.20gb");
        assert_string_equal(profile(0, 1, 1, 9984, H100_80), "1g.10gb");
        assert_string_equal(profile(9, 1, 1, 20096, H100_80), "1g.20gb");
        assert_string_equal(profile(4, 7, 7, 80896, H100_80), "7g.80gb");
        assert_string_equal(profile(0, 1, 1, 16896, H200), "1g.18gb");
        assert_string_equal(profile(9, 1, 1, 34048, H200), "1g.35gb");
        assert_string_equal(profile(2, 3, 3, 71424, H200), "3g.71gb");
        assert_string_equal(profile(10, 1, 1, 16896, H200), "1g.18gb+gfx");
        assert_string_equal(profile(13, 1, 1, 16896, H200), "1g.18gb-me");
        assert_string_equal(profile(15, 1, 1, 16896, H200), "1g.18gb+me.all");
        assert_string_equal(profile(17, 3, 3, 71424, H200), "3g.71gb+gfx");
        assert_string_equal(profile(4, 7, 7, A100_40, A100_40), "7g.40gb");
        assert_string_equal(profile(0, 1, 1, 1, 8), "1g.0gb");
}

static void unknown_profiles_have_no_name(void **state) {
        assert_string_equal(profile(-1, 1, 1, 4864, 40960), "none");
        assert_string_equal(profile(18, 1, 1, 4864, 40960), "none");
        assert_string_equal(profile(0, 0, 1, 4864, 40960), "none");
        assert_string_equal(profile(0, 1, 1, 0, 40960), "none");
        assert_string_equal(profile(0, 1, 1, 4864, 0), "none");
        assert_string_equal(profile(0, 1, 0, 4864, 40960), "none");
        assert_string_equal(profile(0, 1, 1, 4864, 1), "none");
        assert_string_equal(profile(0, 1, 1, 40961, 40960), "none");
        assert_true(mig_profile_graphics(10) && mig_profile_graphics(12));
        assert_false(mig_profile_graphics(0) || mig_profile_graphics(7) || mig_profile_graphics(13));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_inventory_is_read),
                cmocka_unit_test(an_invalid_inventory_is_refused),
                cmocka_unit_test(an_impossible_device_is_left_out_alone),
                cmocka_unit_test(texts_have_at_most_96_bytes),
                cmocka_unit_test(uuids_have_letters_digits_hyphens_and_slashes),
                cmocka_unit_test(the_largest_numbers_are_accepted),
                cmocka_unit_test(too_many_gpus_are_refused),
                cmocka_unit_test(profiles_have_the_names_that_users_know),
                cmocka_unit_test(unknown_profiles_have_no_name),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
