/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_probe.h"

#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "base/stderr.h"
#include "base/loop.h"
#include "base/mem.h"

#define NEVER UINT64_MAX
/* Queries of the domain begin with this interval, which then grows. */
#define DOMAIN_STEP_MS 1000
/* After a change, other changes follow soon. */
#define DOMAIN_SETTLE_MS 200

struct imex_probe {
        uv_loop_t *loop;
        struct imex_probe_options o;
        char *socket_arg;
        struct loop_timer timer;
        struct child *child;
        uint64_t status_at, domain_at; /* loop time of the next query */
        unsigned status_ms, domain_ms; /* interval after it */
        uint64_t domain_asked;         /* loop time of the last query of the domain */
        uint64_t put_ns, asked_ns;     /* time of the present query, and of the last answered status query */
        bool slowed;
};

static void imex_probe_schedule(struct imex_probe *p);

static uint64_t from_now(const struct imex_probe *p, unsigned ms) {
        return uv_now(p->loop) + ms;
}

static unsigned grown(unsigned ms, unsigned limit) {
        return ms > limit / 2 ? limit : ms * 2;
}

static void describe(const struct child_result *r, unsigned timeout_ms, char *why, size_t n) {
        struct str out = r->out, line = { 0 }, last = { 0 };

        while (str_next_line(&out, &line))
                if (str_trim(line).n)
                        last = str_trim(line);
        if (r->err)
                snprintf(why, n, "nvidia-imex-ctl: %.100s", r->err->msg);
        else if (r->timed_out)
                snprintf(why, n, "nvidia-imex-ctl did not answer within %u ms", timeout_ms);
        else if (last.n)
                snprintf(why, n, "nvidia-imex-ctl prints '%.*s'", last.n < 100 ? (int)last.n : 100, last.p);
        else if (r->term_signal)
                snprintf(why, n, "nvidia-imex-ctl was ended by signal %d", r->term_signal);
        else
                snprintf(why, n, "nvidia-imex-ctl ended with exit code %d and no output", r->exit_status);
}

static void imex_probe_on_status(void *u, const struct child_result *r) {
        struct imex_probe *p = u;
        enum imex_status status = r->err || r->timed_out ? IMEX_STATE_NONE : imex_ctl_parse_status(r->out);
        char why[160] = "";

        p->child = NULL;
        if (status)
                p->asked_ns = p->put_ns;
        else
                describe(r, p->o.timeout_ms, why, sizeof why);
        p->status_at = from_now(p, p->status_ms);
        p->status_ms = grown(p->status_ms, p->slowed ? p->o.idle_ms : p->o.slow_ms);
        imex_probe_schedule(p);
        p->o.status(p->o.u, status, why);
}

static void imex_probe_on_domain(void *u, const struct child_result *r) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct imex_probe *p = u;
        struct imex_ctl_domain d;
        struct err e;
        char why[160] = "";
        struct str out = str_trim(r->out);
        bool json = !r->err && !r->timed_out && out.n && *out.p == '{';
        bool ok = !r->err && !r->timed_out && imex_ctl_parse_domain(r->out, a, &d, &e) == 0;

        p->child = NULL;
        p->domain_at = from_now(p, p->domain_ms);
        p->domain_ms = grown(p->domain_ms, p->o.idle_ms);
        imex_probe_schedule(p);
        if (!ok && json) /* the last line of JSON explains nothing */
                snprintf(why, sizeof why, "nvidia-imex-ctl: %.100s", e.msg);
        else if (!ok)
                describe(r, p->o.timeout_ms, why, sizeof why);
        p->o.domain(p->o.u, ok ? &d : NULL, why);
}

size_t imex_probe_max_output(unsigned slots) {
        return ((size_t)64 << 10) + slots * ((size_t)1024 + (size_t)slots * 192);
}

static void imex_probe_on_timer(void *u) {
        struct imex_probe *p = u;
        bool domain = p->domain_at < p->status_at;
        const char *const config_argv[] = { p->o.ctl_path, "-c", p->o.config_path, "-q", NULL };
        const char *const socket_argv[] = { p->o.ctl_path, "-q", p->socket_arg, NULL };
        const char *const domain_argv[] = { p->o.ctl_path, "-c", p->o.config_path, "-N", "-j", NULL };
        struct child_options co = {
                .argv = domain          ? domain_argv
                        : p->socket_arg ? socket_argv
                                        : config_argv,
                .chroot = p->o.chroot,
                .timeout_ms = p->o.timeout_ms,
                .max_output = domain ? imex_probe_max_output(p->o.slots) : 0,
                .done = domain ? imex_probe_on_domain : imex_probe_on_status,
                .u = p,
        };

        if (domain)
                p->domain_asked = uv_now(p->loop);
        p->put_ns = uv_hrtime();
        p->child = child_run(p->loop, &co);
}

static void imex_probe_schedule(struct imex_probe *p) {
        if (!p->child)
                loop_timer_at(&p->timer, p->status_at < p->domain_at ? p->status_at : p->domain_at);
}

void imex_probe_speed_up(struct imex_probe *p) {
        p->slowed = false;
        p->status_ms = p->o.first_ms;
        p->status_at = from_now(p, p->status_ms);
        imex_probe_schedule(p);
}

void imex_probe_slow_down(struct imex_probe *p) {
        p->slowed = true;
        p->status_ms = p->o.idle_ms;
        p->status_at = from_now(p, p->status_ms);
        imex_probe_schedule(p);
}

uint64_t imex_probe_asked_ns(const struct imex_probe *p) {
        return p->asked_ns;
}

void imex_probe_domain(struct imex_probe *p, unsigned ms) {
        BUG_ON(!p->o.config_path);
        p->domain_ms = DOMAIN_STEP_MS;
        p->domain_at = from_now(p, ms);
        imex_probe_schedule(p);
}

void imex_probe_domain_changed(struct imex_probe *p) {
        uint64_t at = from_now(p, DOMAIN_SETTLE_MS), earliest = p->domain_asked + DOMAIN_STEP_MS;
        BUG_ON(!p->o.config_path);
        if (at < earliest)
                at = earliest;
        p->domain_ms = DOMAIN_STEP_MS;
        if (p->domain_at > at)
                p->domain_at = at;
        imex_probe_schedule(p);
}

void imex_probe_stop(struct imex_probe *p) {
        child_cancel(p->child);
        p->child = NULL;
        p->status_at = p->domain_at = NEVER;
        imex_probe_schedule(p);
}

struct imex_probe *imex_probe_new(uv_loop_t *loop, const struct imex_probe_options *o) {
        BUG_ON(o->config_path && !o->slots);
        struct imex_probe *p = xnew(struct imex_probe);

        p->loop = loop;
        p->o = *o;
        /* With an equals sign, as the Go driver calls the real tool. */
        p->socket_arg = o->socket_path ? xasprintf("--u=%s", o->socket_path) : NULL;
        p->status_at = p->domain_at = NEVER;
        loop_timer_init(&p->timer, loop, imex_probe_on_timer, p);
        return p;
}

void imex_probe_free(struct imex_probe *p) {
        if (!p)
                return;
        child_cancel(p->child);
        loop_timer_done(&p->timer);
        free(p->socket_arg);
        free(p);
}
