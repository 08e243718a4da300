/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the GPU plugin on its node, and prints rows of a table: the time from its start to the slice at
 * the API server, claims (gpus_claims.c), the slice (gpus_slice.c), the idle plugin, and the hooks of a
 * container (gpus_hooks.c). The API server is in this process and answers at once, and NVML is the stand-in,
 * so only the plugin's own share is measured. Run it as root, on a machine that does nothing else:
 *
 *     gpus PROGRAM STANDIN DRA_CALL HOOK
 *
 * The stand-in of nvidia-smi must be in the folder of STANDIN. */
#include "gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "driver_tree.h"
#include "rows.h"

enum {
        STARTS = 11,
        HELD = 20, /* claims */
        SETTLE_MS = 2000,
        REST_MS = 34000, /* the plugin checks its GPUs every 30 s; the NVML process ends after 10 s */
};

static struct world_files files;

/* ---- the node ---- */

struct world *bench_world(void) {
        static const char library[] = "root/usr/lib64/libnvidia-ml.so.1";
        struct world *w = world_new(&files);
        _cleanup_(freep) char *root = world_path(w, "root"), *ml = world_path(w, library);
        _cleanup_(freep) char *cuda = world_path(w, "root/usr/lib64/libcuda.so.580.95.05");
        _cleanup_(freep) char *smi = xasprintf(
                "%.*s/nvidia-smi", (int)(strrchr(files.standin, '/') - files.standin), files.standin);
        assert_int_equal(unlink(ml) | unlink(cuda), 0);
        if (!driver_tree_of_golden(root))
                skip();
        world_put_copy(w, files.standin, "root/usr/lib64/libnvidia-ml.so." DRIVER_TREE_VERSION);
        world_put_copy(w, smi, "root/usr/bin/nvidia-smi");
        for (unsigned i = 2; i < BENCH_GPUS; i++) {
                _cleanup_(freep) char *path = xasprintf("root/dev/nvidia%u", i);
                world_put_node(w, path, i);
        }
        tree_put(w->dir, "cdi/keep", "");
        bench_conf(w, 8, "");
        return w;
}

void bench_conf(struct world *w, unsigned gpus, const char *mig) {
        _cleanup_(freep) char *text =
                xasprintf("DRIVER_VERSION=" DRIVER_TREE_VERSION "\nGPU_COUNT=%u\n%s", gpus, mig);
        world_conf(w, text);
}

/* 64 MIG devices. */
static void conf_many(struct world *w) {
        struct buf mig = BUF_INIT(4096);
        for (int i = 0; i < 16; i++)
                buf_addf(&mig, "GPU%d_MIG=\"1g.2@0 1g.2@2 1g.2@4 1g.2@6\"\n", i);
        bench_conf(w, 16, buf_str(&mig));
        buf_done(&mig);
}

static void no_slice(struct world *w) {
        _cleanup_(freep) char *plugins = world_path(w, "plugins");
        if (access(plugins, F_OK) == 0)
                tree_remove(TAKE(plugins));
        buf_clear(&w->slice);
        w->writes = 0;
}

void bench_start(struct world *w, const char *more) {
        no_slice(w);
        world_start(w, more);
        UNTIL(w, w->writes == 1);
}

void bench_asked(struct world *w, const char *what, const char *claim, const char *uid) {
        struct answer a = world_try(w, what, claim, uid);
        if (a.status != 0)
                fail_msg("%s", a.text);
}

/* ---- the start ---- */

static void start_to_slice(struct world *w, const char *what, const char *device) {
        double ms[STARTS];
        for (size_t i = 0; i < STARTS; i++) {
                no_slice(w);
                uint64_t began = uv_hrtime();
                world_start(w, NULL);
                UNTIL(w, w->writes == 1);
                ms[i] = (double)(uv_hrtime() - began) / 1e6;
                assert_non_null(strstr(buf_str(&w->slice), device));
                world_end(w);
        }
        size_t bytes = w->slice.n;
        _cleanup_(freep) char *note = xasprintf("%d starts; %zu bytes", STARTS, bytes);
        row(what, "<= 300 ms", note, "%.0f ms (worst %.0f ms)", percentile(ms, STARTS, .5),
            percentile(ms, STARTS, 1));
}

static void publication(void **state) {
        struct world *w = *state;
        start_to_slice(w, "start of the GPU plugin to the slice at the server, 8 GPUs", "\"gpu-7\"");
        conf_many(w);
        start_to_slice(w, "the same, 64 MIG devices", "\"gpu-15-mig-");
}

/* ---- idle ---- */

static double kib_of(pid_t pid, const char *key) {
        _cleanup_(freep) char *path = xasprintf("/proc/%d/smaps_rollup", (int)pid), *text = NULL;
        struct err e;
        if (file_read(path, 1 << 16, &text, NULL, &e) < 0)
                fail_msg("%s", e.msg);
        const char *at = strstr(text, key);
        assert_non_null(at);
        return strtod(at + strlen(key), NULL);
}

static void print_memory(const char *what, pid_t pid, const char *bar, const char *note) {
        row(what, bar, note, "%.1f / %.1f / %.1f MB", kib_of(pid, "Private_Dirty:") / 1024,
            kib_of(pid, "Pss:") / 1024, kib_of(pid, "Rss:") / 1024);
}

/* The first child; 0: none. */
static pid_t child_of(pid_t pid) {
        _cleanup_(freep) char *path = xasprintf("/proc/%d/task/%d/children", (int)pid, (int)pid),
                              *text = NULL;
        struct err e;
        return file_read(path, 4096, &text, NULL, &e) < 0 ? 0 : (pid_t)strtol(text, NULL, 10);
}

/* The CPU time of all its threads. */
static double cpu_ms(pid_t pid) {
        struct timespec t;
        clockid_t clock;
        assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
        assert_int_equal(clock_gettime(clock, &t), 0);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* One claim for each GPU. The others have admin access, of which a GPU may have many. */
static void hold_claims(struct world *w) {
        for (unsigned i = 0; i < HELD; i++) {
                _cleanup_(freep) char *uid = xasprintf("aaaaaaaa-0000-4000-8000-0000000001%02u", i);
                _cleanup_(freep) char *results =
                        xasprintf("{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\","
                                  "\"device\":\"gpu-%u\"%s}",
                                  i % 8, i < 8 ? "" : ",\"adminAccess\":true");
                w->results = results;
                bench_asked(w, "prepare", uid, uid);
        }
        w->results = "";
}

/* Three nodes at the same time, because each measurement takes long. */
static void at_rest(void **state) {
        struct world *w = *state, *many = bench_world(), *watching = bench_world();
        conf_many(many);
        bench_start(many, NULL);
        bench_start(watching, "--feature-gates=NVMLDeviceHealthCheck=true");
        bench_start(w, NULL);
        hold_claims(w);
        pid_t pid = process_pid(w->plugin);
        run_for(&w->loop, SETTLE_MS);
        double used = cpu_ms(pid);
        uint64_t began = uv_hrtime();
        run_for(&w->loop, REST_MS);
        double s = (double)(uv_hrtime() - began) / 1e9;
        _cleanup_(freep) char *over = xasprintf("over %.0f s, with 8 GPUs and %d claims held", s, HELD);
        row("CPU of the GPU plugin while idle", "<= 0.5 ms a second", over, "%.2f ms a second",
            (cpu_ms(pid) - used) / s);
        print_memory("memory of the GPU plugin, 8 GPUs and 20 claims held: private dirty / PSS / RSS", pid,
                     "3 / - / 16 MB", "");
        print_memory("the same, 64 MIG devices", process_pid(many->plugin), "3.5 / - / 17 MB", "");
        pid_t worker = child_of(process_pid(watching->plugin));
        assert_true(worker > 0);
        print_memory("memory of the process that watches for XIDs (gate NVMLDeviceHealthCheck): the same",
                     worker, "2 / - / - MB", "without the memory of NVIDIA's library");
        row("processes in which NVML is called, idle, default gates", "0", "", "%d", child_of(pid) > 0);
        world_end(w);
        world_end(many);
        world_end(watching);
        world_free(many);
        world_free(watching);
}

static int setup(void **state) {
        *state = bench_world();
        return 0;
}

static int teardown(void **state) {
        world_free(*state);
        return 0;
}

int main(int argc, char **argv) {
        if (argc != 5)
                return 2;
        files = (struct world_files){ argv[1], argv[2], argv[3], argv[4] };
        rows_begin();
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = { T(publication), T(bench_claims), T(bench_time_slices),
                                            T(bench_slice), T(at_rest),      T(bench_hooks) };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
