/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/stderr.h"
#include "nvidia/proc_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct str text = { (const char *)data, n };
        struct err e;
        unsigned v;
        if (proc_devices_major(text, PROC_MAJOR_IMEX_CHANNELS, &v, &e) == 0)
                BUG_ON(v < 1 || v > 4095);
        if (proc_params_channel_count(text, &v, &e) == 0)
                BUG_ON(v > 1 << 16);
        return 0;
}
