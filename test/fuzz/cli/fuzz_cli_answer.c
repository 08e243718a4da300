/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of kubectl proxy: the parser gives the same result however the bytes are divided. */
#include <stdlib.h>

#include "base/mem.h"
#include "cli/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Feeds the answer in pieces of at most `size` bytes. Returns whether it is complete. */
static bool answer_parse(struct http1 *h, const char *p, size_t n, size_t size) {
        struct err e;
        http1_init(h);
        for (size_t at = 0; at < n && !h->complete;) {
                size_t k = n - at < size ? n - at : size;
                if (http1_feed(h, p + at, k, &e) < 0)
                        return false;
                at += k;
        }
        return h->complete || http1_end(h, &e) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct http1 whole, bytes;
        const char *p = (const char *)data;
        if (n > 4096)
                return 0;
        bool x = answer_parse(&whole, p, n, n ? n : 1), y = answer_parse(&bytes, p, n, 1);
        if (x != y || (x && (whole.status != bytes.status || whole.body.n != bytes.body.n)))
                abort();
        if (x && whole.status < 200)
                abort();
        http1_done(&whole);
        http1_done(&bytes);
        return 0;
}
