/* SPDX-License-Identifier: Apache-2.0 */
/* Measures Prepare and Unprepare, beside durable writes at the same time, and with time slices. The plugin
 * measures and logs the times. */
#include "gpus.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "rows.h"

enum { CLAIMS = 100, BLOCK = 4096, SMI_TIMEOUT_MS = 20000 };

#define CLAIM "c", CLAIM_UID
#define ANOTHER "d", ANOTHER_UID
#define GATE "--feature-gates=TimeSlicingSettings=true"
#define SLICED                                                                                               \
        "{\"source\":\"FromClaim\",\"requests\":[\"gpu\"],\"opaque\":{\"driver\":\"gpu.nvidia.com\","        \
        "\"parameters\":{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"GpuConfig\",\"sharing\":" \
        "{\"strategy\":\"TimeSlicing\",\"timeSlicingConfig\":{\"interval\":\"Short\"}}}}}"

static double us_of(const char *line, const char *key) {
        const char *at = strstr(line, key);
        return at ? strtod(at + strlen(key), NULL) : 0;
}

/* The milliseconds inside the plugin for the next operation that it logs, without the claim's GET and without
 * the wait for another claim. */
static double inside(struct world *w, const char *done) {
        const char *line = NULL;
        UNTIL(w, (line = strstr(buf_str(&w->says), done)) && strchr(line, '\n'));
        assert_non_null(line);
        return (us_of(line, "total_us=") - us_of(line, "get_us=") - us_of(line, "wait_us=")) / 1000;
}

static double prepared(struct world *w, const char *claim, const char *uid) {
        buf_clear(&w->says);
        bench_asked(w, "prepare", claim, uid);
        return inside(w, "\"prepared claim\"");
}

static double unprepared(struct world *w, const char *claim, const char *uid) {
        buf_clear(&w->says);
        bench_asked(w, "unprepare", claim, uid);
        return inside(w, "\"unprepared claim\"");
}

/* ---- compared with three durable writes ---- */

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

/* `back` gets the times of Unprepare. */
static void prepare(struct world *w, const char *what, const char *results, unsigned most_ms,
                    double back[static CLAIMS]) {
        double ms[CLAIMS], writes[CLAIMS];
        _cleanup_(freep) char *folder = world_path(w, "cdi");
        w->results = results;
        for (size_t i = 0; i < CLAIMS; i++) {
                ms[i] = prepared(w, CLAIM);
                back[i] = unprepared(w, CLAIM);
                writes[i] = three_writes(folder);
        }
        double p99 = percentile(writes, CLAIMS, .99);
        _cleanup_(freep) char *bar = xasprintf("p50 <= %u, p99 <= %.1f ms", most_ms, 2 * p99);
        _cleanup_(freep) char *note = xasprintf("%d claims; three durable writes between them: p50 %.2f, p99 "
                                                "%.2f ms",
                                                CLAIMS, percentile(writes, CLAIMS, .5), p99);
        row(what, bar, note, "%.2f / %.2f ms", percentile(ms, CLAIMS, .5), percentile(ms, CLAIMS, .99));
}

static void add_result(struct buf *b, const char *device, unsigned i) {
        buf_addf(b,
                 "%s{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"%s%u\"}",
                 i ? "," : "", device, i);
}

/* Seven MIG devices of the ninth GPU, and the kernel's files of their instances. */
static void make_parts(struct world *w) {
        bench_conf(w, BENCH_GPUS, "GPU8_MIG=\"1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6\"\n");
        for (unsigned gi = 1; gi <= 7; gi++) {
                static const char *const files[] = { "access", "ci0/access" };
                for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
                        _cleanup_(freep) char *path = xasprintf(
                                "root/proc/driver/nvidia/capabilities/gpu8/mig/gi%u/%s", gi, files[i]);
                        _cleanup_(freep) char *text =
                                xasprintf("DeviceFileMinor: %u\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
                                          500 + 2 * gi + i);
                        tree_put(w->dir, path, text);
                }
        }
}

void bench_claims(void **state) {
        struct world *w = *state;
        struct buf gpus = BUF_INIT(4096), parts = BUF_INIT(4096);
        double back[CLAIMS], ignored[CLAIMS];
        make_parts(w);
        for (unsigned i = 0; i < 8; i++)
                add_result(&gpus, "gpu-", i);
        for (unsigned i = 0; i < 7; i++)
                add_result(&parts, "gpu-8-mig-1g23gb-19-", i);
        bench_start(w, NULL);
        w->results = RESULT("gpu", "gpu-0");
        (void)prepared(w, CLAIM); /* finds the driver's files */
        (void)unprepared(w, CLAIM);
        unsigned gets = w->gets, changes = w->changes;
        prepare(w, "Prepare of a GPU inside the plugin without the claim's GET: p50 / p99",
                RESULT("gpu", "gpu-0"), 5, back);
        gets = w->gets - gets;
        changes = w->changes - changes;
        prepare(w, "the same, 8 GPUs in one claim", buf_str(&gpus), 6, ignored);
        prepare(w, "the same, 7 MIG devices in one claim", buf_str(&parts), 6, ignored);
        row("Unprepare of a GPU inside the plugin: p50 / p99", "p50 <= 3 ms", "100 claims", "%.2f / %.2f ms",
            percentile(back, CLAIMS, .5), percentile(back, CLAIMS, .99));
        row("requests to the API server, a claim's Prepare and Unprepare: GET / others", "1 / 0",
            "100 claims", "%.2f / %.2f", (double)gets / CLAIMS, (double)changes / CLAIMS);
        world_end(w);
        buf_done(&gpus);
        buf_done(&parts);
}

/* ---- time slices ---- */

static void on_smi(void *u, const struct child_result *r) {
        bool *ended = u;
        if (r->err || r->exit_status != 0)
                fail_msg("nvidia-smi: %.*s", (int)r->out.n, r->out.p);
        *ended = true;
}

static void run_smi(struct world *w, const char *const *argv) {
        _cleanup_(freep) char *library = world_path(w, "root/usr/lib64/libnvidia-ml.so.1");
        _cleanup_(freep) char *preload = xasprintf("LD_PRELOAD=%s", library);
        bool ended = false;
        child_run(&w->loop, &(struct child_options){ .argv = argv,
                                                     .env = (const char *const[]){ preload, NULL },
                                                     .timeout_ms = SMI_TIMEOUT_MS,
                                                     .done = on_smi,
                                                     .u = &ended });
        while (!ended)
                uv_run(&w->loop, UV_RUN_ONCE);
}

/* The same calls that the plugin makes for a claim of one GPU. */
static double smi_calls(struct world *w) {
        _cleanup_(freep) char *smi = world_path(w, "root/usr/bin/nvidia-smi");
        uint64_t began = uv_hrtime();
        run_smi(w, (const char *const[]){ smi, "-i", "0", "-c", "DEFAULT", NULL });
        run_smi(w, (const char *const[]){ smi, "compute-policy", "-i", "0", "--set-timeslice", "1", NULL });
        return (double)(uv_hrtime() - began) / 1e6;
}

static void prepare_sliced(struct world *w) {
        double ms[CLAIMS], calls[CLAIMS];
        w->results = RESULT("gpu", "gpu-0");
        w->config = SLICED;
        for (size_t i = 0; i < CLAIMS; i++) {
                ms[i] = prepared(w, CLAIM);
                (void)unprepared(w, CLAIM);
                calls[i] = smi_calls(w);
        }
        double p50 = percentile(calls, CLAIMS, .5);
        _cleanup_(freep) char *bar = xasprintf("p50 <= 5 + %.2f ms", p50);
        _cleanup_(freep) char *note = xasprintf("%d claims; the two calls of nvidia-smi (a stand-in) alone, "
                                                "between them: p50 %.2f, p99 %.2f ms",
                                                CLAIMS, p50, percentile(calls, CLAIMS, .99));
        row("Prepare of a GPU with a time slice: p50 / p99", bar, note, "%.2f / %.2f ms",
            percentile(ms, CLAIMS, .5), percentile(ms, CLAIMS, .99));
}

/* An nvidia-smi that reports its call, and ends when the test releases it. */
static void slow_smi(struct world *w) {
        _cleanup_(freep) char *fifo = world_path(w, "go");
        _cleanup_(freep) char *text =
                xasprintf("#!/bin/sh\ntest -e %s/hold || exit 0\n: >%s/called\nread -r go "
                          "<%s\n",
                          w->dir, w->dir, fifo);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        tree_put(w->dir, "root/usr/bin/nvidia-smi", text);
}

/* Prepare of another claim while nvidia-smi runs for the first one. */
static double beside(struct world *w, int go) {
        _cleanup_(freep) char *hold = world_path(w, "hold"), *called = world_path(w, "called");
        struct answer a;
        tree_put(w->dir, "hold", "");
        w->results = RESULT("gpu", "gpu-0");
        w->config = SLICED;
        world_send(w, "prepare", CLAIM, &a);
        UNTIL(w, access(called, F_OK) == 0);
        w->results = RESULT("gpu", "gpu-1");
        w->config = "";
        double ms = prepared(w, ANOTHER);
        assert_false(a.come);
        assert_int_equal(unlink(hold) | unlink(called), 0);
        assert_int_equal(write(go, "\n", 1), 1);
        UNTIL(w, a.come);
        if (a.status != 0)
                fail_msg("%s", a.text);
        (void)unprepared(w, ANOTHER);
        (void)unprepared(w, CLAIM);
        return ms;
}

static void prepare_beside(struct world *w) {
        double with[CLAIMS], without[CLAIMS];
        _cleanup_(freep) char *fifo = world_path(w, "go");
        slow_smi(w);
        int go = open(fifo, O_RDWR | O_CLOEXEC);
        assert_true(go >= 0);
        for (size_t i = 0; i < CLAIMS; i++) {
                without[i] = prepared(w, ANOTHER);
                (void)unprepared(w, ANOTHER);
                with[i] = beside(w, go);
        }
        close(go);
        _cleanup_(freep) char *note =
                xasprintf("%d of each, in turns; without: %.2f / %.2f ms", CLAIMS,
                          percentile(without, CLAIMS, .5), percentile(without, CLAIMS, .99));
        row("Prepare of a GPU while the time slice of another claim is being set: p50 / p99", "as without",
            note, "%.2f / %.2f ms", percentile(with, CLAIMS, .5), percentile(with, CLAIMS, .99));
}

void bench_time_slices(void **state) {
        struct world *w = *state;
        bench_start(w, GATE);
        w->results = RESULT("gpu", "gpu-1");
        (void)prepared(w, ANOTHER); /* finds the driver's files */
        (void)unprepared(w, ANOTHER);
        prepare_sliced(w);
        w->results = RESULT("gpu", "gpu-1");
        w->config = "";
        prepare_beside(w);
        world_end(w);
}
