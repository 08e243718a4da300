/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "api/claim.h"
#include "base/stderr.h"
#include "node/checkpoint_layouts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A ResourceClaim with opaque configurations, as Prepare (strictly) and Unprepare (leniently) read it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(4096);
        struct claim claim = { 0 };
        struct err e;
        yyjson_doc *doc = n ? yyjson_read((const char *)data, n, 0) : NULL;
        if (doc && jd_decode(claim_fields, yyjson_doc_get_root(doc), "", a, &claim, &e) == 0) {
                for (size_t i = 0; i < claim.n_results * 2; i++) {
                        struct opaque_config config;
                        if (claim_config_for(&claim, &claim.results[i / 2], i % 2, a, &config, &e) == 0 &&
                            i % 2)
                                BUG_ON(!str_is_uuid(config.domain_id));
                }
        }
        struct buf text = BUF_INIT(1 << 20);
        if (doc)
                (void)gojson_canonical(yyjson_doc_get_root(doc), NULL, &text);
        buf_done(&text);
        yyjson_doc_free(doc);
        arena_free(a);
        return 0;
}
