/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/stderr.h"
#include "nvidia/proc_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct proc_capability c;
        struct err e;
        if (proc_capability_parse((struct str){ (const char *)data, n }, &c, &e) == 0)
                BUG_ON(c.mode > 0777 || c.minor >= 1 << 20);
        return 0;
}
