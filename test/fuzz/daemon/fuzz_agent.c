/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent remembers, and the object of its fabric: what is accepted can be decided upon, a seat that is
 * remembered is one that can be, and the seat's name means the same when it is read again. */
#include "base/diag.h"
#include "daemon/agent_memory.h"
#include "model/agent_seat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void decide(const struct turns_memory *m, const struct compute_domain_fabric *f, struct arena *a) {
        struct turns_memory after;
        struct turns t;

        turns_decide(f, "n0", m, a, &t);
        BUG_ON(t.step == TURNS_ENTER && m->now.domain);
        BUG_ON(t.step != TURNS_ENTER && t.step != TURNS_STAY && !m->now.domain);
        BUG_ON(t.step == TURNS_ENTER && t.seat.epoch <= m->entered);
        turns_left(m, a, &after);
        BUG_ON(after.now.domain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        _cleanup_(freep) char *text = xstrndup((const char *)data, n);
        _cleanup_(buf_done) struct buf b = BUF_INIT(AGENT_SEAT_MAX);
        const struct agent_identity of = { "boot", "fabric", "pod" };
        struct agent_memory m = { 0 }, copy;
        struct compute_domain_fabric f = { 0 };
        struct agent_seat s, again;
        struct err e;

        if (agent_memory_parse((struct str){ (const char *)data, n }, &of, a, &m, &e) < 0) {
                BUG_ON(e.kind != ERR_INVALID && e.kind != ERR_NOT_FOUND);
                m = (struct agent_memory){ 0 };
        }
        BUG_ON(m.turns.now.domain && (!str_is_uuid(m.turns.now.domain) || m.turns.now.index < 0));
        agent_memory_copy(&m, a, &copy);
        if (jd_decode_text(compute_domain_fabric_fields, (const char *)data, n, false, "", a, &f, &e) == 0)
                decide(&copy.turns, &f, a);
        decide(&copy.turns, NULL, a);
        if (agent_seat_parse(text, &s)) {
                agent_seat_render(s.clique_id, s.domain_uid, s.index, s.epoch, &b);
                BUG_ON(!agent_seat_parse(buf_str(&b), &again) || again.epoch != s.epoch);
        }
        return 0;
}
