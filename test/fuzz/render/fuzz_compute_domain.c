/* SPDX-License-Identifier: Apache-2.0 */
/* ComputeDomains and cliques: whatever decodes can be judged, and what is written for it is JSON. The input
 * is both at once. */
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
        static const struct node ready = { .o.meta.name = "n" };
        struct seat_facts *nodes = arena_alloc(a, (c->imex.n_seats + 1) * sizeof *nodes);
        size_t count = 0;
        for (size_t i = 0; i < c->imex.n_seats; i++)
                if (!count || strcmp(nodes[count - 1].name, c->imex.seats[i].node) <
                                      0) /* the caller's promise: sorted, each once */
                        nodes[count++] = (struct seat_facts){ .name = c->imex.seats[i].node,
                                                              .node = &ready,
                                                              .wanted = i % 2 == 0,
                                                              .clique = c->imex.clique_id };
        struct formation_input in = { .cd = cd,
                                      .nodes = nodes,
                                      .n_nodes = count,
                                      .cliques = &c,
                                      .n_cliques = 1,
                                      .max_nodes = 4,
                                      .dns_names = true,
                                      .infix = "i" };
        struct formation f;
        struct verdict v;
        struct verdict_event *events;
        struct buf b = BUF_INIT(8 << 20);
        formation_make(&in, a, &f);
        for (size_t i = 0; i < f.n_imex; i++) {
                objects_clique(&f.imex[i], "ns", "uid", &b);
                must_be_json(&b);
        }
        verdict_make(cd, &f, &(struct verdict_problem){ 0 }, true, 1, a, &v);
        (void)verdict_events(cd, &f, &v, a, &events);
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
        if (jd_decode_text(compute_domain_fields, (const char *)data, n, false, "", a, &cd, &e) == 0 &&
            jd_decode_text(clique_fields, (const char *)data, n, false, "", a, &c, &e) == 0)
                judge(&cd, &c, a);
        arena_free(a);
        return 0;
}
