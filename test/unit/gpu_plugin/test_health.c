/* SPDX-License-Identifier: Apache-2.0 */
/* XIDs, lost GPUs and failures of NVML, as taints of devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "gpu_plugin/health.h"

static struct gpu_device items[] = {
        { .kind = GPU_FULL, .name = "gpu-0", .uuid = "GPU-0" },
        { .kind = GPU_MIG,
          .name = "gpu-1-mig-3g93gb-9-0",
          .uuid = "MIG-A",
          .parent_uuid = "GPU-1",
          .gpu_instance = 1 },
        { .kind = GPU_MIG,
          .name = "gpu-1-mig-1g23gb-19-4",
          .uuid = "MIG-B",
          .parent_uuid = "GPU-1",
          .gpu_instance = 2,
          .compute_instance = 1 },
};
static const struct gpu_devices devices = { .items = items, .n = ARRAY_LEN(items) };

static struct arena *arena;
static struct health *health;
static unsigned reported;
static const struct gpu_devices *listed; /* when an XID comes */

static int setup(void **state) {
        struct xids x = { 0 };
        struct str bad;
        (void)state;
        assert_true(xids_add(&x, " 94, ,95", &bad));
        arena = arena_new(1024);
        health = health_new(&x);
        listed = &devices;
        reported = 0;
        return 0;
}

static int teardown(void **state) {
        (void)state;
        health_free(health);
        arena_free(arena);
        return 0;
}

/* "key=value:effect", separated by spaces. */
static const char *taints(size_t i) {
        const struct offered_taint *t;
        size_t n = health_taints(health, &items[i], arena, &t);
        const char *text = "";
        for (size_t j = 0; j < n; j++)
                text = arena_printf(arena, "%s%s%s=%s:%s", text, j ? " " : "", t[j].key, t[j].value,
                                    t[j].effect);
        return text;
}

static void on_reported(void *u, const struct gpu_device *d, uint64_t xid, bool of_program) {
        (void)u;
        (void)d;
        (void)xid;
        (void)of_program;
        reported++;
}

static bool xid(const char *uuid, uint64_t number, int64_t gi, int64_t ci) {
        return health_xid(health, listed,
                          &(struct nvml_event){ .kind = NVML_XID,
                                                .uuid = str_from(uuid),
                                                .xid = number,
                                                .gpu_instance = gi,
                                                .compute_instance = ci },
                          on_reported, NULL);
}

static void watched(const char *first, int64_t error_of_first, const char *second, int64_t error_of_second) {
        struct nvml_watched_gpu gpus[] = { { first, error_of_first, "call" },
                                           { second, error_of_second, "call" } };
        health_watched(health, &(struct nvml_watched){ gpus, 2 });
}

static int recall(const char *text, size_t n, const char *boot_id) {
        struct xids none = { 0 };
        struct err e;
        health_free(health);
        health = health_new(&none);
        return health_restore(health, (struct str){ text, n }, boot_id, &e);
}

/* Reads the state as the next process does. */
static void restart(const char *boot_id) {
        struct buf b = BUF_INIT(1 << 20);
        health_render(health, "boot-1", &b);
        assert_int_equal(recall(b.p, b.n, boot_id), 0);
        buf_done(&b);
}

static void gpus_have_no_taint_before_the_first_watch(void **state) {
        (void)state;
        assert_string_equal(taints(0), "");
        watched("GPU-0", 0, "GPU-1", 0);
        assert_string_equal(taints(0), "");
        assert_string_equal(taints(1), "");
}

/* failure: a GPU reports an XID -> a taint keeps new pods away */
static void a_gpu_that_reports_an_xid_gets_no_new_pod(void **state) {
        (void)state;
        watched("GPU-0", 0, "GPU-1", 0);
        assert_true(xid("GPU-0", 79, -1, -1));
        assert_string_equal(taints(0), "gpu.nvidia.com/xid=79:NoSchedule");
        assert_string_equal(taints(1), "");
        /* A repeated XID changes nothing, another XID replaces it, and the XID of a program does not. */
        assert_false(xid("GPU-0", 79, -1, -1));
        assert_true(xid("GPU-0", 48, -1, -1));
        assert_false(xid("GPU-0", 31, -1, -1));
        assert_string_equal(taints(0), "gpu.nvidia.com/xid=48:NoSchedule");
        assert_int_equal(reported, 2);
        assert_int_equal(health_count(health, &devices, GPU_TAINT_XID, "NoSchedule"), 1);
        assert_int_equal(health_count(health, &devices, GPU_TAINT_XID, "None"), 0);
        /* An unknown GPU has no effect on the others. */
        assert_true(xid("GPU-9", 79, -1, -1));
        assert_int_equal(reported, 2);
        assert_int_equal(health_count(health, &devices, GPU_TAINT_XID, "NoSchedule"), 1);
}

/* failure: a program causes an XID -> it is reported without an effect on scheduling */
static void an_xid_of_a_program_is_reported_and_has_no_effect(void **state) {
        static const uint64_t of_programs[] = { 13, 31, 43, 45, 68, 109, 94, 95 };
        (void)state;
        watched("GPU-0", 0, "GPU-1", 0);
        for (size_t i = 0; i < ARRAY_LEN(of_programs); i++) {
                health_forget_xids(health);
                assert_true(xid("GPU-0", of_programs[i], -1, -1));
                assert_string_equal(taints(0),
                                    arena_printf(arena, "gpu.nvidia.com/xid=%d:None", (int)of_programs[i]));
        }
        assert_true(xid("GPU-0", 63, -1, -1));
        assert_string_equal(taints(0), "gpu.nvidia.com/xid=63:NoSchedule");
}

/* failure: programs cause different XIDs in turn, without end -> only the first one is reported */
static void later_xids_of_programs_change_nothing(void **state) {
        (void)state;
        watched("GPU-0", 0, "GPU-1", 0);
        assert_true(xid("GPU-0", 31, -1, -1));
        for (unsigned i = 0; i < 10; i++)
                assert_false(xid("GPU-0", i % 2 ? 31 : 43, -1, -1));
        assert_string_equal(taints(0), "gpu.nvidia.com/xid=31:None");
        assert_int_equal(reported, 1);
}

/* failure: an XID concerns one MIG device -> only that device is tainted */
static void an_xid_taints_the_named_mig_device_or_all(void **state) {
        (void)state;
        watched("GPU-0", 0, "GPU-1", 0);
        assert_true(xid("GPU-1", 63, 2, 1));
        assert_string_equal(taints(1), "");
        assert_string_equal(taints(2), "gpu.nvidia.com/xid=63:NoSchedule");
        assert_false(xid("GPU-1", 64, 2, 0));  /* another compute instance, which is not offered */
        assert_false(xid("GPU-1", 64, 0, -1)); /* another GPU instance */
        assert_true(xid("GPU-1", 64, 2, -1));
        assert_string_equal(taints(2), "gpu.nvidia.com/xid=64:NoSchedule");
        assert_true(xid("GPU-1", 79, -1, -1));
        assert_string_equal(taints(1), "gpu.nvidia.com/xid=79:NoSchedule");
        assert_string_equal(taints(2), "gpu.nvidia.com/xid=79:NoSchedule");
        assert_string_equal(taints(0), "");
}

/* failure: MIG is reconfigured after an XID of the GPU -> the new devices and the GPU have the taint */
static void an_xid_of_the_gpu_outlives_its_mig_devices(void **state) {
        static const struct gpu_device after[] = {
                { .kind = GPU_MIG, .name = "gpu-1-mig-7g180gb-0-0", .uuid = "MIG-C", .parent_uuid = "GPU-1" },
                { .kind = GPU_FULL, .name = "gpu-1", .uuid = "GPU-1" },
        };
        const struct offered_taint *t;
        (void)state;
        watched("GPU-0", 0, "GPU-1", 0);
        assert_true(xid("GPU-1", 31, 2, 1));
        assert_true(xid("GPU-1", 79, -1, -1));
        assert_int_equal(reported, 3); /* for one device, and then for both */
        assert_string_equal(taints(2), "gpu.nvidia.com/xid=79:NoSchedule");
        restart("boot-1");
        for (size_t i = 0; i < ARRAY_LEN(after); i++) {
                assert_int_equal(health_taints(health, &after[i], arena, &t), 1);
                assert_string_equal(t[0].value, "79");
                assert_string_equal(t[0].effect, "NoSchedule");
        }
        assert_string_equal(taints(0), "");
        /* An XID of a program on the whole GPU hides no error of a MIG device. */
        health_forget_xids(health);
        assert_true(xid("GPU-1", 63, 2, 1));
        assert_true(xid("GPU-1", 31, -1, -1));
        assert_string_equal(taints(1), "gpu.nvidia.com/xid=31:None");
        assert_string_equal(taints(2), "gpu.nvidia.com/xid=63:NoSchedule");
}

/* failure: a GPU that NVML cannot describe reports an XID -> it has the taint when it is offered again */
static void an_xid_of_a_gpu_that_is_not_offered_is_remembered(void **state) {
        static const struct gpu_devices first = { .items = items, .n = 1 };
        (void)state;
        watched("GPU-0", 0, "GPU-1", 0);
        listed = &first;
        assert_true(xid("GPU-1", 119, -1, -1));
        assert_false(xid("GPU-1", 119, -1, -1));
        assert_false(xid("GPU-1", 119, 2, 1)); /* of an unknown MIG device */
        assert_int_equal(reported, 0);
        restart("boot-1");
        assert_string_equal(taints(0), "");
        assert_string_equal(taints(1), "gpu.nvidia.com/xid=119:NoSchedule");
}

/* failure: one GPU is lost -> only that GPU is tainted */
static void only_the_lost_gpu_is_tainted(void **state) {
        (void)state;
        watched("GPU-0", 0, "GPU-1", 15);
        assert_string_equal(taints(0), "");
        assert_string_equal(taints(1), "gpu.nvidia.com/gpu-lost=:NoSchedule");
        watched("GPU-0", 0, "", 15); /* so lost that it has no name */
        assert_string_equal(taints(0), "");
        assert_string_equal(taints(2), "gpu.nvidia.com/gpu-lost=:NoSchedule");
        assert_int_equal(health_count(health, &devices, GPU_TAINT_LOST, "NoSchedule"), 2);
        assert_true(health_unwatched(health)); /* the GPU stays lost without a watch */
        assert_string_equal(taints(2),
                            "gpu.nvidia.com/gpu-lost=:NoSchedule gpu.nvidia.com/unmonitored=:None");
        assert_true(xid("GPU-1", 79, 2, 1)); /* all taints at once */
        assert_int_equal(health_count(health, &devices, GPU_TAINT_XID, "NoSchedule"), 1);
        health_forget_xids(health);
        watched("GPU-0", 0, "GPU-1", 0);
        assert_string_equal(taints(2), "");
}

/* failure: a GPU cannot be watched -> it is marked as unmonitored and stays usable */
static void a_gpu_that_cannot_be_watched_is_reported_and_stays_usable(void **state) {
        (void)state;
        watched("GPU-0", 3, "GPU-1", 0);
        assert_string_equal(taints(0), "gpu.nvidia.com/unmonitored=:None");
        assert_string_equal(taints(1), "");
        assert_true(xid("GPU-0", 79, -1, -1));
        assert_true(health_unwatched(health));
        assert_false(health_unwatched(health));
        assert_string_equal(taints(0), "gpu.nvidia.com/unmonitored=:None gpu.nvidia.com/xid=79:NoSchedule");
        assert_string_equal(taints(1), "gpu.nvidia.com/unmonitored=:None");
        watched("GPU-0", 0, "GPU-1", 0);
        assert_string_equal(taints(0), "gpu.nvidia.com/xid=79:NoSchedule");
}

static void the_same_answer_changes_nothing(void **state) {
        struct nvml_watched_gpu gpu = { "GPU-0", 0, "" };
        (void)state;
        assert_true(health_watched(health, &(struct nvml_watched){ &gpu, 1 }));
        assert_false(health_watched(health, &(struct nvml_watched){ &gpu, 1 }));
        gpu.error = 15;
        assert_true(health_watched(health, &(struct nvml_watched){ &gpu, 1 }));
}

static void an_invalid_xid_is_named_and_the_others_count(void **state) {
        struct xids x = { 0 };
        struct str bad = { 0 };
        (void)state;
        assert_true(xids_add(&x, "", &bad));
        assert_false(xids_add(&x, "48,x79,-1,63", &bad));
        assert_true(str_eq(bad, STR("x79")));
        assert_true(xids_of_programs(&x, 48) && xids_of_programs(&x, 63) && xids_of_programs(&x, 13));
        assert_false(xids_of_programs(&x, 79));
        assert_false(xids_of_programs(&x, 0));
        assert_false(xids_add(&x, "-1", &bad));
        assert_true(str_eq(bad, STR("-1")));
        assert_true(xids_add(&x, "0", &bad));
        assert_true(xids_of_programs(&x, 0));
}

static void at_most_256_xids_can_be_added(void **state) {
        struct xids x = { 0 };
        struct str bad = { 0 };
        char word[16];
        (void)state;
        for (int i = 0; i < XIDS_ADDED_MAX; i++) {
                snprintf(word, sizeof word, "%d", 1000 + i);
                assert_true(xids_add(&x, word, &bad));
        }
        assert_true(xids_of_programs(&x, 1000) && xids_of_programs(&x, 1000 + XIDS_ADDED_MAX - 1));
        assert_false(xids_of_programs(&x, 109 + 1)); /* the number after the last one that NVIDIA lists */
        assert_false(xids_add(&x, "2000", &bad));
        assert_true(str_eq(bad, STR("2000")));
        assert_false(xids_of_programs(&x, 2000));
}

/* MIG is reconfigured many times, each time with devices that report XIDs. */
static void the_number_of_remembered_xids_is_limited(void **state) {
        struct gpu_device d = { .kind = GPU_FULL, .name = "gpu-0" };
        (void)state;
        const struct offered_taint *t;
        for (int i = 0; i < 3000; i++) {
                d.uuid = arena_printf(arena, "GPU-%d", i);
                struct nvml_event ev = { .kind = NVML_XID, .uuid = str_from(d.uuid), .xid = 79 };
                assert_true(health_xid(health, &(struct gpu_devices){ .items = &d, .n = 1 }, &ev, on_reported,
                                       NULL));
                assert_int_equal(health_taints(health, &d, arena, &t), 1);
                /* The 1024 newest are remembered. */
                d.uuid = arena_printf(arena, "GPU-%d", i < 1024 ? 0 : i - 1023);
                assert_int_equal(health_taints(health, &d, arena, &t), 1);
                d.uuid = arena_printf(arena, "GPU-%d", i - 1024);
                assert_int_equal(health_taints(health, &d, arena, &t), 0);
        }
}

/* ---- state across a restart ---- */

/* failure: the plugin restarts -> XIDs of this boot stay reported, and those before a reboot do not */
static void xids_of_this_boot_outlive_the_process(void **state) {
        (void)state;
        watched("GPU-0", 0, "GPU-1", 0);
        assert_true(xid("GPU-0", 79, -1, -1));
        assert_true(xid("GPU-1", 31, 1, 0));
        restart("boot-1");
        assert_string_equal(taints(0), "gpu.nvidia.com/xid=79:NoSchedule");
        assert_string_equal(taints(1), "gpu.nvidia.com/xid=31:None");
        assert_string_equal(taints(2), "");
        assert_int_equal(reported, 2); /* as before */
        /* The watch does not clear earlier XIDs. */
        watched("GPU-0", 0, "GPU-1", 0);
        restart("boot-1");
        assert_string_equal(taints(0), "gpu.nvidia.com/xid=79:NoSchedule");
        assert_false(xid("GPU-0", 31, -1, -1));
        health_forget_xids(health);
        assert_string_equal(taints(0), "");
        assert_true(xid("GPU-0", 79, -1, -1));
        restart("boot-2");
        assert_string_equal(taints(0), "");
}

/* failure: the plugin restarts while a GPU is lost -> it stays lost until NVML answers */
static void a_lost_gpu_stays_lost_until_nvml_answers(void **state) {
        (void)state;
        watched("GPU-0", 0, "GPU-1", 15);
        restart("boot-1");
        assert_string_equal(taints(0), "");
        assert_string_equal(taints(1), "gpu.nvidia.com/gpu-lost=:NoSchedule");
        assert_string_equal(taints(2), "gpu.nvidia.com/gpu-lost=:NoSchedule");
        assert_true(health_unwatched(health));
        assert_string_equal(taints(0), "gpu.nvidia.com/unmonitored=:None");
        restart("boot-1");
        assert_string_equal(taints(1), "gpu.nvidia.com/gpu-lost=:NoSchedule");
        watched("GPU-0", 0, "GPU-1", 0);
        assert_string_equal(taints(1), "");
}

/* failure: the record of health is corrupt -> the error is reported */
static void a_corrupt_health_record_is_an_error(void **state) {
        static const char *const texts[] = { "",
                                             "{",
                                             "[]",
                                             "{}",
                                             "{\"bootID\":\"boot-1\",\"xids\":[{\"uuid\":\"GPU-0\"}]}",
                                             "{\"bootID\":\"boot-1\",\"lost\":[7]}" };
        static const char negative[] =
                "{\"bootID\":\"boot-1\",\"xids\":[{\"uuid\":\"GPU-0\",\"xid\":-1}],\"lost\":[]}";
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                assert_int_equal(recall(texts[i], strlen(texts[i]), "boot-1"), -1);
        assert_int_equal(recall(negative, sizeof negative - 1, "boot-1"), 0);
        assert_string_equal(taints(0), "");
        static const char zero[] = "{\"bootID\":\"boot-1\",\"xids\":[{\"uuid\":\"GPU-0\",\"xid\":0}]}";
        assert_int_equal(recall(zero, sizeof zero - 1, "boot-1"), 0);
        assert_string_equal(taints(0), "gpu.nvidia.com/xid=0:NoSchedule");
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(gpus_have_no_taint_before_the_first_watch),
                T(a_gpu_that_reports_an_xid_gets_no_new_pod),
                T(an_xid_of_a_program_is_reported_and_has_no_effect),
                T(later_xids_of_programs_change_nothing),
                T(an_xid_taints_the_named_mig_device_or_all),
                T(an_xid_of_the_gpu_outlives_its_mig_devices),
                T(an_xid_of_a_gpu_that_is_not_offered_is_remembered),
                T(only_the_lost_gpu_is_tainted),
                T(a_gpu_that_cannot_be_watched_is_reported_and_stays_usable),
                T(the_same_answer_changes_nothing),
                T(an_invalid_xid_is_named_and_the_others_count),
                T(at_most_256_xids_can_be_added),
                T(the_number_of_remembered_xids_is_limited),
                T(xids_of_this_boot_outlive_the_process),
                T(a_lost_gpu_stays_lost_until_nvml_answers),
                T(a_corrupt_health_record_is_an_error),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
