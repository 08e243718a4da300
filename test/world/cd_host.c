/* SPDX-License-Identifier: Apache-2.0 */
#include "world/cd_node.h"

#include <stdio.h>

#include "base/mem.h"

const struct facts *facts_get(const struct facts_sampler *s) {
        return &w.facts;
}

void facts_poll_fast(struct facts_sampler *s, bool waiting) {
        w.hurried = waiting;
}

static uint64_t host_answered_ns;

bool host_imex_ready(const struct host_imex *h, uint64_t since_ns, char *reason, size_t n) {
        bool ready = host_answered_ns > since_ns && streq(w.host_reports, "READY");
        if (!ready)
                snprintf(reason, n, "n0: the host's nvidia-imex is %s", w.host_reports);
        return ready;
}

void host_imex_poll_fast(struct host_imex *h) {
        w.host_hurried = true;
}

void host_imex_poll_slow(struct host_imex *h) {
        w.host_hurried = false;
}

enum host_imex_own host_imex_own(const struct host_imex *h) {
        return w.host_own;
}

const struct host_imex_status *host_imex_get(const struct host_imex *h) {
        return &w.host_status;
}

void host_imex_settle(struct host_imex *h, bool on) {
        w.host_settles = on;
}

void host_answers(const char *says) {
        w.host_reports = says;
        host_answered_ns = uv_hrtime();
        claims_reevaluate(w.claims);
}

int facts_major(const struct facts_sampler *s, const char *name, unsigned *ret, struct err *e) {
        *ret = streq(name, PROC_MAJOR_CAPS) ? 241 : 240;
        return 0;
}
