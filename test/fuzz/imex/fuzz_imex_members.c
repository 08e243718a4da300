/* SPDX-License-Identifier: Apache-2.0 */
/* The members file: accepted members can be rendered into files or are rejected there, and a copy equals
 * them. */
#include "base/stderr.h"
#include "imex/imex_members.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        _cleanup_(buf_done) struct buf hosts = BUF_INIT(4 * IMEX_HOSTS_MAX);
        struct imex_members *m;
        struct err e;

        if (imex_members_parse((struct str){ (const char *)data, n }, "me", a, &m, &e) < 0) {
                BUG_ON(e.kind != ERR_INVALID && e.kind != ERR_NOT_FOUND);
                return 0;
        }
        BUG_ON(!imex_members_equal(m, imex_members_copy(a, m)));
        (void)imex_hosts_render(STR(""), m, 18, &hosts, &e);
        return 0;
}
