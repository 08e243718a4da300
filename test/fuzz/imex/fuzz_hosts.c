/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting a hosts file: whatever its content was, a second rewrite changes nothing, and our own entry is in
 * it once. */
#include <string.h>

#include "base/stderr.h"
#include "base/mem.h"
#include "imex/imex_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        const struct imex_peer peers[] = { { .index = 1, .ip = "10.0.0.7" },
                                           { .index = 3, .ip = "fd00::3" },
                                           { .index = 2, .ip = "" } };
        const struct imex_members m = { 1, "ab", peers, ARRAY_LEN(peers) };
        _cleanup_(buf_done) struct buf once = BUF_INIT(4 * IMEX_HOSTS_MAX),
                                       twice = BUF_INIT(4 * IMEX_HOSTS_MAX);
        const char *own = "\n10.0.0.7\tcompute-domain-daemon-ab-0001\n", *at;
        struct err e;

        BUG_ON(imex_hosts_render((struct str){ (const char *)data, n }, &m, 5, &once, &e) < 0);
        BUG_ON(imex_hosts_render((struct str){ once.p, once.n }, &m, 5, &twice, &e) < 0);
        BUG_ON(once.n != twice.n || memcmp(once.p, twice.p, once.n) != 0);
        at = memmem(once.p, once.n, own, strlen(own));
        BUG_ON(!at || memmem(at + 1, once.n - (size_t)(at + 1 - once.p), own, strlen(own)));
        return 0;
}
