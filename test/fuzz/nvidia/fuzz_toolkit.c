/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "nvidia/toolkit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The container toolkit's config.toml, which people edit. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        bool ignores;
        struct err e;
        (void)toolkit_ignores((struct str){ (const char *)data, n }, &ignores, &e);
        return 0;
}
