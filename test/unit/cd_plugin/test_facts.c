/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a node, and the sampler while the driver root changes. In virtual time (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loop.h"
#include "cd_plugin/facts.h"
#include "nvidia/nvml_worker.h"
#include "tree.h"

#define CLUSTER "2df84740-d3cb-b5ce-4e7e-98352b5a71b5"

static const char *standin;
static struct nvml_gpu gpu;
static struct nvml_facts nvml;
static struct err major_error, nvml_error;
static struct facts_input in;

static int fresh(void **state) {
        (void)state;
        gpu = (struct nvml_gpu){ "NVIDIA GB200", "GPU-a", 0, 3, 0, 2, CLUSTER };
        nvml = (struct nvml_facts){ .driver_version = "580.95.05", .gpus = &gpu, .n_gpus = 1 };
        err_set(&major_error, ERR_NOT_FOUND, 0, "there is no character device 'nvidia-caps-imex-channels'");
        err_set(&nvml_error, ERR_NOT_FOUND, 0,
                "'libnvidia-ml.so.1' is not in driver root '/run/nvidia/driver'");
        in = (struct facts_input){ .nvml = &nvml,
                                   .nvml_error = &nvml_error,
                                   .channel_major = 240,
                                   .major_error = &major_error,
                                   .strict = true,
                                   .runs_imex = true };
        return 0;
}

static struct facts judged(void) {
        struct facts f;
        facts_evaluate(&in, &f);
        return f;
}

static void a_node_with_a_partition_offers_its_devices(void **state) {
        (void)state;
        struct facts f = judged();
        assert_true(f.usable);
        assert_string_equal(f.reason, "");
        assert_string_equal(f.fabric.clique_id, CLUSTER ".2");
}

static void a_node_without_a_partition_offers_its_devices(void **state) {
        (void)state;
        gpu.fabric_call = 3;
        struct facts f = judged();
        assert_true(f.usable);
        assert_string_equal(f.fabric.clique_id, "");
}

/* failure: NVML fails or the driver has no IMEX channels -> the node reports why it withholds its devices */
static void the_reason_for_withheld_devices_is_reported(void **state) {
        (void)state;
        in.nvml = NULL;
        assert_string_equal(judged().reason, "DriverNotFound");
        nvml_error.kind = ERR_RETRY;
        assert_string_equal(judged().reason, "DriverNotReady");
        fresh(NULL);
        in.channel_major = 0;
        struct facts f = judged();
        assert_false(f.usable);
        assert_string_equal(f.reason, "NoIMEXChannels");
        assert_non_null(strstr(f.message, "nvidia-caps-imex-channels"));
}

static void an_old_driver_matters_only_where_we_run_imex(void **state) {
        (void)state;
        nvml.driver_version = "570.158.00";
        struct facts f = judged();
        assert_string_equal(f.reason, "DriverTooOld");
        assert_non_null(strstr(f.message, "570.158.00"));
        assert_non_null(strstr(f.message, "570.158.01"));
        in.runs_imex = false;
        assert_true(judged().usable);
        in.runs_imex = true;
        nvml.driver_version = "570.158.01";
        assert_true(judged().usable);
}

/* failure: the fabric registration of a GPU failed -> with strict discovery the devices are withheld */
static void fabric_in_error_withholds_the_devices_only_when_strict(void **state) {
        (void)state;
        gpu.fabric_state = 2;
        assert_string_equal(judged().reason, "FabricRegistering");
        gpu.fabric_state = 3;
        gpu.fabric_status = 999;
        assert_string_equal(judged().reason, "FabricError");
        in.strict = false;
        struct facts f = judged();
        assert_true(f.usable);
        assert_int_equal(f.fabric.kind, GPU_FABRIC_NONE);
        assert_non_null(strstr(f.fabric.reason, "999"));
}

/* failure: NVML reports no GPU for a moment -> the devices are withheld, so no pod starts without a channel
 */
static void a_node_whose_gpus_are_gone_withholds_its_devices(void **state) {
        (void)state;
        nvml.n_gpus = 0;
        struct facts f = judged();
        assert_false(f.usable);
        assert_string_equal(f.reason, "NoGPUs");
        assert_string_equal(f.message, "NVML reports no GPU on this node");
        in.strict = false;
        assert_true(judged().usable);
}

/* ---- the sampler ---- */

struct seen {
        struct facts_sampler *s;
        unsigned changes;
        struct facts last;
};

static void on_changed(void *u) {
        struct seen *seen = u;
        seen->changes++;
        seen->last = *facts_get(seen->s);
}

/* failure: the NVIDIA driver is missing -> the node withholds its devices until the driver is installed */
static void a_missing_driver_is_reported_and_found_later(void **state) {
        (void)state;
        char *dir = tree_new();
        struct seen seen = { 0 };
        uv_loop_t loop;
        _cleanup_(freep) char *devices = file_join(dir, "devices");
        static const char text[] = "Character devices:\n240 nvidia-caps-imex-channels\n";
        tree_put(dir, "devices", text);
        uv_loop_init(&loop);
        seen.s = facts_sampler_new(&loop, &(struct facts_options){ .root = { dir, dir },
                                                                   .proc_devices = devices,
                                                                   .strict = true,
                                                                   .changed = on_changed,
                                                                   .u = &seen });
        assert_false(facts_get(seen.s)->known);
        while (!seen.changes)
                uv_run(&loop, UV_RUN_ONCE);
        assert_string_equal(seen.last.reason, "DriverNotFound");
        facts_poll_fast(seen.s, true);
        /* A file with the name of NVML's library: the child reports that it cannot be loaded. */
        tree_put(dir, "libnvidia-ml.so.1", "x");
        while (seen.changes < 2)
                uv_run(&loop, UV_RUN_ONCE);
        assert_false(seen.last.usable);
        assert_true(seen.last.known);
        assert_non_null(strstr(seen.last.message, "libnvidia-ml.so.1"));
        facts_poll_fast(seen.s, false);
        facts_sampler_free(seen.s);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        tree_remove(dir);
}

/* ---- an NVML that does not answer ---- */

struct node {
        char *dir, *devices;
        uv_loop_t loop;
        struct seen seen;
};

static void nvml_is(struct node *n, const char *conf) {
        tree_put(n->dir, "usr/lib64/libnvidia-ml.conf", conf);
}

static void until_change(struct node *n, unsigned changes) {
        while (n->seen.changes < changes)
                uv_run(&n->loop, UV_RUN_ONCE);
        assert_int_equal(n->seen.changes, changes);
}

#define FINE "GPU_COUNT=1\nCLUSTER_UUID=" CLUSTER "\nCLIQUE_ID=7\n"

static void node_begin(struct node *n) {
        _cleanup_(freep) char *text = NULL;
        size_t size;
        struct err e;
        *n = (struct node){ .dir = tree_new() };
        _cleanup_(freep) char *library = file_join(n->dir, "usr/lib64/libnvidia-ml.so.1");
        n->devices = file_join(n->dir, "devices");
        tree_put(n->dir, "devices", "Character devices:\n240 nvidia-caps-imex-channels\n");
        nvml_is(n, FINE);
        assert_int_equal(file_read(standin, 4 << 20, &text, &size, &e), 0);
        assert_int_equal(file_replace(library, text, size, 0755, &e), 0);
        uv_loop_init(&n->loop);
        n->seen.s = facts_sampler_new(&n->loop, &(struct facts_options){ .root = { n->dir, n->dir },
                                                                         .proc_devices = n->devices,
                                                                         .strict = true,
                                                                         .changed = on_changed,
                                                                         .u = &n->seen });
        until_change(n, 1);
        assert_true(n->seen.last.usable);
        assert_string_equal(n->seen.last.fabric.clique_id, CLUSTER ".7");
}

static void node_end(struct node *n) {
        facts_sampler_free(n->seen.s);
        uv_run(&n->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&n->loop), 0);
        free(n->devices);
        tree_remove(n->dir);
}

static void on_over(void *u) {
        *(bool *)u = true;
}

static void run_for(struct node *n, uint64_t ms) {
        struct loop_timer t = { 0 };
        bool over = false;
        loop_timer_init(&t, &n->loop, on_over, &over);
        loop_timer_start(&t, ms);
        while (!over)
                uv_run(&n->loop, UV_RUN_ONCE);
        loop_timer_done(&t);
}

/* failure: NVML hangs or crashes -> the last known state counts for five minutes */
static void the_last_state_counts_for_a_while_when_nvml_does_not_answer(void **state) {
        static const char *const bad[] = { "CRASH=1\n", "HANG=1\n" };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct node n;
                node_begin(&n);
                facts_poll_fast(n.seen.s, true);
                nvml_is(&n, bad[i]);
                run_for(&n, FACTS_HOLD_MS - 60000);
                assert_int_equal(n.seen.changes, 1);
                assert_string_equal(facts_get(n.seen.s)->fabric.clique_id, CLUSTER ".7");
                nvml_is(&n, FINE);
                run_for(&n, 300000);
                assert_int_equal(n.seen.changes, 1);
                /* But not forever. */
                nvml_is(&n, bad[i]);
                until_change(&n, 2);
                assert_false(n.seen.last.usable);
                assert_string_equal(n.seen.last.reason, "DriverNotReady");
                nvml_is(&n, FINE);
                until_change(&n, 3);
                assert_true(n.seen.last.usable);
                node_end(&n);
        }
}

/* failure: NVML reports that the driver is not loaded -> the devices are withheld at once */
static void an_answer_of_nvml_counts_at_once(void **state) {
        struct node n;
        (void)state;
        node_begin(&n);
        facts_poll_fast(n.seen.s, true);
        nvml_is(&n, "INIT_ERROR=9\n");
        run_for(&n, 2000);
        assert_int_equal(n.seen.changes, 2);
        assert_string_equal(n.seen.last.reason, "DriverNotReady");
        assert_non_null(strstr(n.seen.last.message, "Driver Not Loaded"));
        node_end(&n);
}

/* failure: /proc/devices is garbage -> the reason names it */
static void garbage_in_proc_devices_is_named(void **state) {
        (void)state;
        char *dir = tree_new();
        uv_loop_t loop;
        unsigned major;
        struct err e;
        static const char *const garbage[] = { "",
                                               "\n\n\n",
                                               "garbage",
                                               "Character devices:\n",
                                               "Character devices:\nx nvidia-caps-imex-channels",
                                               "Character devices:\n999999999999 nvidia-caps-imex-channels\n",
                                               "Block devices:\n240 nvidia-caps-imex-channels\n",
                                               "\xff\xfe\x01" };
        _cleanup_(freep) char *devices = file_join(dir, "devices");
        uv_loop_init(&loop);
        struct facts_sampler *s =
                facts_sampler_new(&loop, &(struct facts_options){ .root = { dir, dir },
                                                                  .proc_devices = devices,
                                                                  .changed = on_changed,
                                                                  .u = &(struct seen){ 0 } });
        for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
                tree_put(dir, "devices", garbage[i]);
                assert_int_equal(facts_major(s, PROC_MAJOR_IMEX_CHANNELS, &major, &e), -1);
                assert_non_null(strstr(e.msg, devices));
        }
        tree_put(dir, "devices", "Character devices:\n240 nvidia-caps-imex-channels");
        assert_int_equal(facts_major(s, PROC_MAJOR_IMEX_CHANNELS, &major, &e), 0);
        assert_int_equal(major, 240);
        facts_sampler_free(s);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        tree_remove(dir);
}

/* failure: only the driver root has the device nodes -> the plugin creates them before it queries NVML */
static void device_nodes_exist_before_nvml_is_queried(void **state) {
        (void)state;
        char *dir = tree_new(), *own = tree_new();
        struct seen seen = { 0 };
        uv_loop_t loop;
        _cleanup_(freep) char *from = file_join(dir, "dev/nvidiactl"), *to = file_join(own, "nvidiactl");
        tree_put(dir, "dev/x", "");
        tree_put(dir, "libnvidia-ml.so.1", "x");
        uv_loop_init(&loop);
        if (mknod(from, S_IFCHR | 0600, makedev(195, 255)) < 0)
                skip(); /* possible only as root */
        seen.s = facts_sampler_new(&loop, &(struct facts_options){ .root = { dir, dir },
                                                                   .proc_devices = "/nowhere",
                                                                   .own_dev = own,
                                                                   .changed = on_changed,
                                                                   .u = &seen });
        while (!seen.changes)
                uv_run(&loop, UV_RUN_ONCE);
        assert_int_equal(access(to, F_OK), 0);
        facts_sampler_free(seen.s);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        tree_remove(own);
        tree_remove(dir);
}

int main(int argc, char **argv) {
        if (argc > 1 && strcmp(argv[1], NVML_WORKER) == 0)
                return nvml_worker_main(argc - 2, argv + 2);
        if (argc < 2)
                return 2;
        standin = argv[1];
#define T(f) cmocka_unit_test_setup(f, fresh)
        const struct CMUnitTest tests[] = {
                T(a_node_with_a_partition_offers_its_devices),
                T(a_node_without_a_partition_offers_its_devices),
                T(the_reason_for_withheld_devices_is_reported),
                T(an_old_driver_matters_only_where_we_run_imex),
                T(fabric_in_error_withholds_the_devices_only_when_strict),
                T(a_node_whose_gpus_are_gone_withholds_its_devices),
                T(garbage_in_proc_devices_is_named),
                T(the_last_state_counts_for_a_while_when_nvml_does_not_answer),
                T(an_answer_of_nvml_counts_at_once),
                T(a_missing_driver_is_reported_and_found_later),
                T(device_nodes_exist_before_nvml_is_queried),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
