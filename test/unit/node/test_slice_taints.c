/* SPDX-License-Identifier: Apache-2.0 */
/* Taints of devices in ResourceSlices, in each version of the API, and on servers that accept few or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "node/slice_pool.h"

static const struct offered_taint both[] = { { "gpu.nvidia.com/unmonitored", "", "None" },
                                             { "gpu.nvidia.com/xid", "79", "NoSchedule" } };
static struct offered_device device = { .name = "gpu-0", .taints = both, .n_taints = 2 };
static struct slice_content want = { .driver = "gpu.nvidia.com", .devices = &device, .n_devices = 1 };
static struct arena *arena;

static int setup(void **state) {
        (void)state;
        arena = arena_new(4096);
        device.taints = both;
        device.n_taints = 2;
        want.taints = SLICE_TAINTS_ALL;
        return 0;
}

static int teardown(void **state) {
        (void)state;
        arena_free(arena);
        return 0;
}

static const char *rendered(const char *version, const struct own_slice *old) {
        struct buf b = BUF_INIT(8192);
        slice_render(version, "n0", "u", old, &want, &b);
        const char *text = arena_strndup(arena, b.p, b.n);
        buf_done(&b);
        return text;
}

static struct own_slice decoded(const char *text) {
        struct own_slice s = { 0 };
        struct err e;
        if (jd_decode_text(own_slice_fields, str_from(text), "", arena, &s, &e) < 0)
                fail_msg("%s", e.msg);
        return s;
}

/* As the server has it: with a time for each taint. */
static struct own_slice stored(const char *version) {
        const struct own_slice created = { .o.meta = { .name = "s", .rv = "1" } };
        const char *text = rendered(version, &created), *at;
        struct buf b = BUF_INIT(8192);
        static const char effect[] = "\"effect\":";
        while ((at = strstr(text, effect))) {
                buf_addf(&b, "%.*s\"timeAdded\":\"2026-11-22T10:00:00Z\",%s", (int)(at - text), text, effect);
                text = at + sizeof effect - 1;
        }
        buf_adds(&b, text);
        struct own_slice s = decoded(arena_strndup(arena, b.p, b.n));
        buf_done(&b);
        return s;
}

static bool matches(const struct own_slice *s) {
        return slice_part_matches(s, "n0", &want, &(struct slice_part){ .of = 1, .n = want.n_devices });
}

static void each_api_version_has_the_taints_in_its_place(void **state) {
        static const char taints[] =
                "\"taints\":[{\"key\":\"gpu.nvidia.com/unmonitored\",\"effect\":\"None\"},"
                "{\"key\":\"gpu.nvidia.com/xid\",\"value\":\"79\",\"effect\":\"NoSchedule\"}]}";
        (void)state;
        assert_non_null(strstr(rendered("v1", NULL), taints));
        assert_non_null(strstr(rendered("v1beta2", NULL), taints));
        const char *basic = strstr(rendered("v1beta1", NULL), "\"basic\":{");
        assert_non_null(strstr(basic, taints));
        device.n_taints = 0;
        assert_null(strstr(rendered("v1", NULL), "taints"));
}

static void times_that_the_server_adds_are_no_difference(void **state) {
        static const char *const versions[] = { "v1", "v1beta2", "v1beta1" };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
                struct own_slice s = stored(versions[i]);
                assert_true(matches(&s));
        }
}

static void a_missing_additional_or_other_taint_is_a_difference(void **state) {
        const struct offered_taint other[] = { both[0], { "gpu.nvidia.com/xid", "48", "NoSchedule" } },
                                   weaker[] = { both[0], { "gpu.nvidia.com/xid", "79", "None" } };
        (void)state;
        struct own_slice s = stored("v1");
        device.n_taints = 1;
        assert_false(matches(&s));
        device.n_taints = 0; /* a taint of another driver */
        assert_false(matches(&s));
        device.n_taints = 2;
        device.taints = other;
        assert_false(matches(&s));
        device.taints = weaker;
        assert_false(matches(&s));
        device.taints = both;
        assert_true(matches(&s));
}

static void all_capacities_are_sent(void **state) {
        static const struct offered_capacity two[] = { { "memory", "40Gi" }, { "slices", "7" } };
        device.capacities = two;
        device.n_capacities = ARRAY_LEN(two);
        assert_non_null(
                strstr(rendered("v1", NULL),
                       "\"capacity\":{\"memory\":{\"value\":\"40Gi\"},\"slices\":{\"value\":\"7\"}}"));
        device.n_capacities = 0;
}

static void a_slice_without_a_generation_is_a_difference(void **state) {
        struct own_slice s = stored("v1");
        s.generation = 1;
        assert_true(matches(&s));
        s.generation = 0;
        assert_false(matches(&s));
}

static void a_taint_that_stays_keeps_its_time(void **state) {
        const struct offered_taint other[] = { both[0], { "gpu.nvidia.com/xid", "48", "NoSchedule" } };
        (void)state;
        struct own_slice s = stored("v1");
        device.taints = other;
        const char *text = rendered("v1", &s);
        assert_non_null(strstr(text, "\"effect\":\"None\",\"timeAdded\":\"2026-11-22T10:00:00Z\"}"));
        assert_non_null(strstr(text, "\"value\":\"48\",\"effect\":\"NoSchedule\"}"));
        device.taints = both;
        text = rendered("v1", &s);
        assert_non_null(strstr(text, "\"effect\":\"NoSchedule\",\"timeAdded\":\"2026-11-22T10:00:00Z\"}"));
}

/* failure: the API server does not support a taint -> it is neither sent nor counted as missing */
static void unsupported_taints_are_neither_sent_nor_compared(void **state) {
        (void)state;
        want.taints = SLICE_TAINTS_EFFECTIVE;
        assert_null(strstr(rendered("v1", NULL), "None"));
        assert_non_null(strstr(rendered("v1", NULL), "\"79\""));
        struct own_slice s = stored("v1");
        assert_true(matches(&s));
        want.taints = SLICE_TAINTS_NONE;
        assert_null(strstr(rendered("v1", NULL), "taints"));
        s = stored("v1");
        assert_true(matches(&s));
        want.taints = SLICE_TAINTS_ALL;
        assert_false(matches(&s));
}

static void slices_with_taints_have_half_as_many_devices(void **state) {
        struct slice_content many = { .n_devices = 100 };
        (void)state;
        assert_int_equal(slice_pool_size(&many), 1);
        many.part_max = SLICE_TAINTED_DEVICES_MAX;
        assert_int_equal(slice_pool_size(&many), 2);
        assert_int_equal(slice_pool_part(&many, 1).first, 64);
        assert_int_equal(slice_pool_part(&many, 1).n, 36);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(each_api_version_has_the_taints_in_its_place),
                T(times_that_the_server_adds_are_no_difference),
                T(a_missing_additional_or_other_taint_is_a_difference),
                T(all_capacities_are_sent),
                T(a_slice_without_a_generation_is_a_difference),
                T(a_taint_that_stays_keeps_its_time),
                T(unsupported_taints_are_neither_sent_nor_compared),
                T(slices_with_taints_have_half_as_many_devices),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
