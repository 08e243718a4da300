/* SPDX-License-Identifier: Apache-2.0 */
/* ComputeDomains and cliques of the Go driver: every one that can be decoded can be judged, and the result is
 * JSON. The input is used as both. */
#include <stdlib.h>
#include <string.h>

#include "render/objects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must_be_json(struct buf *b) {
        yyjson_doc *doc = yyjson_read(buf_str(b), b->n, 0);
        if (b->failed || !doc)
                abort();
        yyjson_doc_free(doc);
        buf_clear(b);
}

static void judge(const struct compute_domain *cd, const struct clique *c, struct arena *a) {
        const struct go_facts facts = { .cd = cd, .cliques = &c, .n_cliques = 1 };
        struct membership m;
        struct verdict v;
        struct verdict_event *events;
        struct buf b = BUF_INIT(8 << 20);
        membership_make_go(&facts, a, &m);
        verdict_make(&(struct verdict_input){ cd, { 0 }, true, 1 }, &m, a, &v);
        (void)verdict_events(cd, &m, &v, a, &events);
        objects_status(cd, &v, &b);
        must_be_json(&b);
        objects_adopt(cd, "driverManaged", &b);
        must_be_json(&b);
        buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(4096);
        struct compute_domain cd = { 0 };
        struct clique c = { 0 };
        struct err e;
        if (jd_decode_text(compute_domain_fields, (struct str){ (const char *)data, n }, "", a, &cd, &e) ==
                    0 &&
            jd_decode_text(clique_fields, (struct str){ (const char *)data, n }, "", a, &c, &e) == 0)
                judge(&cd, &c, a);
        arena_free(a);
        return 0;
}
