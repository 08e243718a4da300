/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin's report: every readable one has valid IDs and owners, and means the same after it is written and
 * read again. A fabric object is readable or not; nothing more is checked. */
#include <stdlib.h>
#include <string.h>

#include "model/channel_report.h"
#include "model/fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool same(const struct channel_report_fabric *x, const struct channel_report_fabric *y) {
        bool is = strcmp(x->clique_id, y->clique_id) == 0 && strcmp(x->uid, y->uid) == 0 &&
                  x->count == y->count && x->n_held == y->n_held && streq(x->imex, y->imex) &&
                  streq(x->withheld, y->withheld);
        for (size_t i = 0; is && i < x->n_held; i++)
                is = x->held[i].id == y->held[i].id && strcmp(x->held[i].owner, y->held[i].owner) == 0;
        return is;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(1024);
        struct channel_report first, second;
        struct compute_domain_fabric f = { 0 };
        struct err e;
        if (channel_report_decode((struct str){ (const char *)data, n }, a, &first, &e) == 0) {
                struct buf b = BUF_INIT(1 << 20);
                channel_report_render(&first, &b);
                if (!b.failed) {
                        if (channel_report_decode((struct str){ buf_str(&b), b.n }, a, &second, &e) < 0 ||
                            first.n_fabrics != second.n_fabrics)
                                abort();
                        for (size_t i = 0; i < first.n_fabrics; i++) {
                                if (!same(&first.fabrics[i], &second.fabrics[i]))
                                        abort();
                                for (size_t k = 0; k < first.fabrics[i].n_held; k++)
                                        if (first.fabrics[i].held[k].id < 0 ||
                                            first.fabrics[i].held[k].id >= CHANNEL_REPORT_IDS_MAX ||
                                            strpbrk(first.fabrics[i].held[k].owner, "/."))
                                                abort();
                        }
                }
                buf_done(&b);
        }
        if (jd_decode_text(compute_domain_fabric_fields, (struct str){ (const char *)data, n }, "", a, &f,
                           &e) == 0)
                (void)fabric_channel_of(&f, "x");
        arena_free(a);
        return 0;
}
