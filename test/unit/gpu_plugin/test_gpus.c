/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a node that changes, and failures of NVML. In virtual time (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loop.h"
#include "gpu_plugin/gpus.h"
#include "nvidia/nvml_worker.h"
#include "tree.h"

static const char *standin;
static char *dir, *proc_driver, *sys, *own_dev;
static uv_loop_t loop;
static struct gpus *gpus;
static unsigned changes, hung, crashed;

static void on_changed(void *u) {
        changes++;
}

static void on_failed(void *u, const char *kind) {
        if (streq(kind, "hung"))
                hung++;
        else
                crashed++;
}

static void put_library(void) {
        _cleanup_(freep) char *text = NULL;
        _cleanup_(freep) char *library = file_join(dir, "usr/lib64/libnvidia-ml.so.1");
        size_t n;
        struct err e;
        assert_int_equal(file_read(standin, 4 << 20, &text, &n, &e), 0);
        assert_int_equal(file_replace(library, text, n, 0755, &e), 0);
}

static void conf(const char *text) {
        tree_put(dir, "usr/lib64/libnvidia-ml.conf", text);
}

static void start(void) {
        gpus = gpus_new(&loop, &(struct gpus_options){ .root = { dir, dir },
                                                       .proc_driver = proc_driver,
                                                       .sys = sys,
                                                       .own_dev = own_dev,
                                                       .changed = on_changed,
                                                       .verified = on_changed,
                                                       .failed = on_failed });
}

static int setup(void **state) {
        dir = tree_new();
        proc_driver = file_join(dir, "proc/driver/nvidia");
        sys = file_join(dir, "sys");
        own_dev = tree_new();
        tree_put(dir, "usr/lib64/libnvidia-ml.sessions", "");
        tree_put(dir, "proc/driver/nvidia/gpus/0/information", "");
        changes = hung = crashed = 0;
        uv_loop_init(&loop);
        return 0;
}

static int teardown(void **state) {
        gpus_free(gpus);
        uv_run(&loop, UV_RUN_DEFAULT);
        free(proc_driver);
        free(sys);
        tree_remove(own_dev);
        tree_remove(dir);
        return uv_loop_close(&loop);
}

static void until_changed(void) {
        for (unsigned before = changes; changes == before;)
                uv_run(&loop, UV_RUN_ONCE);
}

/* Starts with the library of NVML, and waits for its first answer. */
static void start_with(const char *text) {
        put_library();
        conf(text);
        start();
        until_changed();
}

static void on_timer(void *u) {
        *(bool *)u = true;
}

static void run_for(uint64_t ms) {
        struct loop_timer t = { 0 };
        bool over = false;
        loop_timer_init(&t, &loop, on_timer, &over);
        loop_timer_start(&t, ms);
        while (!over)
                uv_run(&loop, UV_RUN_ONCE);
        loop_timer_done(&t);
}

static unsigned sessions(void) {
        _cleanup_(freep) char *path = file_join(dir, "usr/lib64/libnvidia-ml.sessions"), *text = NULL;
        unsigned n = 0;
        struct err e;
        assert_int_equal(file_read(path, 1 << 20, &text, NULL, &e), 0);
        for (const char *p = text; (p = strstr(p, "begin")); p++)
                n++;
        return n;
}

static bool verified(const char *name, uint64_t since_ms) {
        const struct gpu_device *d = gpu_device_find(gpus_devices(gpus), name);
        assert_non_null(d);
        return gpus_verify(gpus, d, since_ms);
}

/* Begins to verify the device, as a Prepare does. Returns the time. */
static uint64_t verify_now(const char *name) {
        run_for(1000);
        uint64_t since = loop_now_ms(&loop);
        assert_false(verified(name, since));
        return since;
}

/* A Prepare of a GPU for which NVML fails. Nothing outside of NVML shows the failure. */
static void prepare_lost(const char *name) {
        verify_now(name);
        assert_true(gpus_hold(gpus));
        until_changed();
        assert_false(gpus_hold(gpus));
        while (!gpus_hold(gpus))
                until_changed();
}

static void nvml_is_queried_once_while_nothing_changes(void **state) {
        put_library();
        conf("GPU_COUNT=2\n");
        start();
        assert_false(gpus_get(gpus)->known);
        assert_string_equal(gpus_get(gpus)->reason, "DriverNotQueried");
        assert_int_equal(gpus_devices(gpus)->n, 0);
        until_changed();
        assert_true(gpus_get(gpus)->known);
        assert_string_equal(gpus_get(gpus)->reason, "");
        assert_int_equal(gpus_devices(gpus)->n, 2);
        gpus_poll_fast(gpus, true);
        run_for(5000);
        assert_true(gpus_hold(gpus));
        assert_int_equal(changes, 1);
        assert_int_equal(sessions(), 1);
}

/* Creates the driver's dev/ with the node of a GPU. */
static void put_device_node(void) {
        _cleanup_(freep) char *path = file_join(dir, "dev/nvidia0");
        tree_put(dir, "dev/x", "");
        if (mknod(path, S_IFCHR | 0600, makedev(195, 0)) < 0)
                skip(); /* possible only as root */
}

static void device_nodes_exist_before_nvml_is_queried(void **state) {
        _cleanup_(freep) char *copy = file_join(own_dev, "nvidia0");
        put_library();
        conf("GPU_COUNT=1\n");
        start();
        put_device_node();
        until_changed();
        assert_int_equal(access(copy, F_OK), 0);
}

/* failure: the driver container creates its dev/ after the plugin has started -> NVML is queried again */
static void device_nodes_that_appear_later_are_noticed(void **state) {
        start_with("GPU_COUNT=1\n");
        assert_true(gpus_hold(gpus));
        put_device_node();
        assert_false(gpus_hold(gpus));
        until_changed();
        assert_int_equal(sessions(), 2);
}

static bool has_children(void) {
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        struct err e;
        assert_int_equal(file_read("/proc/thread-self/children", 4096, &text, &n, &e), 0);
        return n > 0;
}

/* An open session would prevent an upgrade of the driver and a reset of a GPU. */
/* failure: a node is idle -> no NVML session is open, so that GPUs can be reset */
static void an_idle_node_of_ten_minutes_has_one_session_and_no_process_of_nvml(void **state) {
        start_with("GPU_COUNT=2\n");
        assert_true(has_children());
        run_for(600000);
        assert_int_equal(sessions(), 1);
        assert_int_equal(changes, 1);
        assert_false(has_children());
}

/* failure: MIG devices change just before a Prepare -> the Prepare sees the change */
static void a_change_of_the_node_is_noticed_by_the_next_prepare(void **state) {
        start_with("GPU_COUNT=1\n");
        conf("GPU_COUNT=1\nGPU0_MIG=\"3g@0 1g@4\"\n");
        tree_put(dir, "proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
        assert_false(gpus_hold(gpus));
        tree_put(dir, "proc/driver/nvidia/capabilities/gpu0/mig/gi2/access", "DeviceFileMinor: 21\n");
        assert_false(gpus_hold(gpus));
        until_changed();
        assert_int_equal(gpus_devices(gpus)->n, 2);
        assert_true(gpus_hold(gpus));
        assert_int_equal(sessions(), 2);
        /* A caller that waits is notified even if nothing has changed. */
        tree_put(dir, "proc/driver/nvidia/capabilities/gpu0/mig/gi2/access", "DeviceFileMinor: 22\n");
        assert_false(gpus_hold(gpus));
        until_changed();
        assert_true(gpus_hold(gpus));
        assert_int_equal(gpus_devices(gpus)->n, 2);
}

/* failure: NVML crashes -> known GPUs stay offered, and the failures are reported */
static void known_gpus_stay_while_nvml_fails(void **state) {
        start_with("GPU_COUNT=2\n");
        conf("CRASH=1\n");
        tree_put(dir, "proc/driver/nvidia/gpus/1/information", "");
        gpus_poll_fast(gpus, true);
        until_changed(); /* the third failure is reported */
        assert_int_equal(gpus_get(gpus)->failures, GPUS_STALE);
        assert_int_equal(crashed, GPUS_STALE);
        assert_int_equal(hung, 0);
        assert_true(strstr(gpus_get(gpus)->error, "signal 11") != NULL);
        assert_int_equal(gpus_devices(gpus)->n, 2);
        assert_true(gpus_get(gpus)->known);
        assert_string_equal(gpus_get(gpus)->reason, "");
        assert_true(str_ends(gpus_get(gpus)->library, "/libnvidia-ml.so.1")); /* it is still watched */
        assert_false(gpus_hold(gpus));
        conf("GPU_COUNT=3\n");
        until_changed();
        assert_int_equal(gpus_devices(gpus)->n, 3);
        assert_int_equal(gpus_get(gpus)->failures, 0);
}

/* failure: NVML hangs -> its process is killed, and known GPUs stay offered */
static void known_gpus_stay_while_nvml_hangs(void **state) {
        start_with("GPU_COUNT=2\n");
        conf("HANG=1\n");
        tree_put(dir, "proc/driver/nvidia/gpus/1/information", "");
        gpus_poll_fast(gpus, true);
        until_changed();
        assert_int_equal(gpus_get(gpus)->failures, GPUS_STALE);
        assert_int_equal(hung, GPUS_STALE);
        assert_int_equal(gpus_devices(gpus)->n, 2);
        conf("GPU_COUNT=3\n");
        until_changed();
        assert_int_equal(gpus_devices(gpus)->n, 3);
}

/* failure: NVML fails before its first answer -> the node offers nothing and reports why */
static void a_failed_first_answer_offers_nothing(void **state) {
        start_with("FAIL_x=1\nINIT_ERROR=999\n");
        assert_false(gpus_get(gpus)->known);
        assert_string_equal(gpus_get(gpus)->reason, "DriverNotReady");
        assert_true(strstr(gpus_get(gpus)->message, "999") != NULL);
}

/* failure: the driver is missing or unloaded -> the node reports it until the driver returns */
static void a_missing_driver_is_reported_until_it_is_installed(void **state) {
        start();
        until_changed();
        assert_true(gpus_get(gpus)->known);
        assert_string_equal(gpus_get(gpus)->reason, "DriverNotFound");
        assert_true(gpus_hold(gpus));
        gpus_poll_fast(gpus, true);
        put_library();
        conf("INIT_ERROR=9\n");
        until_changed();
        assert_true(gpus_get(gpus)->known);
        assert_string_equal(gpus_get(gpus)->reason, "DriverNotReady");
        conf("GPU_COUNT=1\n");
        until_changed();
        assert_string_equal(gpus_get(gpus)->reason, "");
        assert_int_equal(gpus_devices(gpus)->n, 1);
}

/* failure: a GPU falls off the bus -> it is withheld after three failures */
static void a_gpu_that_fails_three_times_is_withheld(void **state) {
        static const char without_mig[] = "GPU_COUNT=2\nGPU1_FAIL_nvmlDeviceGetMigMode=3\n";
        static const char *const confs[][2] = {
                { "GPU_COUNT=2\n", "GPU1_FAIL_nvmlDeviceGetHandleByIndex=15\n" },
                { "GPU_COUNT=2\n", "GPU1_FAIL_nvmlDeviceGetUUID=999\n" },
                { without_mig, "GPU1_FAIL_nvmlDeviceGetHandleByIndex=16\n" },
        };
        for (size_t i = 0; i < ARRAY_LEN(confs); i++) {
                _cleanup_(freep) char *failing = xasprintf("%s%s", confs[i][0], confs[i][1]);
                start_with(confs[i][0]);
                unsigned asked = sessions();
                conf(failing);
                prepare_lost("gpu-1");
                assert_int_equal(sessions() - asked, 4); /* one of this GPU, and three of all */
                assert_int_equal(gpus_devices(gpus)->n, 1);
                assert_int_equal(gpus_devices(gpus)->n_left_out, 1);
                assert_string_equal(gpus_get(gpus)->reason, "");
                gpus_free(gpus);
        }
        gpus = NULL;
}

/* failure: NVML fails for a MIG device -> the device is withheld after three failures */
static void a_mig_device_that_fails_three_times_is_withheld(void **state) {
        static const char *const calls[] = { "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetMaxMigDeviceCount" };
        char text[256];
        start_with("GPU_COUNT=2\nGPU0_MIG=\"3g@0\"\n");
        for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
                assert_int_equal(gpus_devices(gpus)->n, 2);
                unsigned asked = sessions();
                snprintf(text, sizeof text, "GPU_COUNT=2\nGPU0_MIG=\"3g@0\"\nFAIL_%s=999\n", calls[i]);
                conf(text);
                prepare_lost(gpus_devices(gpus)->items[0].name);
                assert_int_equal(sessions() - asked, 4);
                assert_int_equal(gpus_devices(gpus)->n, 1);
                conf("GPU_COUNT=2\nGPU0_MIG=\"3g@0\"\n");
                until_changed();
        }
        assert_int_equal(gpus_devices(gpus)->n, 2);
}

/* A reset does not change the fingerprint. */
/* failure: a GPU that was left out is reset -> it is offered again */
static void a_gpu_that_was_left_out_is_offered_when_it_answers_again(void **state) {
        start_with("GPU_COUNT=2\nGPU1_FAIL_nvmlDeviceGetHandleByIndex=15\n");
        assert_int_equal(gpus_devices(gpus)->n, 1);
        conf("GPU_COUNT=2\n");
        run_for(120000);
        assert_int_equal(gpus_devices(gpus)->n, 2);
        /* The same for a GPU that was offered. */
        conf("GPU_COUNT=2\nGPU1_FAIL_nvmlDeviceGetHandleByIndex=15\n");
        prepare_lost("gpu-1");
        assert_int_equal(gpus_devices(gpus)->n, 1);
        unsigned asked = sessions(), before = changes;
        run_for(600000);
        assert_in_range(sessions() - asked, 6, 10); /* about once a minute */
        assert_int_equal(changes, before);
        conf("GPU_COUNT=2\n");
        run_for(120000);
        assert_int_equal(gpus_devices(gpus)->n, 2);
        asked = sessions();
        run_for(600000);
        assert_int_equal(sessions(), asked);
        /* And for a MIG device. */
        conf("GPU_COUNT=2\nGPU0_MIG=\"3g@0 1g@4\"\nFAIL_nvmlComputeInstanceGetInfo_v2=999\n");
        tree_put(dir, "proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
        until_changed();
        assert_int_equal(gpus_devices(gpus)->n, 1);
        conf("GPU_COUNT=2\nGPU0_MIG=\"3g@0 1g@4\"\n");
        run_for(120000);
        assert_int_equal(gpus_devices(gpus)->n, 3);
}

/* failure: a second GPU is lost -> it is queried three times before it is withheld */
static void a_gpu_lost_beside_a_left_out_one_is_queried_three_times(void **state) {
        start_with("GPU_COUNT=3\nGPU1_FAIL_nvmlDeviceGetHandleByIndex=15\n");
        assert_int_equal(gpus_devices(gpus)->n, 2);
        unsigned asked = sessions();
        conf("GPU_COUNT=3\nGPU1_FAIL_nvmlDeviceGetHandleByIndex=15\nGPU2_FAIL_nvmlDeviceGetHandleByIndex="
             "15\n");
        prepare_lost("gpu-2");
        assert_int_equal(gpus_devices(gpus)->n, 1);
        assert_int_equal(sessions() - asked, 4);
}

/* failure: NVML stops listing a GPU -> it is withheld after three queries, and offered when listed again */
static void a_gpu_that_is_not_listed_three_times_is_withheld(void **state) {
        start_with("GPU_COUNT=2\n");
        run_for(1000);
        unsigned asked = sessions();
        conf("GPU_COUNT=1\n");
        const struct gpu_device *d = gpu_device_find(gpus_devices(gpus), "gpu-1");
        assert_false(gpus_verify(gpus, d, loop_now_ms(&loop)));
        until_changed();
        until_changed();
        assert_int_equal(sessions() - asked, 4); /* one of this GPU, and three of all */
        assert_int_equal(gpus_devices(gpus)->n, 1);
        conf("GPU_COUNT=2\n");
        run_for(120000);
        assert_int_equal(gpus_devices(gpus)->n, 2);
        asked = sessions();
        run_for(600000);
        assert_int_equal(sessions(), asked);
}

/* failure: NVML reports impossible values for a GPU -> only this GPU is left out */
static void a_gpu_with_impossible_values_hides_no_other(void **state) {
        start_with("GPU_COUNT=8\nGPU1_UUID=\"GPU-0123_45\"\nGPU2_UUID=\"GPU-\xff\xfe\"\n");
        assert_string_equal(gpus_get(gpus)->reason, "");
        assert_int_equal(gpus_devices(gpus)->n, 6);
        assert_int_equal(gpus_devices(gpus)->n_left_out, 2);
        assert_string_equal(gpus_devices(gpus)->left_out[0].what, "GPU 1");
        assert_non_null(strstr(gpus_devices(gpus)->left_out[0].why, "has an invalid UUID"));
}

/* failure: persistence mode is off -> a metric counts the GPUs */
static void gpus_without_persistence_mode_are_counted(void **state) {
        start_with("GPU_COUNT=3\nPERSISTENCE_MODE=0\nGPU1_PERSISTENCE_MODE=1\n");
        assert_int_equal(gpus_devices(gpus)->n, 3);
        assert_int_equal(gpus_devices(gpus)->n_persistence_off, 2);
}

/* The offered devices change without a call of gpus_hold(). */
static void until_changed_in_time(void) {
        struct loop_timer t = { 0 };
        unsigned before = changes;
        bool over = false;
        loop_timer_init(&t, &loop, on_timer, &over);
        loop_timer_start(&t, 35000);
        while (changes == before && !over)
                uv_run(&loop, UV_RUN_ONCE);
        loop_timer_done(&t);
        assert_false(over);
}

static void forget(const char *path) {
        _cleanup_(freep) char *full = file_join(dir, path);
        assert_int_equal(remove(full), 0);
}

static const char *driver_of_first(void) {
        const struct offered_device *d = &gpus_devices(gpus)->items[0].offered;
        for (size_t i = 0; i < d->n_attributes; i++) {
                if (streq(d->attributes[i].name, "driverVersion"))
                        return d->attributes[i].version;
        }
        return "";
}

/* failure: MIG devices, GPUs or the driver change -> the node offers the new devices within 35 s */
static void each_change_of_the_gpus_is_offered_within_35_seconds(void **state) {
        start_with("GPU_COUNT=2\n");
        assert_int_equal(gpus_devices(gpus)->n, 2);
        /* MIG devices are created and destroyed. */
        conf("GPU_COUNT=2\nGPU0_MIG=\"3g@0 1g@4\"\n");
        tree_put(dir, "proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
        until_changed_in_time();
        assert_int_equal(gpus_devices(gpus)->n, 3);
        conf("GPU_COUNT=2\n");
        forget("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access");
        until_changed_in_time();
        assert_int_equal(gpus_devices(gpus)->n, 2);
        /* A GPU is added and removed. */
        conf("GPU_COUNT=3\n");
        tree_put(dir, "proc/driver/nvidia/gpus/1/information", "");
        until_changed_in_time();
        assert_int_equal(gpus_devices(gpus)->n, 3);
        conf("GPU_COUNT=2\n");
        forget("proc/driver/nvidia/gpus/1/information");
        forget("proc/driver/nvidia/gpus/1");
        until_changed_in_time();
        assert_int_equal(gpus_devices(gpus)->n, 2);
        /* The driver is upgraded: its library is another file. */
        conf("GPU_COUNT=2\nDRIVER_VERSION=590.10.01\n");
        put_library();
        until_changed_in_time();
        assert_string_equal(driver_of_first(), "590.10.1");
        /* The driver is removed and returns. */
        forget("usr/lib64/libnvidia-ml.so.1");
        until_changed_in_time();
        assert_string_equal(gpus_get(gpus)->reason, "DriverNotFound");
        assert_int_equal(gpus_devices(gpus)->n, 0);
        put_library();
        until_changed_in_time();
        assert_string_equal(gpus_get(gpus)->reason, "");
        assert_int_equal(gpus_devices(gpus)->n, 2);
}

/* ---- the GPUs of Prepares ---- */

/* failure: NVML fails once for a GPU -> a Prepare of the GPU waits for the next answer and continues */
static void a_gpu_that_fails_once_stays_offered(void **state) {
        start_with("GPU_COUNT=2\n");
        conf("GPU_COUNT=2\nGPU1_FAIL_nvmlDeviceGetMigMode=999\n");
        uint64_t since = verify_now("gpu-1");
        until_changed();
        conf("GPU_COUNT=2\n"); /* perhaps after the next query has begun */
        assert_false(gpus_hold(gpus));
        while (!gpus_hold(gpus))
                until_changed();
        assert_true(verified("gpu-1", since));
        assert_int_equal(gpus_devices(gpus)->n, 2);
        assert_in_range(sessions(), 3, 4);
}

/* Nothing outside of NVML shows the change. */
/* failure: MIG mode is enabled and no MIG device is created -> the next Prepare of the GPU notices it */
static void a_change_of_the_mig_mode_alone_is_noticed_by_the_next_prepare(void **state) {
        start_with("GPU_COUNT=2\n");
        uint64_t since = verify_now("gpu-1");
        until_changed();
        assert_true(verified("gpu-1", since));
        assert_true(gpus_hold(gpus));
        assert_int_equal(sessions(), 2);
        conf("GPU_COUNT=2\nGPU1_MIG_MODE=1\n");
        verify_now("gpu-1");
        assert_true(gpus_hold(gpus));
        until_changed();
        assert_false(gpus_hold(gpus)); /* the devices are queried again */
        until_changed();
        assert_true(gpus_hold(gpus));
        assert_int_equal(gpus_devices(gpus)->n, 1);
        assert_string_equal(gpus_devices(gpus)->items[0].name, "gpu-0");
        assert_int_equal(gpus_devices(gpus)->n_left_out, 1);
        assert_string_equal(gpus_devices(gpus)->left_out[0].what, "gpu-1");
        assert_non_null(strstr(gpus_devices(gpus)->left_out[0].why, "it is in MIG mode"));
}

/* failure: MIG devices are replaced by others with the same IDs -> the next Prepare of one notices it */
static void replaced_mig_devices_are_noticed_by_the_next_prepare(void **state) {
        start_with("GPU_COUNT=1\nGPU0_MIG=\"3g@0\"\n");
        _cleanup_(freep) char *name = xstrdup(gpus_devices(gpus)->items[0].name);
        _cleanup_(freep) char *uuid = xstrdup(gpus_devices(gpus)->items[0].uuid);
        uint64_t since = verify_now(name);
        until_changed();
        assert_true(verified(name, since));
        assert_true(gpus_hold(gpus));
        conf("GPU_COUNT=1\nGPU0_MIG=\"3g@0\"\nGPU0_MIG_CREATED=1\n");
        prepare_lost(name);
        assert_int_equal(gpus_devices(gpus)->n, 1);
        assert_string_equal(gpus_devices(gpus)->items[0].name, name);
        assert_string_not_equal(gpus_devices(gpus)->items[0].uuid, uuid);
        assert_int_equal(sessions(), 4);
}

/* failure: MIG mode is disabled, and nothing else changes -> the GPU is offered within two minutes */
static void a_gpu_whose_mig_mode_is_disabled_is_offered_again(void **state) {
        start_with("GPU_COUNT=1\nGPU0_MIG_MODE=1\n");
        assert_string_equal(gpus_get(gpus)->reason, "NoGPUs");
        run_for(600000);
        assert_int_equal(changes, 1);
        conf("GPU_COUNT=1\n");
        run_for(120000);
        assert_string_equal(gpus_get(gpus)->reason, "");
        assert_int_equal(gpus_devices(gpus)->n, 1);
        unsigned asked = sessions();
        run_for(600000);
        assert_int_equal(sessions(), asked);
}

static void one_query_serves_all_prepares_that_wait(void **state) {
        start_with("GPU_COUNT=2\n");
        uint64_t since = verify_now("gpu-0");
        assert_false(verified("gpu-0", since));
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_false(verified("gpu-1", since)); /* the query of gpu-0 has begun */
        until_changed();
        assert_true(verified("gpu-0", since));
        assert_false(verified("gpu-1", since));
        until_changed();
        assert_true(verified("gpu-1", since));
        assert_int_equal(sessions(), 3);
}

/* failure: NVML is slow, and a claim has eight GPUs -> one session serves all of them */
static void one_session_queries_all_gpus_of_a_claim(void **state) {
        static const char *const names[] = { "gpu-0", "gpu-1", "gpu-2", "gpu-3",
                                             "gpu-4", "gpu-5", "gpu-6", "gpu-7" };
        start_with("GPU_COUNT=8\n");
        uint64_t since = verify_now(names[0]);
        for (size_t i = 1; i < ARRAY_LEN(names); i++)
                assert_false(verified(names[i], since));
        until_changed();
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                assert_true(verified(names[i], since));
        assert_int_equal(sessions(), 2);
}

/* failure: NVML crashes or hangs during a Prepare -> the Prepare continues with the known GPUs */
static void a_prepare_continues_when_nvml_crashes_or_hangs(void **state) {
        static const char *const confs[] = { "CRASH=1\n", "HANG=1\n" };
        for (size_t i = 0; i < ARRAY_LEN(confs); i++) {
                put_library();
                conf("GPU_COUNT=1\n");
                start();
                until_changed();
                conf(confs[i]);
                uint64_t since = verify_now("gpu-0");
                until_changed();
                assert_in_range(loop_now_ms(&loop) - since, 0, 11000);
                assert_true(verified("gpu-0", since));
                assert_true(gpus_hold(gpus));
                assert_int_equal(gpus_devices(gpus)->n, 1);
                run_for(5000); /* the next Prepares do not wait for it */
                assert_true(verified("gpu-0", loop_now_ms(&loop)));
                if (i == 1) { /* they do not wait while the same read still hangs */
                        run_for(70000);
                        assert_int_equal(hung, 0);
                        assert_true(verified("gpu-0", loop_now_ms(&loop)));
                }
                conf("GPU_COUNT=1\n");
                run_for(400000);
                since = verify_now("gpu-0");
                until_changed();
                assert_true(verified("gpu-0", since));
                gpus_free(gpus);
        }
        gpus = NULL;
}

/* failure: NVML fails for one GPU, then crashes or hangs -> a Prepare of another GPU continues */
static void a_failing_gpu_delays_no_other_while_nvml_crashes_or_hangs(void **state) {
        static const char *const confs[] = { "CRASH=1\n", "HANG=1\n" };
        for (size_t i = 0; i < ARRAY_LEN(confs); i++) {
                start_with("GPU_COUNT=2\n");
                conf("GPU_COUNT=2\nGPU1_FAIL_nvmlDeviceGetMigMode=999\n");
                verify_now("gpu-1");
                until_changed();
                conf(confs[i]); /* perhaps after the next query has begun, which then finds the failure again
                                 */
                while (!gpus_get(gpus)->failures) {
                        assert_false(gpus_hold(gpus));
                        until_changed();
                }
                assert_true(gpus_hold(gpus));
                uint64_t since = verify_now("gpu-0");
                while (!verified("gpu-0", since) || !gpus_hold(gpus))
                        until_changed();
                assert_int_equal(gpus_devices(gpus)->n, 2);
                gpus_free(gpus);
        }
        gpus = NULL;
}

/* failure: an answer of NVML disproves a device, then NVML crashes -> Prepares wait for the next answer */
static void prepares_wait_while_a_disproved_device_is_listed(void **state) {
        start_with("GPU_COUNT=2\n");
        conf("GPU_COUNT=2\nGPU1_MIG_MODE=1\nGPU0_CRASH_nvmlDeviceGetName=1\n");
        verify_now("gpu-1");
        until_changed();
        for (unsigned i = 0; i < GPUS_STALE; i++) {
                assert_false(gpus_hold(gpus));
                until_changed();
        }
        assert_int_equal(gpus_get(gpus)->failures, GPUS_STALE);
        assert_false(gpus_hold(gpus));
        conf("GPU_COUNT=2\nGPU1_MIG_MODE=1\n");
        while (!gpus_hold(gpus))
                until_changed();
        assert_int_equal(gpus_devices(gpus)->n, 1);
}

int main(int argc, char **argv) {
        if (argc > 2 && strcmp(argv[1], NVML_WORKER) == 0)
                return nvml_worker_main(argc - 2, argv + 2);
        if (argc < 2)
                return 2;
        standin = argv[1];
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(nvml_is_queried_once_while_nothing_changes),
                T(device_nodes_exist_before_nvml_is_queried),
                T(device_nodes_that_appear_later_are_noticed),
                T(an_idle_node_of_ten_minutes_has_one_session_and_no_process_of_nvml),
                T(a_change_of_the_node_is_noticed_by_the_next_prepare),
                T(known_gpus_stay_while_nvml_fails),
                T(known_gpus_stay_while_nvml_hangs),
                T(a_failed_first_answer_offers_nothing),
                T(a_missing_driver_is_reported_until_it_is_installed),
                T(a_gpu_that_fails_three_times_is_withheld),
                T(a_mig_device_that_fails_three_times_is_withheld),
                T(a_gpu_that_was_left_out_is_offered_when_it_answers_again),
                T(a_gpu_lost_beside_a_left_out_one_is_queried_three_times),
                T(a_gpu_that_is_not_listed_three_times_is_withheld),
                T(a_gpu_with_impossible_values_hides_no_other),
                T(gpus_without_persistence_mode_are_counted),
                T(each_change_of_the_gpus_is_offered_within_35_seconds),
                T(a_change_of_the_mig_mode_alone_is_noticed_by_the_next_prepare),
                T(replaced_mig_devices_are_noticed_by_the_next_prepare),
                T(a_gpu_whose_mig_mode_is_disabled_is_offered_again),
                T(a_gpu_that_fails_once_stays_offered),
                T(one_query_serves_all_prepares_that_wait),
                T(one_session_queries_all_gpus_of_a_claim),
                T(a_prepare_continues_when_nvml_crashes_or_hangs),
                T(a_failing_gpu_delays_no_other_while_nvml_crashes_or_hangs),
                T(prepares_wait_while_a_disproved_device_is_listed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
