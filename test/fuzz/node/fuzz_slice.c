/* SPDX-License-Identifier: Apache-2.0 */
/* A ResourceSlice of the node, as the API server has it. Others may have written to it. */
#include <stdint.h>

#include "base/stderr.h"
#include "node/slice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { BODY_MAX = 16 << 20 };
static const struct offered_attribute attributes[] = { { .name = "type", .text = "gpu" } };
static const struct offered_capacity capacities[] = { { "memory", "185Gi" } };
static const struct offered_taint taints[] = { { "gpu.nvidia.com/unmonitored", "", "None" },
                                               { "gpu.nvidia.com/xid", "79", "NoSchedule" } };
static const struct offered_device devices[] = {
        { "gpu-0", attributes, 1, capacities, 1, taints, 2 },
        { "gpu-1", attributes, 1, NULL, 0, NULL, 0 },
};

/* Whatever the slice contained, the update has exactly the desired content. */
static void write_over(const struct own_slice *there, enum slice_taints taken, struct arena *a) {
        static const char *const versions[] = { "v1", "v1beta2", "v1beta1" };
        const struct slice_content want = { .driver = "gpu.nvidia.com",
                                            .devices = devices,
                                            .n_devices = ARRAY_LEN(devices),
                                            .annotation = { "gpu.nvidia.com/kept", NULL },
                                            .word = "gpu.nvidia.com/clear-xids",
                                            .taints = taken };
        const struct slice_part whole = { .of = 1, .n = want.n_devices };
        (void)slice_part_matches(there, "n0", &want, &whole);
        for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
                struct buf text = BUF_INIT(BODY_MAX);
                struct own_slice back = { 0 };
                struct err e;
                slice_render(versions[v], "n0", "uid", there, &want, &text);
                BUG_ON(text.failed);
                BUG_ON(jd_decode_text(own_slice_fields, (struct str){ text.p, text.n }, "", a, &back, &e) <
                       0);
                BUG_ON(!slice_part_matches(&back, "n0", &want, &whole) ||
                       slice_has_annotation(&back, want.word));
                buf_done(&text);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(4096);
        struct own_slice s = { 0 };
        struct err e;
        /* Caches contain no object without a name and a version. */
        if (jd_decode_text(own_slice_fields, (struct str){ (const char *)data, n }, "", a, &s, &e) == 0 &&
            s.o.meta.name && s.o.meta.rv) {
                BUG_ON(slice_outranks(&s, &s));
                write_over(&s, SLICE_TAINTS_ALL, a);
                write_over(&s, SLICE_TAINTS_EFFECTIVE, a);
                write_over(&s, SLICE_TAINTS_NONE, a);
        }
        arena_free(a);
        return 0;
}
