/* SPDX-License-Identifier: Apache-2.0 */
/* From the output of the NVML worker to the slices: for every input, the API server accepts the result. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/stderr.h"
#include "gpu_plugin/gpu_devices.h"

enum { VALUE_MAX = 64, VALUES_MAX = 32, BODY_MAX = 4 << 20 };

static void check_version(const char *text) {
        unsigned long long v[3];
        char again[64];
        BUG_ON(sscanf(text, "%llu.%llu.%llu", &v[0], &v[1], &v[2]) != 3);
        snprintf(again, sizeof again, "%llu.%llu.%llu", v[0], v[1], v[2]);
        BUG_ON(strcmp(text, again) != 0);
}

static void check_device(const struct gpu_device *d) {
        const struct offered_device *o = &d->offered;
        BUG_ON(!str_is_dns_label(o->name) || o->name != d->name);
        BUG_ON(o->n_attributes + o->n_capacities > VALUES_MAX);
        for (size_t i = 0; i < o->n_attributes; i++) {
                const struct offered_attribute *a = &o->attributes[i];
                BUG_ON(i && strcmp(o->attributes[i - 1].name, a->name) >= 0);
                if (a->text) {
                        struct str s = str_from(a->text);
                        BUG_ON(s.n > VALUE_MAX || str_utf8_cut(s, s.n) != s.n);
                }
                if (a->version)
                        check_version(a->version);
        }
        for (size_t i = 0; i < o->n_capacities; i++) {
                BUG_ON(i && strcmp(o->capacities[i - 1].name, o->capacities[i].name) >= 0);
                BUG_ON(o->capacities[i].quantity[0] < '0' || o->capacities[i].quantity[0] > '9');
        }
}

static void check_slice(const struct gpu_devices *d) {
        static const char *const versions[] = { "v1", "v1beta2", "v1beta1" };
        struct arena *a = arena_new(4096);
        struct offered_device *offered = arena_alloc(a, (d->n + 1) * sizeof *offered);
        for (size_t i = 0; i < d->n; i++)
                offered[i] = d->items[i].offered;
        const struct slice_content want = { .driver = "gpu.nvidia.com",
                                            .devices = offered,
                                            .n_devices = d->n };
        const struct slice_part whole = { .of = 1, .n = d->n };
        const struct own_slice written = { .o.meta = { .name = "s-1", .rv = "7" } };
        for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
                struct buf text = BUF_INIT(BODY_MAX);
                struct own_slice back = { 0 };
                struct err e;
                slice_render(versions[v], "n0", "uid", &written, &want, &text);
                BUG_ON(text.failed);
                BUG_ON(jd_decode_text(own_slice_fields, (struct str){ text.p, text.n }, "", a, &back, &e) <
                       0);
                BUG_ON(!slice_part_matches(&back, "n0", &want, &whole));
                buf_done(&text);
        }
        arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(4096);
        struct inventory in = { 0 };
        struct err e;
        if (inventory_decode((struct str){ (const char *)data, n }, a, &in, &e) == 0) {
                struct gpu_devices d;
                gpu_devices_describe(&in, "/nonexistent", &d);
                for (size_t i = 0; i < d.n; i++) {
                        check_device(&d.items[i]);
                        BUG_ON(gpu_device_find(&d, d.items[i].name) != &d.items[i]);
                }
                BUG_ON(!gpu_devices_equal(&d, &d));
                check_slice(&d);
                gpu_devices_done(&d);
        }
        arena_free(a);
        return 0;
}
