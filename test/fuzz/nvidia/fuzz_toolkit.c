/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/toml.h"
#include "nvidia/toolkit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The container toolkit's config.toml, which people edit. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const char *const path[] = { "plugins", "io.containerd.cri.v1.runtime", "containerd",
                                            "default_runtime_name", NULL };
        struct toml_value v;
        bool ignores;
        struct err e;
        (void)toolkit_ignores((struct str){ (const char *)data, n }, &ignores, &e);
        (void)toml_find((struct str){ (const char *)data, n }, path, &v, &e);
        return 0;
}
