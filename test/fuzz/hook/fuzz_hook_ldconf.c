/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/stderr.h"
#include "hook/ldconf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void include(void *u, const char *pattern) {
        BUG_ON(*pattern != '/' || strlen(pattern) >= PATH_MAX || strchr(pattern, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const char *const folders[] = { "/usr/lib64", "/usr/lib64/vdpau" };
        bool known[2] = { false };
        struct ldconf c = { .folders = folders, .n_folders = 2, .known = known };
        ldconf_parse(&c, (const char *)data, n, include, NULL);
        if (known[0])
                BUG_ON(!memmem(data, n, folders[0], strlen(folders[0])));
        return 0;
}
