/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dra_messages: a DRA request, whose content returns in a response. The first byte chooses the
 * request. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/stderr.h"
#include "base/err.h"
#include "base/mem.h"
#include "dra/dra_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_claims(const struct dra_claim *claims, size_t n) {
        BUG_ON(n == 0 || n > DRA_MAX_CLAIMS);
        for (size_t i = 0; i < n; i++) {
                const char *members[] = { claims[i].namespace, claims[i].name, claims[i].uid };
                for (size_t m = 0; m < ARRAY_LEN(members); m++)
                        BUG_ON(!*members[m] || *members[m] == '.' || strchr(members[m], '/') ||
                               strlen(members[m]) > DRA_MAX_NAME);
                for (size_t k = 0; k < i && n < 64; k++)
                        BUG_ON(streq(claims[i].uid, claims[k].uid));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        if (n < 1)
                return 0;
        bool prepare = data[0] & 1;
        struct str message = { (const char *)data + 1, n - 1 };
        struct arena *a = arena_new(0);
        struct buf out = BUF_INIT(1 << 30);
        struct dra_claim *claims;
        size_t n_claims;
        struct err e = { 0 };

        /* Any bytes become text, and the conversion does not change its own result. */
        char *once = dra_messages_text(a, arena_strndup(a, message.p, message.n), DRA_MAX_ERROR);
        BUG_ON(!streq(once, dra_messages_text(a, once, DRA_MAX_ERROR)));

        if (dra_messages_read_claims(message, a, &claims, &n_claims, &e) == 0) {
                check_claims(claims, n_claims);
                struct dra_result *results = arena_alloc(a, n_claims * sizeof(*results));
                for (size_t i = 0; i < n_claims; i++) {
                        struct dra_device *d = arena_alloc(a, sizeof(*d));
                        const char **ids = arena_alloc(a, 2 * sizeof(*ids));
                        ids[0] = claims[i].name;
                        *d = (struct dra_device){ .requests = ids,
                                                  .pool = claims[i].namespace,
                                                  .device = claims[i].uid,
                                                  .cdi_ids = ids };
                        results[i] = (struct dra_result){ .uid = claims[i].uid,
                                                          .devices = d,
                                                          .n_devices = 1,
                                                          .error = i % 3 ? NULL : once };
                }
                dra_messages_write_results(prepare, results, n_claims, a, &out);
                BUG_ON(out.failed || out.n == 0);
        } else {
                BUG_ON(e.kind != ERR_INVALID || !*e.msg);
        }
        buf_done(&out);
        arena_free(a);
        return 0;
}
