/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `nvidia-imex-ctl -N -j`. */
#include "base/stderr.h"
#include "imex/imex_ctl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct imex_ctl_domain d;
        struct err e;

        if (imex_ctl_parse_domain((struct str){ (const char *)data, n }, a, &d, &e) < 0) {
                BUG_ON(e.kind != ERR_INVALID);
                return 0;
        }
        (void)imex_ctl_find(&d, "10.0.0.1", "a");
        for (size_t i = 0; i < d.n_nodes; i++)
                BUG_ON(d.nodes[i].id < 0 || !d.nodes[i].host || !d.nodes[i].status ||
                       imex_ctl_connected(&d.nodes[i]) > d.nodes[i].n_connections);
        return 0;
}
