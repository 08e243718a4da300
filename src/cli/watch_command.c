/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/command_table.h"
#include "cli/overview.h"
#include "cli/pod_case.h"

enum { WATCH_MS = 2000 };

/* Adds one picture. Returns the exit code of the command that it repeats. */
static int watch_once(struct cli *c, struct view *v, const char *domain) {
        struct diagnosis d = { .v = v, .a = v->a };
        if (!domain)
                return overview_add(c, v);
        if (domain_diagnose(&d, c->source->ns, domain))
                diagnosis_print(&d, &c->t);
        else
                term_line(&c->t, "computedomain/%s does not exist in namespace %s, or may not be read",
                          domain, c->source->ns);
        return diagnosis_exit(&d);
}

/* On a terminal, each picture replaces the one before. Elsewhere, only pictures that differ are printed. */
static int watch_run(struct cli *c) {
        const char *arg = c->n_args ? c->args[0] : NULL;
        bool prefixed = arg && strchr(arg, '/');
        const char *name = prefixed ? why_domain_name(arg) : arg;
        bool terminal = isatty(STDOUT_FILENO);
        _cleanup_(freep) char *before = NULL;
        if (c->n_args > 1)
                return command_usage(c, "usage: watch [computedomain/NAME]");
        if (prefixed && !name)
                return command_usage(c, "'%s' is no ComputeDomain, and `watch` shows only these", arg);
        if (streq(options.output, "json"))
                return command_usage(c, "`watch` prints no JSON. Repeat `status -o json` instead");
        for (;;) {
                struct view v;
                view_init(&v, c->source);
                watch_once(c, &v, name);
                view_done(&v);
                char *now = buf_steal(&c->t.out);
                c->t.out.limit = TERM_OUT_MAX;
                if (terminal || !streq(now, before)) {
                        if (terminal)
                                buf_adds(&c->t.out, "\033[H\033[2J");
                        buf_adds(&c->t.out, now);
                        if (!terminal)
                                term_newline(&c->t);
                }
                free(before);
                before = now;
                if (command_flush(c) < 0)
                        return COMMAND_FAILED; /* nobody reads the output */
                /* A table for people needs no watch of the API server: it reads few lists. */
                if (poll(NULL, 0, WATCH_MS) < 0)
                        return COMMAND_FINE;
                c->source->now = (int64_t)time(NULL);
        }
}

const struct command command_watch = {
        .name = "watch",
        .args = "[computedomain/NAME]",
        .summary = "repeat `status`, or the state of one ComputeDomain, until it is interrupted",
        .text = "Repeats `status` every two seconds, or shows the conditions and nodes of one ComputeDomain. "
                "Ctrl-C ends it. Other kinds of objects and -o json are refused.",
        .reads = true,
        .no_bundle = true,
        .run = watch_run,
};
