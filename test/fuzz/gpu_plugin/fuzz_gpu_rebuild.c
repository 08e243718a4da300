/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "api/names.h"
#include "base/stderr.h"
#include "gpu_plugin/gpu_plan.h"
#include "gpu_plugin/gpu_record.h"
#include "node/checkpoint_layouts.h"
#include "node/claim_gc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A CDI file of ours or of the Go driver, whose claim the checkpoint has lost: the rebuilt entry must load
 * again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const char uid[] = "c0000000-0000-4000-8000-000000000001";
        static const struct node_driver driver = { .name = GPU_DRIVER,
                                                   .codec = &gpu_record_codec,
                                                   .rebuild = gpu_plan_rebuild };
        static const struct claims_options o = { .driver = &driver,
                                                 .node = "n0",
                                                 .boot_id = "11111111-1111-4111-8111-111111111111" };
        struct checkpoint c = { .codec = &gpu_record_codec }, again = c;
        struct buf text = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct err e;
        if (claim_gc_rebuild(&c, &o, uid, (struct str){ (const char *)data, n }, true)) {
                checkpoint_encode(&c, &text);
                BUG_ON(checkpoint_decode((struct str){ text.p, text.n }, &again, &e) < 0);
                BUG_ON(checkpoint_find(&again, uid)->n_devices != checkpoint_find(&c, uid)->n_devices);
                checkpoint_done(&again);
        }
        checkpoint_done(&c);
        buf_done(&text);
        return 0;
}
