/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "api/gpu_config.h"
#include "base/stderr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Input that any user may write into a claim. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct gates off, on;
        struct gpu_config a = { 0 }, b = { 0 };
        struct err e;
        gates_init(&off);
        on = off;
        on.on[GATE_TIME_SLICING_SETTINGS] = on.on[GATE_MPS_SUPPORT] = true;
        int with = gpu_config_decode((struct str){ (const char *)data, n }, &on, &a, &e);
        int without = gpu_config_decode((struct str){ (const char *)data, n }, &off, &b, &e);
        /* A gate that is off only rejects more. */
        BUG_ON(without == 0 && (with < 0 || b.sharing != GPU_EXCLUSIVE || a.kind != b.kind));
        return 0;
}
