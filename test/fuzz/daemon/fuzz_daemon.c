/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's memory and the fabric object of its partition: a decision is possible for every accepted input,
 * a remembered assignment is valid, and its text means the same when it is read again. */
#include "base/stderr.h"
#include "daemon/memory.h"
#include "model/assignment_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* `n` chooses the inputs that do not come from the fabric object. */
static void decide(const struct decision_memory *m, const struct compute_domain_fabric *f, size_t n,
                   struct arena *a) {
        const struct decision_input in = {
                .fabric = f,
                .current = n & 1,
                .node = "n0",
                .claim = "claim",
                .boot_id = "boot",
                .memory = m,
                .imex = m->now.domain ? (enum decision_imex)(n / 2 % (DECISION_IMEX_KILLED + 1))
                                      : DECISION_IMEX_NONE,
                .use = (enum imex_use)(n / 16 % (IMEX_USE_UNKNOWN + 1)),
                .withdrawn = n & 64,
                .terminating = n & 128,
        };
        struct decision_memory after;
        struct decision d;

        decision_make(&in, a, &d);
        BUG_ON(d.memory.closed < m->closed);
        for (size_t i = 0; f && i < d.memory.n_left; i++)
                BUG_ON(d.memory.left[i] > d.memory.closed ||
                       (m->now.domain && d.memory.left[i] == m->now.epoch));
        if (d.step == DECISION_ENTER)
                BUG_ON(m->now.domain || d.assignment.epoch <= m->closed ||
                       d.assignment.epoch > d.memory.closed || !str_is_uuid(d.assignment.domain));
        if (d.step == DECISION_LEAVE && !in.withdrawn)
                BUG_ON(!f || !m->now.domain);
        if (!m->now.domain)
                return;
        decision_left(m, a, &after);
        BUG_ON(after.now.domain || after.closed < m->now.epoch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        _cleanup_(freep) char *text = xstrndup((const char *)data, n);
        _cleanup_(buf_done) struct buf b = BUF_INIT(ASSIGNMENT_ID_MAX);
        const struct memory_identity of = { "boot", "fabric", "pod" };
        struct memory m = { 0 }, copy;
        struct compute_domain_fabric f = { 0 };
        struct assignment_id s, again;
        struct err e;

        if (memory_parse((struct str){ (const char *)data, n }, &of, a, &m, &e) < 0) {
                BUG_ON(e.kind != ERR_INVALID && e.kind != ERR_NOT_FOUND);
                m = (struct memory){ 0 };
        }
        BUG_ON(m.decision.now.domain && (!str_is_uuid(m.decision.now.domain) || m.decision.now.index < 0));
        memory_copy(&m, a, &copy);
        if (jd_decode_text(compute_domain_fabric_fields, (struct str){ (const char *)data, n }, "", a, &f,
                           &e) == 0)
                decide(&copy.decision, &f, n, a);
        decide(&copy.decision, NULL, n, a);
        if (assignment_id_parse(text, &s)) {
                assignment_id_render(s.clique_id, s.domain_uid, s.index, s.epoch, &b);
                BUG_ON(!assignment_id_parse(buf_str(&b), &again) || again.epoch != s.epoch);
        }
        return 0;
}
