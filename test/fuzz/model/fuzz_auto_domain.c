/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a tenant's pod: its ComputeDomain has a valid name and an owner, or there is none. */
#include <stdlib.h>
#include <string.h>

#include "model/auto_domain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(1024);
        struct auto_pod_meta meta = { .n_owners = 0 };
        struct err e;
        if (jd_decode_text(auto_pod_meta_fields, (struct str){ (const char *)data, n }, "", a, &meta, &e) ==
            0) {
                const struct auto_pod *p = auto_pod_trim(&meta, a);
                if (p->domain && (strlen(p->domain) > 253 || !str_starts(p->domain, "auto-") ||
                                  strspn(p->domain, "abcdefghijklmnopqrstuvwxyz0123456789-.") !=
                                          strlen(p->domain) ||
                                  strchr("-.", p->domain[strlen(p->domain) - 1])))
                        abort();
                if (p->domain && (!p->owner.api_version || !p->owner.kind || !p->owner.name || !p->owner.uid))
                        abort();
                if (!p->domain != !p->key || (p->key && !str_ends(p->key, p->domain)))
                        abort();
        }
        arena_free(a);
        return 0;
}
