/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims: for every one that can be decoded, its configurations and its place on a node can be
 * queried. */
#include <stdlib.h>
#include <string.h>

#include "api/claim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(1024);
        struct claim c = { 0 };
        struct claim_place place;
        struct opaque_config cfg;
        struct err e;
        if (jd_decode_text(claim_fields, (struct str){ (const char *)data, n }, "", a, &c, &e) == 0) {
                bool justified = false;
                for (size_t i = 0; i < c.n_results; i++) {
                        bool good = claim_config_for(&c, &c.results[i], true, a, &cfg, &e) == 0;
                        if (good && (cfg.kind == OPAQUE_DAEMON) != claim_result_is_daemon(&c.results[i]))
                                abort();
                        justified = justified || (good && claim_result_is_channel(&c.results[i]) &&
                                                  !c.results[i].admin_access && !cfg.own_channel);
                        (void)claim_config_for(&c, &c.results[i], false, a, &cfg, &e);
                }
                if (claim_place(&c, false, a, &place) != justified)
                        abort();
                if (c.n_results && !c.allocated)
                        abort();
        }
        arena_free(a);
        return 0;
}
