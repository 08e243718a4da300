/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the rendering of a slice of 64 MIG devices, and its comparison with that of the server: the cost
 * of each change, for a taint as for a device. */
#include "gpus.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "gpu_plugin/gpu_devices.h"
#include "gpu_plugin/gpu_offer.h"
#include "rows.h"

enum { GPUS = 16, PARTS = 4, ROUNDS = 200, SLICE_MAX = 1 << 20 };

/* The devices have all possible attributes. */
static void put_function(struct world *w, unsigned i) {
        const char *const files[][2] = { { "vendor", "0x10de\n" },
                                         { "class", "0x030200\n" },
                                         { "numa_node", "0\n" } };
        for (unsigned k = 0; k < ARRAY_LEN(files); k++) {
                _cleanup_(freep) char *path =
                        xasprintf("sys/devices/pci%04x:00/%04x:01:00.0/%s", i, i, files[k][0]);
                tree_put(w->dir, path, files[k][1]);
        }
        _cleanup_(freep) char *link = xasprintf("%s/sys/bus/pci/devices/%04x:01:00.0", w->dir, i);
        _cleanup_(freep) char *to = xasprintf("../../../devices/pci%04x:00/%04x:01:00.0", i, i);
        assert_int_equal(symlink(to, link), 0);
}

static void describe(struct world *w, struct gpu_devices *ret) {
        struct gpu_facts gpus[GPUS] = { 0 };
        struct mig_facts parts[GPUS][PARTS] = { 0 };
        struct arena *a = arena_new(4096);
        _cleanup_(freep) char *sys = world_path(w, "sys");
        tree_put(w->dir, "sys/bus/pci/devices/.keep", "");
        for (unsigned i = 0; i < GPUS; i++) {
                put_function(w, i);
                gpus[i] = (struct gpu_facts){ .index = i,
                                              .minor = i,
                                              .uuid = arena_printf(a, "GPU-%08x-0000-4000-8000-000000000000",
                                                                   i),
                                              .name = "NVIDIA GB200",
                                              .brand = 14,
                                              .architecture = 10,
                                              .compute_capability = "10.0",
                                              .memory_bytes = 189471LL << 20,
                                              .pci_bus_id = arena_printf(a, "%08X:01:00.0", i),
                                              .addressing_mode = "ATS",
                                              .mig_mode = 1,
                                              .mig = parts[i],
                                              .n_mig = PARTS };
                for (unsigned k = 0; k < PARTS; k++)
                        parts[i][k] = (struct mig_facts){
                                .uuid = arena_printf(a, "MIG-%08x-0000-4000-8000-%012x", i, k),
                                .gpu_instance = 3 + k,
                                .gi_profile = 9,
                                .profile_id = 15,
                                .start = 2 * k,
                                .size = 2,
                                .gpu_slices = 1,
                                .compute_slices = 1,
                                .multiprocessors = 26,
                                .copy_engines = 1,
                                .decoders = 1,
                                .jpeg_engines = 1,
                                .memory_mib = 47360,
                        };
        }
        gpu_devices_describe(
                &(struct inventory){
                        .driver_version = "580.95.05", .cuda_version = 13000, .gpus = gpus, .n_gpus = GPUS },
                sys, ret);
        arena_free(a);
        assert_int_equal(ret->n, GPUS * PARTS);
}

static double cpu_ms(void) {
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* As the publisher does: it renders the slice to look for a change, and again as the body of a request, and
 * decodes and compares the server's answer. */
static void round_of(const struct gpu_devices *d, struct buf *text, struct buf *body) {
        struct own_slice there = { .o.meta = { .name = "00000-gpu.nvidia.com-n0-abcde", .rv = "1" },
                                   .generation = 1 };
        struct own_slice answer = { 0 };
        struct slice_content want = gpu_offer_content(d, NULL);
        struct arena *a = arena_new(4096);
        struct err e;
        buf_clear(text);
        buf_clear(body);
        slice_render("v1", "", "", NULL, &want, text);
        slice_render("v1", "n0", "4ad6c81c-1b2c-4f6a-9f0e-2b9a3b6f3a11", &there, &want, body);
        if (jd_decode_text(own_slice_fields, (struct str){ buf_str(body), body->n }, "", a, &answer, &e) < 0)
                fail_msg("%s", e.msg);
        assert_true(slice_part_matches(&answer, "n0", &want,
                                       &(struct slice_part){ .of = 1, .n = want.n_devices }));
        arena_free(a);
        arena_free(want.arena);
}

void bench_slice(void **state) {
        struct buf text = BUF_INIT(SLICE_MAX), body = BUF_INIT(SLICE_MAX);
        struct gpu_devices d;
        describe(*state, &d);
        round_of(&d, &text, &body);
        double began = cpu_ms();
        for (int i = 0; i < ROUNDS; i++)
                round_of(&d, &text, &body);
        _cleanup_(freep) char *note = xasprintf(
                "mean of %d rounds: rendered twice, the server's answer decoded and compared", ROUNDS);
        row("slice of 64 MIG devices with all attributes: CPU of rendering and comparing; body",
            "<= 2 ms; <= 160 KiB", note, "%.2f ms; %.0f KiB", (cpu_ms() - began) / ROUNDS,
            (double)body.n / 1024);
        gpu_devices_done(&d);
        buf_done(&text);
        buf_done(&body);
}
