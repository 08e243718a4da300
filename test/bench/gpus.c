/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU plugin costs on its node, as rows of a table: how long it takes from its start to the slice at
 * the API server, Prepare of a GPU beside three durable writes of the same moments, memory of the plugin and
 * of the processes in which NVML is called. The API server is in this process and answers at once, and NVML
 * is the stand-in, so this is the plugin's own share:
 *
 *     gpus PROGRAM STANDIN DRA_CALL HOOK */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "world.h"

enum { STARTS = 11, CLAIMS = 100, BLOCK = 4096, LINGER_MS = 12000 };

static struct world_files files;

static int by_size(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;
        return x < y ? -1 : x > y;
}

/* Sorts. */
static double percentile(double *v, size_t n, double p) {
        qsort(v, n, sizeof *v, by_size);
        size_t at = (size_t)(p * (double)(n - 1) + 0.5);
        return v[at];
}

static void row(const char *what, const char *bar, const char *note, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
static void row(const char *what, const char *bar, const char *note, const char *fmt, ...) {
        va_list ap;
        printf("| %s | ", what);
        va_start(ap, fmt);
        vprintf(fmt, ap);
        va_end(ap);
        printf(" | %s | %s |\n", bar, note);
        fflush(stdout);
}

/* ---- the start ---- */

static void no_slice(struct world *w) {
        _cleanup_(freep) char *plugins = world_path(w, "plugins");
        if (access(plugins, F_OK) == 0)
                tree_remove(TAKE(plugins));
        buf_clear(&w->slice);
        w->writes = 0;
}

static void start_to_slice(struct world *w, const char *what, const char *conf, const char *device) {
        double ms[STARTS];
        world_conf(w, conf);
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
        struct buf conf = BUF_INIT(4096);
        start_to_slice(w, "start of the GPU plugin to the slice at the server, 8 GPUs", "GPU_COUNT=8\n",
                       "\"gpu-7\"");
        buf_adds(&conf, "GPU_COUNT=16\n");
        for (int i = 0; i < 16; i++)
                buf_addf(&conf, "GPU%d_MIG=\"1g.2@0 1g.2@2 1g.2@4 1g.2@6\"\n", i);
        start_to_slice(w, "the same, 64 MIG devices", buf_str(&conf), "\"gpu-15-mig-");
        buf_done(&conf);
}

/* ---- claims ---- */

static double us_of(const char *line, const char *key) {
        const char *at = strstr(line, key);
        return at ? strtod(at + strlen(key), NULL) : 0;
}

/* Milliseconds inside the plugin, without the claim's GET, of the last claim that it says it has prepared. */
static double inside(const struct world *w) {
        const char *line = NULL;
        for (const char *at = buf_str(&w->says); (at = strstr(at, "\"prepared claim\"")); at++)
                line = at;
        assert_non_null(line);
        return (us_of(line, "total_us=") - us_of(line, "get_us=") - us_of(line, "wait_us=")) / 1000;
}

static void durable_write(const char *folder) {
        static const char block[BLOCK];
        _cleanup_(freep) char *tmp = file_join(folder, ".bench.tmp"), *path = file_join(folder, "bench");
        int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && write(fd, block, BLOCK) == BLOCK && fsync(fd) == 0 && close(fd) == 0);
        assert_int_equal(rename(tmp, path), 0);
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0 && fsync(fd) == 0 && close(fd) == 0);
}

static double three_writes(const char *folder) {
        uint64_t began = uv_hrtime();
        for (int i = 0; i < 3; i++)
                durable_write(folder);
        return (double)(uv_hrtime() - began) / 1e6;
}

static void asked(struct world *w, const char *what) {
        struct answer a = world_ask(w, what);
        if (a.status != 0)
                fail_msg("%s", a.text);
}

static void prepare(struct world *w, const char *what, const char *results) {
        double ms[CLAIMS], writes[CLAIMS];
        _cleanup_(freep) char *folder = world_path(w, "cdi");
        w->results = results;
        no_slice(w);
        world_start(w, NULL);
        UNTIL(w, w->writes == 1);
        asked(w, "prepare"); /* finds the driver's files */
        asked(w, "unprepare");
        for (size_t i = 0; i < CLAIMS; i++) {
                buf_clear(&w->says);
                asked(w, "prepare");
                run_for(&w->loop, 2);
                ms[i] = inside(w);
                asked(w, "unprepare");
                writes[i] = three_writes(folder);
        }
        world_end(w);
        double p99 = percentile(writes, CLAIMS, .99);
        _cleanup_(freep) char *bar = xasprintf("p50 <= 5, p99 <= %.1f ms", 2 * p99);
        _cleanup_(freep) char *note = xasprintf("%d claims; three durable writes between them: p50 %.2f, p99 "
                                                "%.2f ms",
                                                CLAIMS, percentile(writes, CLAIMS, .5), p99);
        row(what, bar, note, "%.2f / %.2f ms", percentile(ms, CLAIMS, .5), percentile(ms, CLAIMS, .99));
}

static void claims(void **state) {
        struct world *w = *state;
        struct buf all = BUF_INIT(4096);
        world_conf(w, "GPU_COUNT=8\n");
        world_put_node(w, "root/dev/nvidiactl", 255);
        for (unsigned i = 0; i < 8; i++) {
                _cleanup_(freep) char *path = xasprintf("root/dev/nvidia%u", i);
                world_put_node(w, path, i);
                buf_addf(&all,
                         "%s{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":"
                         "\"gpu-%u\"}",
                         i ? "," : "", i);
        }
        prepare(w, "Prepare of a GPU inside the plugin without the claim's GET: p50 / p99",
                RESULT("gpu", "gpu-0"));
        prepare(w, "the same, 8 GPUs in one claim", buf_str(&all));
        buf_done(&all);
}

/* ---- memory ---- */

static double kib_of(pid_t pid, const char *key) {
        _cleanup_(freep) char *path = xasprintf("/proc/%d/smaps_rollup", (int)pid), *text = NULL;
        struct err e;
        if (file_read(path, 1 << 16, &text, NULL, &e) < 0)
                fail_msg("%s", e.msg);
        const char *at = strstr(text, key);
        assert_non_null(at);
        return strtod(at + strlen(key), NULL);
}

static void tell_memory(const char *what, pid_t pid, const char *bar, const char *note) {
        row(what, bar, note, "%.1f / %.1f / %.1f MB", kib_of(pid, "Private_Dirty:") / 1024,
            kib_of(pid, "Pss:") / 1024, kib_of(pid, "Rss:") / 1024);
}

/* The first child; 0: there is none. */
static pid_t child_of(pid_t pid) {
        _cleanup_(freep) char *path = xasprintf("/proc/%d/task/%d/children", (int)pid, (int)pid),
                              *text = NULL;
        struct err e;
        return file_read(path, 4096, &text, NULL, &e) < 0 ? 0 : (pid_t)strtol(text, NULL, 10);
}

static void memory(void **state) {
        struct world *w = *state;
        world_conf(w, "GPU_COUNT=8\n");
        world_start(w, "--feature-gates=NVMLDeviceHealthCheck=true");
        UNTIL(w, w->writes == 1);
        run_for(&w->loop, LINGER_MS); /* whoever was asked has ended */
        pid_t pid = process_pid(w->plugin), worker = child_of(pid);
        tell_memory("memory of the GPU plugin, 8 GPUs: private dirty / PSS / RSS", pid, "3 / - / 16 MB", "");
        assert_true(worker > 0);
        tell_memory("memory of the process that watches for XIDs (gate NVMLDeviceHealthCheck): the same",
                    worker, "2 / - / - MB", "without what NVIDIA's library takes");
        world_end(w);
        world_start(w, NULL);
        run_for(&w->loop, LINGER_MS);
        row("processes in which NVML is called, idle, default gates", "0", "", "%d",
            child_of(process_pid(w->plugin)) > 0);
        world_end(w);
}

static int setup(void **state) {
        struct world *w = world_new(&files);
        tree_put(w->dir, "cdi/keep", "");
        *state = w;
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
        printf("| what | measured | bar | note |\n|---|---|---|---|\n");
        fflush(stdout);
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = { T(publication), T(claims), T(memory) };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
