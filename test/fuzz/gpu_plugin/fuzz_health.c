/* SPDX-License-Identifier: Apache-2.0 */
/* The health of the GPUs that the plugin has stored (health.json), as the next process reads it. */
#include <stdint.h>
#include <string.h>

#include "base/stderr.h"
#include "api/names.h"
#include "gpu_plugin/health.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Room for the content of any input in its longest form. */
enum { TEXT_MAX = 16 << 20 };
static const char boot[] = "11111111-1111-4111-8111-111111111111";
static struct gpu_device items[] = {
        { .kind = GPU_FULL, .name = "gpu-0", .uuid = "GPU-0" },
        { .kind = GPU_MIG, .name = "gpu-1-mig-1g24gb-19-0", .uuid = "MIG-0", .parent_uuid = "GPU-1" },
};
static const struct gpu_devices devices = { .items = items, .n = ARRAY_LEN(items) };

/* Keys must be in order and values must be numbers, or the API server rejects all devices of the node. */
static void check_taints(const struct health *h, const struct gpu_device *d, struct arena *a) {
        const struct offered_taint *t;
        size_t n = health_taints(h, d, a, &t);
        for (size_t i = 0; i < n; i++) {
                BUG_ON(i && strcmp(t[i - 1].key, t[i].key) >= 0);
                BUG_ON(strspn(t[i].value, "0123456789") != strlen(t[i].value) || strlen(t[i].value) > 20);
                BUG_ON(!streq(t[i].effect, EFFECT_NONE) && !streq(t[i].effect, EFFECT_NO_SCHEDULE));
        }
}

static void check(struct health *h) {
        struct arena *a = arena_new(1024);
        for (size_t i = 0; i < devices.n; i++)
                check_taints(h, &items[i], a);
        /* An administrator has checked the GPUs. */
        health_forget_xids(h);
        BUG_ON(health_count(h, &devices, GPU_TAINT_XID, EFFECT_NO_SCHEDULE) ||
               health_count(h, &devices, GPU_TAINT_XID, EFFECT_NONE));
        arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const struct xids none;
        struct health *first = health_new(&none), *again = health_new(&none);
        struct buf written = BUF_INIT(TEXT_MAX), twice = BUF_INIT(TEXT_MAX);
        struct err e;
        if (health_restore(first, (struct str){ (const char *)data, n }, boot, &e) == 0) {
                health_render(first, boot, &written);
                BUG_ON(written.failed ||
                       health_restore(again, (struct str){ written.p, written.n }, boot, &e) < 0);
                health_render(again, boot, &twice);
                BUG_ON(!str_eq((struct str){ written.p, written.n }, (struct str){ twice.p, twice.n }));
                check(first);
        }
        health_free(first);
        health_free(again);
        buf_done(&written);
        buf_done(&twice);
        return 0;
}
