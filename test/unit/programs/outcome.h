/* SPDX-License-Identifier: Apache-2.0 */
/* outcome: runs a program of the driver to its end, and returns its output and how it ended. */
#pragma once

#include <stdio.h>
#include <uv.h>

#include "base/child.h"

struct outcome {
        int status;
        char out[2048];
};

static inline void outcome_on_done(void *u, const struct child_result *r) {
        struct outcome *o = u;
        assert_null(r->err);
        o->status = r->exit_status;
        snprintf(o->out, sizeof o->out, "%.*s", (int)r->out.n, r->out.p);
}

static inline struct outcome outcome_of(const char *const *argv, const char *const *env) {
        struct outcome o = { 0 };
        child_run(uv_default_loop(),
                  &(struct child_options){
                          .argv = argv, .env = env, .timeout_ms = 20000, .done = outcome_on_done, .u = &o });
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        return o;
}
