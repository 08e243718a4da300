/* SPDX-License-Identifier: Apache-2.0 */
/* Opaque configurations: strictly valid input is also leniently valid and means the same, and a valid
 * domainID is safe as a file name. */
#include <stdlib.h>
#include <string.h>

#include "api/opaque.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(1024);
        struct str json = { (const char *)data, n };
        struct opaque_config strict, lenient;
        struct err e;
        bool good = opaque_decode(json, true, a, &strict, &e) == 0;
        bool read = opaque_decode(json, false, a, &lenient, &e) == 0;
        if (good &&
            (!read || strict.kind != lenient.kind || strcmp(strict.domain_id, lenient.domain_id) != 0 ||
             strcmp(strict.allocation_mode, lenient.allocation_mode) != 0))
                abort();
        if (good && (strlen(strict.domain_id) != 36 || strpbrk(strict.domain_id, "/.")))
                abort();
        arena_free(a);
        return 0;
}
