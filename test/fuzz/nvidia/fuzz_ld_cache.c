/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/stderr.h"
#include "nvidia/ld_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct str path;
        size_t at = 0, found = 0;
        while (ld_cache_next((struct str){ (const char *)data, n }, "libcuda.so.1", &at, &path)) {
                BUG_ON(!path.n || path.p[0] != '/' || path.p + path.n > (const char *)data + n);
                found++;
        }
        BUG_ON(found > n / 24);
        return 0;
}
