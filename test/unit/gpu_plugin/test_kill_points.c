/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 between any two steps of Prepare and Unprepare of GPUs: the retry succeeds, no GPU is lost, and no
 * file and no time slice remains:
 *
 *     test_kill_points PROGRAM STANDIN DRA_CALL HOOK KILL_AT_LIB
 *
 * Kills at each seventh step, and at each step with EVERY_POINT (make long PART=gpu_kill_points). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "world.h"

static struct world_files files;
static const char *kill_at_lib;
static unsigned stride = 7;

#define SLICED                                                                                               \
        "{\"source\":\"FromClaim\",\"requests\":[\"gpu\"],\"opaque\":{\"driver\":\"gpu.nvidia.com\","        \
        "\"parameters\":{\"apiVersion\":\"resource.nvidia.com/"                                              \
        "v1beta1\",\"kind\":\"GpuConfig\",\"sharing\":{"                                                     \
        "\"strategy\":\"TimeSlicing\",\"timeSlicingConfig\":{\"interval\":\"Long\"}}}}}"
#define GATE "--feature-gates=TimeSlicingSettings=true"

static int setup(void **state) {
        struct world *w = world_new(&files);
        _cleanup_(freep) char *log = world_path(w, "smi.log");
        _cleanup_(freep) char *smi = xasprintf("#!/bin/sh\necho \"$*\" >> %s\n", log);
        world_put_node(w, "root/dev/nvidia0", 0);
        world_put_node(w, "root/dev/nvidia1", 1);
        world_put_node(w, "root/dev/nvidiactl", 255);
        tree_put(w->dir, "root/usr/bin/nvidia-smi", smi);
        w->quiet = true;
        *state = w;
        return 0;
}

static int teardown(void **state) {
        world_free(*state);
        return 0;
}

static char *text_of(const struct world *w, const char *path) {
        _cleanup_(freep) char *full = world_path(w, path);
        char *text = NULL;
        struct err e;
        return file_read(full, 4 << 20, &text, NULL, &e) < 0 ? xstrdup("") : text;
}

static bool has_file(const struct world *w, const char *uid) {
        _cleanup_(freep) char *name = xasprintf("cdi/k8s.gpu.nvidia.com-claim_%s.yaml", uid);
        _cleanup_(freep) char *path = world_path(w, name);
        return access(path, F_OK) == 0;
}

static bool has_entry(const struct world *w, const char *uid, const char *state) {
        _cleanup_(freep) char *text = text_of(w, "plugins/gpu.nvidia.com/checkpoint.json");
        _cleanup_(freep) char *entry = xasprintf("\"%s\":{\"checkpointState\":\"%s\"", uid, state);
        return strstr(text, entry) != NULL;
}

/* A runtime reads every CDI file, so a temporary file of a killed process must not remain. */
static void no_leftovers(const struct world *w, const char *folder) {
        _cleanup_(freep) char *path = world_path(w, folder);
        DIR *d = opendir(path);
        assert_non_null(d);
        for (struct dirent *f; (f = readdir(d));) {
                const char *uid = strstr(f->d_name, "claim_");
                if (strstr(f->d_name, ".tmp."))
                        fail_msg("a temporary file remains: %s/%s", folder, f->d_name);
                if (!uid)
                        continue;
                _cleanup_(freep) char *of = xstrndup(uid + 6, strlen(uid + 6) - strlen(".yaml"));
                if (!has_entry(w, of, "PrepareCompleted"))
                        fail_msg("a CDI file without a claim: %s", f->d_name);
        }
        closedir(d);
}

static const char *last_slice(const struct world *w) {
        _cleanup_(freep) char *text = text_of(w, "smi.log");
        const char *at = text, *slice = "0";
        for (; (at = strstr(at, "--set-timeslice ")); at += 16)
                slice = at[16] == '3' ? "3" : "0";
        return slice;
}

struct run {
        const char *calls, *gate;
        unsigned n; /* the plugin is killed before this call */
        bool killed;
};

/* Retries until there is an answer. False: the plugin was killed and restarted. */
static bool ask(struct world *w, struct run *r, const char *what, const char *claim, const char *uid) {
        for (;;) {
                struct answer a = world_try(w, what, claim, uid);
                bool prepares = strcmp(what, "prepare") == 0;
                if (a.status == 0) {
                        assert_int_equal(has_file(w, uid), prepares);
                        assert_int_equal(has_entry(w, uid, "PrepareCompleted"), prepares);
                        no_leftovers(w, "cdi");
                        no_leftovers(w, "plugins/gpu.nvidia.com");
                        return true;
                }
                if (a.status != 2)
                        fail_msg("at call %u of %s: %s: %s", r->n, r->calls, what, a.text);
                if (!w->plugin) {
                        r->killed = true;
                        w->env[0] = NULL;
                        world_start(w, r->gate);
                        return false;
                }
                run_for(&w->loop, 20);
        }
}

static void insist(struct world *w, struct run *r, const char *what, const char *claim, const char *uid) {
        while (!ask(w, r, what, claim, uid))
                ;
}

/* other: after the kill the Prepare is not retried. Its claim is unprepared, and another claim gets the GPU.
 */
static void one_run(struct world *w, struct run *r, bool other) {
        _cleanup_(freep) char *preload = xasprintf("LD_PRELOAD=%s", kill_at_lib);
        _cleanup_(freep) char *at = xasprintf("KILL_AT=%u", r->n);
        _cleanup_(freep) char *calls = xasprintf("KILL_CALLS=,%s,", r->calls);
        _cleanup_(freep) char *plugins = world_path(w, "plugins"), *cdi = world_path(w, "cdi");
        if (access(plugins, F_OK) == 0)
                tree_remove(TAKE(plugins));
        if (access(cdi, F_OK) == 0)
                tree_remove(TAKE(cdi));
        tree_put(w->dir, "smi.log", "");
        buf_clear(&w->says);
        r->killed = false;
        w->env[0] = preload;
        w->env[1] = at;
        w->env[2] = calls;
        w->env[3] = "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0";
        w->env[4] = NULL;
        world_start(w, r->gate);
        if (other) {
                (void)ask(w, r, "prepare", "c", CLAIM_UID);
        } else {
                insist(w, r, "prepare", "c", CLAIM_UID);
                assert_string_equal(last_slice(w), r->gate ? "3" : "0");
        }
        insist(w, r, "unprepare", "c", CLAIM_UID);
        assert_string_equal(last_slice(w), "0");
        if (other) {
                insist(w, r, "prepare", "d", ANOTHER_UID);
                insist(w, r, "unprepare", "d", ANOTHER_UID);
                assert_string_equal(last_slice(w), "0");
        }
        world_end(w);
        if (w->exit_status != 0 && w->exit_status != 128 + 9)
                fail_msg("it ended with %d", w->exit_status);
        r->killed = r->killed || w->exit_status == 128 + 9;
        w->exit_status = 0;
}

/* Fails if there are fewer calls than this, because then the test counts the wrong ones. */
static void points(struct world *w, unsigned least, const char *calls, const char *gate, bool other) {
        struct run r = { .calls = calls, .gate = gate, .n = 1 };
        for (;; r.n += stride) {
                one_run(w, &r, other);
                if (!r.killed)
                        break;
        }
        print_message("%s: killed before the calls up to %u\n", calls, r.n - 1);
        assert_in_range(r.n, least, 10000);
}

/* failure: the GPU plugin is killed at any step -> the next one completes the claim */
static void killed_at_every_step_of_prepare_and_unprepare(void **state) {
        struct world *w = *state;
        points(w, 8, "fsync", NULL, false);
        points(w, 4, "rename", NULL, false);
        points(w, 2, "unlink,remove", NULL, false);
        points(w, 20, "write,writev", NULL, false);
}

/* failure: the GPU plugin is killed while another claim waits for the GPU -> both claims complete */
static void killed_at_every_step_while_another_claim_waits_for_the_gpu(void **state) {
        struct world *w = *state;
        points(w, 8, "fsync", NULL, true);
}

/* failure: the GPU plugin is killed at any step with a time slice -> the time slice is reset */
static void killed_at_every_step_with_a_time_slice(void **state) {
        struct world *w = *state;
        w->config = SLICED;
        points(w, 8, "fsync", GATE, false);
        points(w, 8, "pipe2", GATE, false); /* before each nvidia-smi, and each answer of NVML */
        points(w, 8, "pipe2", GATE, true);
}

/* failure: the GPU plugin is killed at any step with a MIG device -> the next one completes the claim */
static void killed_at_every_step_with_a_mig_device(void **state) {
        struct world *w = *state;
        world_conf(w, "GPU_COUNT=2\nGPU1_MIG=\"3g@0\"\n");
        tree_put(w->dir, "proc-devices", "Character devices:\n195 nvidia\n509 nvidia-uvm\n240 nvidia-caps\n");
        tree_put(w->dir, "root/proc/driver/nvidia/capabilities/gpu1/mig/gi1/access",
                 "DeviceFileMinor: 12\nDeviceFileMode: 292\n");
        tree_put(w->dir, "root/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access",
                 "DeviceFileMinor: 13\nDeviceFileMode: 292\n");
        w->results = RESULT("gpu", "gpu-1-mig-3g93gb-9-0");
        points(w, 8, "fsync", NULL, false);
        points(w, 4, "rename", NULL, true);
}

int main(int argc, char **argv) {
        if (argc != 6)
                return 2;
        files = (struct world_files){ argv[1], argv[2], argv[3], argv[4] };
        kill_at_lib = argv[5];
        if (getenv("EVERY_POINT"))
                stride = 1;
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(killed_at_every_step_of_prepare_and_unprepare),
                T(killed_at_every_step_while_another_claim_waits_for_the_gpu),
                T(killed_at_every_step_with_a_time_slice),
                T(killed_at_every_step_with_a_mig_device),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
