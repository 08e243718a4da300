/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/stderr.h"
#include "cd_plugin/cd_driver.h"
#include "cd_plugin/cd_devices.h"
#include "node/checkpoint_layouts.h"
#include "node/claim_gc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A CDI file that another program may have written, while the checkpoint is lost. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct checkpoint table = { .codec = &cd_device_codec, .boot_id = "b" },
                          again = { .codec = &cd_device_codec };
        const struct claims_options o = { .driver = &cd_driver,
                                          .node = "n0",
                                          .boot_id = "11111111-1111-4111-8111-111111111111" };
        struct buf text = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct err e;
        if (claim_gc_rebuild(&table, &o, "c0000000-0000-4000-8000-000000000001",
                             (struct str){ (const char *)data, n }, true)) {
                checkpoint_encode(&table, &text);
                BUG_ON(checkpoint_decode((struct str){ text.p, text.n }, &again, &e) < 0 ||
                       HASH_COUNT(again.claims) != 1);
                checkpoint_done(&again);
        }
        buf_done(&text);
        checkpoint_done(&table);
        return 0;
}
