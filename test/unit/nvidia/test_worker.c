/* SPDX-License-Identifier: Apache-2.0 */
/* The worker process with the stand-in of NVML: each call fails, hangs or crashes once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "nvidia/inventory.h"
#include "nvidia/nvml_session.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_worker.h"
#include "tree.h"

static const char *standin, *in_go; /* in_go: NULL if it could not be built */
static char *dir, *library, *sessions;
static uv_loop_t loop;
static struct nvml_client *client;

static int setup(void **state) {
        _cleanup_(freep) char *text = NULL;
        size_t n;
        struct err e;
        dir = tree_new();
        library = file_join(dir, "libnvidia-ml.so.1");
        sessions = file_join(dir, "libnvidia-ml.sessions");
        assert_int_equal(file_read(standin, 4 << 20, &text, &n, &e), 0);
        assert_int_equal(file_replace(library, text, n, 0755, &e), 0);
        tree_put(dir, "libnvidia-ml.sessions", "");
        uv_loop_init(&loop);
        client = nvml_client_new(&loop);
        return 0;
}

static int teardown(void **state) {
        nvml_client_free(client);
        uv_run(&loop, UV_RUN_DEFAULT);
        free(library);
        free(sessions);
        tree_remove(dir);
        return uv_loop_close(&loop);
}

struct outcome {
        bool called, ok;
        struct inventory in;
        struct err err;
};
static struct arena *arena;

static void on_answered(void *u, const struct str *json, const struct err *e) {
        struct outcome *o = u;
        o->called = true;
        o->ok = json != NULL;
        if (!json) {
                o->err = *e;
                return;
        }
        if (inventory_decode(*json, arena, &o->in, &o->err) < 0)
                fail_msg("%s: %.*s", o->err.msg, (int)json->n, json->p);
}

static struct outcome ask_for(const char *verb, const char *conf, unsigned timeout_ms) {
        struct outcome o = { 0 };
        tree_put(dir, "libnvidia-ml.conf", conf);
        arena_free(arena);
        arena = arena_new(4096);
        nvml_client_ask(client, library, verb, (struct nvml_limits){ timeout_ms, timeout_ms }, on_answered,
                        &o);
        while (!o.called)
                uv_run(&loop, UV_RUN_ONCE);
        return o;
}

static struct outcome ask(const char *conf, unsigned timeout_ms) {
        return ask_for(NVML_ASK_INVENTORY, conf, timeout_ms);
}

static void an_inventory_of_gpus_and_mig_devices(void **state) {
        struct outcome o =
                ask("DRIVER_VERSION=575.57.08\nGPU_COUNT=3\nGPU_NAME=\"NVIDIA H200\"\nARCHITECTURE=9\n"
                    "COMPUTE_CAPABILITY=90\nMEMORY_MIB=143771\nGPU1_MINOR=5\nGPU1_ADDRESSING_MODE=-1\n"
                    "GPU2_MIG=\"3g@0 1g+me@4 1c.2g@5\"\n",
                    30000);
        assert_true(o.ok);
        assert_string_equal(o.in.driver_version, "575.57.08");
        assert_int_equal(o.in.cuda_version, 13000);
        assert_int_equal(o.in.n_gpus, 3);
        const struct gpu_facts *g = o.in.gpus;
        assert_string_equal(g[0].name, "NVIDIA H200");
        assert_true(str_starts(g[0].uuid, "GPU-"));
        assert_int_equal(g[0].architecture, 9);
        assert_int_equal(g[0].brand, 14);
        assert_string_equal(g[0].compute_capability, "9.0");
        assert_int_equal(g[0].memory_bytes, INT64_C(143771) << 20);
        assert_string_equal(g[0].pci_bus_id, "00000008:01:00.0");
        assert_string_equal(g[0].addressing_mode, "ATS");
        assert_int_equal(g[0].mig_mode, 0);
        assert_int_equal(g[1].minor, 5);
        assert_null(g[1].addressing_mode);
        assert_int_equal(g[2].mig_mode, 1);
        assert_int_equal(g[2].n_mig, 3);
        const struct mig_facts *m = g[2].mig;
        assert_true(str_starts(m[0].uuid, "MIG-"));
        assert_int_equal(m[0].gpu_instance, 1);
        assert_int_equal(m[0].profile_id, 9);
        assert_int_equal(m[0].gi_profile, 2);
        assert_int_equal(m[0].size, 4);
        assert_int_equal(m[0].multiprocessors, 60);
        assert_int_equal(m[0].compute_slices, 3);
        assert_int_equal(m[1].gi_profile, 7);
        assert_int_equal(m[1].start, 4);
        assert_int_equal(m[2].gpu_slices, 2);
        assert_int_equal(m[2].compute_slices, 1);
        assert_string_equal(m[2].name, "MIG 2g.34gb");
}

/* failure: NVML was queried -> no session stays open */
static void no_session_is_left_open(void **state) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        assert_true(ask("GPU_COUNT=2\n", 30000).ok);
        assert_true(ask("GPU_COUNT=2\n", 30000).ok);
        assert_int_equal(file_read(sessions, 4096, &text, NULL, &e), 0);
        assert_string_equal(text, "begin\nend\nbegin\nend\n");
}

/* The required and the optional facts of a GPU or a MIG device. */
static const char *const needed[] = { "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID",
                                      "nvmlDeviceGetMinorNumber" };
static const char *const optional[] = { "nvmlDeviceGetName",         "nvmlDeviceGetBrand",
                                        "nvmlDeviceGetArchitecture", "nvmlDeviceGetCudaComputeCapability",
                                        "nvmlDeviceGetMemoryInfo",   "nvmlDeviceGetPciInfo_v3",
                                        "nvmlDeviceGetMigMode",      "nvmlDeviceGetAddressingMode" };
/* The facts that only an old library or an old GPU may lack. */
static const char *const lasting[] = { "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetPciInfo_v3",
                                       "nvmlDeviceGetMigMode" };
static const char *const mig[] = {
        "nvmlDeviceGetGpuInstanceId",          "nvmlDeviceGetComputeInstanceId",
        "nvmlDeviceGetGpuInstanceById",        "nvmlGpuInstanceGetInfo",
        "nvmlDeviceGetGpuInstanceProfileInfo", "nvmlGpuInstanceGetComputeInstanceById",
        "nvmlComputeInstanceGetInfo_v2",       "nvmlGpuInstanceGetComputeInstanceProfileInfo"
};

/* failure: any call of NVML fails for a GPU -> one device or attribute is missing */
static void a_failing_call_loses_one_device_or_one_attribute(void **state) {
        char conf[256];
        for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
                snprintf(conf, sizeof conf, "GPU_COUNT=2\nGPU1_FAIL_%s=999\n", needed[i]);
                struct outcome o = ask(conf, 30000);
                assert_true(o.ok && o.in.n_gpus == 2);
                assert_null(o.in.gpus[0].failure.call);
                assert_string_equal(o.in.gpus[1].failure.call, needed[i]);
                assert_int_equal(o.in.gpus[1].failure.error, 999);
        }
        for (size_t i = 0; i < ARRAY_LEN(optional); i++) {
                snprintf(conf, sizeof conf, "GPU_COUNT=2\nGPU1_FAIL_%s=3\n", optional[i]);
                struct outcome o = ask(conf, 30000);
                assert_true(o.ok && o.in.n_gpus == 2);
                assert_null(o.in.gpus[1].failure.call);
                snprintf(conf, sizeof conf, "GPU_COUNT=2\nGPU1_FAIL_%s=15\n", optional[i]);
                o = ask(conf, 30000);
                assert_string_equal(o.in.gpus[1].failure.call, optional[i]); /* it is lost */
        }
        for (size_t i = 0; i < ARRAY_LEN(mig); i++) {
                snprintf(conf, sizeof conf, "GPU_COUNT=1\nGPU0_MIG=\"3g@0\"\nFAIL_%s=999\n", mig[i]);
                struct outcome o = ask(conf, 30000);
                assert_true(o.ok && o.in.gpus[0].n_mig == 1);
                assert_non_null(o.in.gpus[0].mig[0].failure.call);
        }
}

/* failure: NVML fails to report a GPU's MIG mode once -> the GPU is not offered as a whole GPU */
static void a_gpu_whose_mig_mode_is_unknown_fails(void **state) {
        char conf[256];
        for (size_t i = 0; i < ARRAY_LEN(lasting); i++) {
                snprintf(conf, sizeof conf, "GPU_COUNT=2\nGPU1_MIG=\"3g@0\"\nGPU1_FAIL_%s=999\n", lasting[i]);
                struct outcome o = ask(conf, 30000);
                assert_true(o.ok && o.in.n_gpus == 2);
                assert_null(o.in.gpus[0].failure.call);
                assert_string_equal(o.in.gpus[1].failure.call, lasting[i]);
                assert_int_equal(o.in.gpus[1].failure.error, 999);
                snprintf(conf, sizeof conf, "GPU_COUNT=2\nGPU1_FAIL_%s=13\n", lasting[i]);
                o = ask(conf, 30000);
                assert_true(o.ok && o.in.n_gpus == 2);
                assert_null(o.in.gpus[1].failure.call);
        }
}

static void some_gpus_are_queried_without_the_others(void **state) {
        struct outcome o = ask_for(NVML_ASK_GPUS "3,1,9",
                                   "GPU_COUNT=4\nGPU0_CRASH_nvmlDeviceGetUUID=1\nGPU3_MIG=\"3g@0\"\n"
                                   "GPU1_FAIL_nvmlDeviceGetMigMode=3\n",
                                   30000);
        assert_true(o.ok && o.in.n_gpus == 2);
        assert_int_equal(o.in.gpus[0].index, 3);
        assert_true(str_starts(o.in.gpus[0].uuid, "GPU-"));
        assert_int_equal(o.in.gpus[0].mig_mode, 1);
        assert_int_equal(o.in.gpus[0].n_mig, 1);
        assert_true(str_starts(o.in.gpus[0].mig[0].uuid, "MIG-"));
        assert_int_equal(o.in.gpus[1].mig_mode, 0);
        o = ask_for(NVML_ASK_GPUS "0", "GPU_COUNT=1\nFAIL_nvmlDeviceGetMigMode=999\n", 30000);
        assert_true(o.ok && o.in.n_gpus == 1);
        assert_string_equal(o.in.gpus[0].failure.call, "nvmlDeviceGetMigMode");
        o = ask_for(NVML_ASK_GPUS "0,x", "GPU_COUNT=1\n", 30000);
        assert_false(o.ok);
        assert_non_null(strstr(o.err.msg, "invalid index"));
}

static void hangs_and_crashes(const char *const *calls, size_t n) {
        char conf[256];
        for (size_t i = 0; i < n; i++) {
                snprintf(conf, sizeof conf, "GPU_COUNT=1\nGPU0_MIG=\"3g@0\"\nCRASH_%s=1\n", calls[i]);
                struct outcome o = ask(conf, 30000);
                assert_false(o.ok);
                assert_int_equal(o.err.code, NVML_CRASHED);
                nvml_client_free(client);
                client = nvml_client_new(&loop);
                snprintf(conf, sizeof conf, "GPU_COUNT=1\nGPU0_MIG=\"3g@0\"\nHANG_%s=1\n", calls[i]);
                o = ask(conf, 200);
                assert_false(o.ok);
                assert_int_equal(o.err.code, NVML_HUNG);
                nvml_client_free(client);
                client = nvml_client_new(&loop);
        }
}

/* failure: any call of NVML hangs or crashes -> only its process ends */
static void a_call_that_hangs_or_crashes_ends_the_process(void **state) {
        hangs_and_crashes(needed, ARRAY_LEN(needed));
        hangs_and_crashes(optional, ARRAY_LEN(optional));
        hangs_and_crashes(mig, ARRAY_LEN(mig));
        assert_true(ask("GPU_COUNT=1\n", 30000).ok);
}

/* Each GPU is attached well within the limit, but all of them together exceed it. */
/* failure: NVML attaches many GPUs slowly -> the time limit applies to each GPU */
static void the_time_limit_applies_to_each_gpu(void **state) {
        struct outcome o = ask("GPU_COUNT=8\nSLEEP_MS_nvmlDeviceGetHandleByIndex=300\n", 2000);
        if (!o.ok)
                fail_msg("%s", o.err.msg);
        assert_int_equal(o.in.n_gpus, 8);
        for (unsigned i = 0; i < 8; i++)
                assert_null(o.in.gpus[i].failure.call);
}

/* failure: NVML hangs at one GPU -> the error names that GPU */
static void the_gpu_at_which_nvml_hangs_is_named(void **state) {
        struct outcome o = ask("GPU_COUNT=3\nGPU1_HANG_nvmlDeviceGetHandleByIndex=1\n", 1000);
        assert_false(o.ok);
        assert_int_equal(o.err.code, NVML_HUNG);
        assert_non_null(strstr(o.err.msg, "after a query of GPU 1,"));
}

static void a_node_without_gpus_has_none(void **state) {
        struct outcome o = ask("GPU_COUNT=0\n", 30000);
        assert_true(o.ok);
        assert_int_equal(o.in.n_gpus, 0);
        o = ask("INIT_ERROR=9\n", 30000);
        assert_false(o.ok);
        assert_int_equal(o.err.code, 9);
}

/* Go's runtime has its own threads and signal handlers, and stays when a session ends. */
/* failure: the NVML library is a foreign one, written in Go -> it is queried as well */
static void an_nvml_library_written_in_go_works(void **state) {
        if (!in_go)
                skip();
        for (unsigned again = 0; again < 3; again++) {
                struct outcome o = { 0 };
                arena_free(arena);
                arena = arena_new(4096);
                nvml_client_ask(client, in_go, NVML_ASK_INVENTORY, NVML_LIMITS, on_answered, &o);
                while (!o.called)
                        uv_run(&loop, UV_RUN_ONCE);
                if (!o.ok)
                        fail_msg("%s", o.err.msg);
                assert_string_equal(o.in.driver_version, "550.163.01");
                assert_int_equal(o.in.n_gpus, 8);
                assert_string_equal(o.in.gpus[7].name, "NVIDIA A100-SXM4-40GB");
                assert_int_equal(o.in.gpus[7].minor, 7);
                assert_int_equal(o.in.gpus[7].memory_bytes, INT64_C(40) << 30);
                assert_null(o.in.gpus[7].pci_bus_id);
        }
}

/* A file of /proc whose text the test sets replaces the driver's parameters. */
static bool driver_reports(const char *params) {
        return unshare(CLONE_NEWNS | CLONE_NEWUTS) == 0 &&
               mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) == 0 &&
               setdomainname(params, strlen(params)) == 0 &&
               mount("tmpfs", "/proc/driver", "tmpfs", 0, NULL) == 0 &&
               mkdir("/proc/driver/nvidia", 0755) == 0 &&
               close(creat("/proc/driver/nvidia/params", 0644)) == 0 &&
               mount("/proc/sys/kernel/domainname", "/proc/driver/nvidia/params", NULL, MS_BIND, NULL) == 0;
}

static void worker_reads(char **ret) {
        _cleanup_(freep) char *path =
                xasprintf("/proc/%d/root/proc/driver/nvidia/params", (int)nvml_client_pid(client));
        struct err e;
        assert_int_equal(file_read(path, 4096, ret, NULL, &e), 0);
}

/* Then NVIDIA's library creates no device nodes. */
/* failure: maskNvidiaDriverParams is on -> NVML creates no device nodes in the plugin's container */
static void the_drivers_parameters_are_covered_on_request(void **state) {
        _cleanup_(freep) char *plain = NULL, *covered = NULL, *ours = NULL;
        struct err e;
        if (!driver_reports("ModifyDeviceFiles: 1"))
                skip();
        assert_true(ask("GPU_COUNT=1\n", 30000).ok);
        worker_reads(&plain);
        assert_string_equal(plain, "ModifyDeviceFiles: 1\n");
        nvml_client_free(client);
        client = nvml_client_new(&loop);
        setenv(NVML_WORKER_MASK, "true", 1);
        assert_true(ask("GPU_COUNT=1\n", 30000).ok);
        assert_true(ask("GPU_COUNT=1\n", 30000).ok);
        worker_reads(&covered);
        assert_string_equal(covered, "ModifyDeviceFiles: 0\n");
        assert_int_equal(file_read("/proc/driver/nvidia/params", 4096, &ours, NULL, &e), 0);
        assert_string_equal(ours, "ModifyDeviceFiles: 1\n");
        /* A file that cannot be covered is an error. */
        nvml_client_free(client);
        client = nvml_client_new(&loop);
        assert_int_equal(umount2("/proc/driver/nvidia/params", MNT_DETACH), 0);
        int fd = open("/proc/driver/nvidia/params", O_WRONLY);
        assert_int_equal(write(fd, "ModifyDeviceFiles: 1\n", 21), 21);
        close(fd);
        struct outcome o = ask("GPU_COUNT=1\n", 30000);
        unsetenv(NVML_WORKER_MASK);
        assert_false(o.ok);
        assert_non_null(strstr(o.err.msg, "maskNvidiaDriverParams"));
}

int main(int argc, char **argv) {
        if (argc > 2 && strcmp(argv[1], NVML_WORKER) == 0)
                return nvml_worker_main(argc - 2, argv + 2);
        if (argc < 2)
                return 2;
        standin = argv[1];
        in_go = argc > 2 ? argv[2] : NULL;
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(an_inventory_of_gpus_and_mig_devices),
                T(no_session_is_left_open),
                T(a_failing_call_loses_one_device_or_one_attribute),
                T(a_gpu_whose_mig_mode_is_unknown_fails),
                T(some_gpus_are_queried_without_the_others),
                T(a_call_that_hangs_or_crashes_ends_the_process),
                T(the_time_limit_applies_to_each_gpu),
                T(the_gpu_at_which_nvml_hangs_is_named),
                T(a_node_without_gpus_has_none),
                T(the_drivers_parameters_are_covered_on_request),
                T(an_nvml_library_written_in_go_works),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        arena_free(arena);
        return failed;
}
