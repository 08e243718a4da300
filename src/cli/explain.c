/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "api/reasons.h"
#include "cli/command_table.h"

static const char *const object_names[] = { "ComputeDomain", "ComputeDomainFabric",
                                            "Node",          "Pod",
                                            "ResourceClaim", "PodGroup",
                                            "DaemonSet",     "Namespace" };

static const char *objects_text(struct arena *a, unsigned objects) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1024);
        for (size_t i = 0; i < ARRAY_LEN(object_names); i++)
                if (objects & 1u << i)
                        buf_addf(&b, "%s%s", b.n ? ", " : "", object_names[i]);
        return arena_strdup(a, buf_str(&b));
}

static void explain_text(struct cli *c, const struct reason *r) {
        term_bold(&c->t, "%s", r->name);
        term_line(&c->t, "  %s of %s%s%s",
                  r->is_message                   ? "part of a message"
                  : r->is_cause                   ? "cause"
                  : r->objects == REASON_OF_ALERT ? "alert"
                                                  : "reason",
                  r->objects == REASON_OF_ALERT ? "Prometheus" : objects_text(c->a, r->objects),
                  *r->under && !streq(r->under, r->name) ? ", in " : "",
                  streq(r->under, r->name) ? "" : r->under);
        term_newline(&c->t);
        term_paragraph(&c->t, "MEANS", r->meaning);
        if (*r->remedy)
                term_paragraph(&c->t, "FIX", r->remedy);
        if (r->fixer != REASON_FIX_NONE)
                term_paragraph(&c->t, "WHO", reason_fixer_names[r->fixer]);
        term_line(&c->t, "DOC    docs/reference/reasons.md#%s", r->anchor);
}

static void explain_json(struct cli *c, struct jw *w, const struct reason *r) {
        jw_obj(w, NULL);
        term_json(w, "reason", r->name, c->a);
        term_json(w, "objects", objects_text(c->a, r->objects), c->a);
        term_json(w, "under", r->under, c->a);
        term_json(w, "meaning", r->meaning, c->a);
        term_json(w, "remedy", r->remedy, c->a);
        term_json(w, "who", reason_fixer_names[r->fixer], c->a);
        term_json(w, "anchor", r->anchor, c->a);
        jw_end_obj(w);
}

static void explain_names(struct cli *c) {
        for (size_t i = 0; i < reason_count; i++)
                if (!reason_list[i].is_message)
                        term_line(&c->t, "%s", reason_list[i].name);
}

/* The entries for a name, in any case, or for the text of a message. */
static size_t explain_find(const char *text, const struct reason **ret, size_t max) {
        size_t n = 0;
        for (size_t i = 0; i < reason_count && n < max; i++)
                if (!reason_list[i].is_message && strcasecmp(reason_list[i].name, text) == 0)
                        ret[n++] = &reason_list[i];
        const struct reason *message = n ? NULL : reason_find_anchor(text);
        if (!n && !message)
                message = reason_find_message(text);
        if (message)
                ret[n++] = message;
        return n;
}

static int explain_run(struct cli *c) {
        const struct reason *found[16];
        if (c->n_args == 0) {
                explain_names(c);
                return COMMAND_FINE;
        }
        _cleanup_(buf_done) struct buf text = BUF_INIT(64 << 10);
        for (size_t i = 0; i < c->n_args; i++)
                buf_addf(&text, "%s%s", i ? " " : "", c->args[i]);
        size_t n = explain_find(buf_str(&text), found, ARRAY_LEN(found));
        if (!n)
                return command_usage(
                        c, "the catalogue has no reason '%s'. `explain` without a name lists all reasons",
                        buf_str(&text));
        if (streq(options.output, "json")) {
                struct jw w = JW(&c->t.out);
                jw_arr(&w, NULL);
                for (size_t i = 0; i < n; i++)
                        explain_json(c, &w, found[i]);
                jw_end_arr(&w);
                term_newline(&c->t);
                return COMMAND_FINE;
        }
        for (size_t i = 0; i < n; i++) {
                if (i)
                        term_newline(&c->t);
                explain_text(c, found[i]);
        }
        return COMMAND_FINE;
}

const struct command command_explain = {
        .name = "explain",
        .args = "[REASON]",
        .summary = "meaning and remedy of a reason in an Event or condition, or of an alert",
        .text = "Prints what a reason in an Event or condition, or an alert of the chart, means, how to fix "
                "it, and who can do that. A "
                "message of the kubelet about "
                "a claim can be given instead, in quotation marks. Without a name, lists all reasons. Needs "
                "no cluster.\n\n"
                " kubectl compute-domains explain PeersMissing",
        .run = explain_run,
};
