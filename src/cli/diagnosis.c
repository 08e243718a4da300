/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/diagnosis.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const char *formatted(struct arena *a, const char *fmt, va_list ap)
        __attribute__((format(printf, 2, 0)));
static const char *formatted(struct arena *a, const char *fmt, va_list ap) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(64 << 10);
        buf_vaddf(&b, fmt, ap);
        return arena_strdup(a, buf_str(&b));
}

void diagnosis_line(struct diagnosis *d, enum term_mark m, const char *label, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        ARENA_GROW(d->a, d->lines, d->n_lines, d->cap_lines);
        d->lines[d->n_lines++] = (struct diagnosis_line){ m, label, formatted(d->a, fmt, ap) };
        va_end(ap);
}

void diagnosis_hint(struct diagnosis *d, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        ARENA_GROW(d->a, d->hints, d->n_hints, d->cap_hints);
        d->hints[d->n_hints++] = formatted(d->a, fmt, ap);
        va_end(ap);
}

static struct diagnosis_cause *diagnosis_put(struct diagnosis *d, const struct reason *r, const char *text) {
        for (size_t i = 0; i < d->n_causes; i++)
                if (d->causes[i].reason == r)
                        return &d->causes[i];
        ARENA_GROW(d->a, d->causes, d->n_causes, d->cap_causes);
        d->causes[d->n_causes] = (struct diagnosis_cause){ .reason = r, .text = text };
        return &d->causes[d->n_causes++];
}

struct diagnosis_cause *diagnosis_add(struct diagnosis *d, const struct reason *r, const char *fix,
                                      const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        struct diagnosis_cause *c = diagnosis_put(d, r, formatted(d->a, fmt, ap));
        va_end(ap);
        c->possible = false;
        if (!c->fix)
                c->fix = fix;
        return c;
}

void diagnosis_no_driver(struct diagnosis *d, const char *lack) {
        const char *gpus = view_gpus_only(d->v);
        diagnosis_add(d, reason_cause(CAUSE_NO_DRIVER),
                      gpus ? "to install ComputeDomains, run `helm upgrade` with "
                             "resources.computeDomains.enabled=true"
                           : NULL,
                      "%s: %s", lack, view_no_driver(d->v));
}

void diagnosis_no_domains(struct diagnosis *d) {
        static const char lack[] = "the cluster has no ComputeDomains";
        view_find_driver(d->v);
        if (view_lacks_definition(d->v))
                diagnosis_add(d, reason_cause(CAUSE_NO_DRIVER), DEFINITION_FIX,
                              "%s: the " DEFINITION " is missing", lack);
        else
                diagnosis_no_driver(d, lack);
}

void diagnosis_possible(struct diagnosis *d, const struct reason *r, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        diagnosis_put(d, r, formatted(d->a, fmt, ap))->possible = true;
        va_end(ap);
}

bool diagnosis_needs(struct diagnosis *d, enum view_kind k, const char *ns) {
        view_read(d->v, k, ns);
        if (view_state(d->v, k, ns) == VIEW_COMPLETE)
                return true;
        const char *plural = view_resource(k)->plural;
        const char *what = ns ? arena_printf(d->a, "%s of namespace %s", plural, ns)
                           : view_resource(k)->namespaced ? arena_printf(d->a, "%s of all namespaces", plural)
                                                          : plural;
        for (size_t i = 0; i < d->n_unread; i++)
                if (streq(d->unread[i].what, what))
                        return false;
        ARENA_GROW(d->a, d->unread, d->n_unread, d->cap_unread);
        bool denied = view_state(d->v, k, ns) == VIEW_UNREADABLE;
        const char *why = denied ? "may not be read" : str_or(view_why(d->v, k, ns), "not complete");
        d->unread[d->n_unread++] = (struct diagnosis_unread){ what, why, denied };
        return false;
}

bool diagnosis_failed(const struct diagnosis *d) {
        for (size_t i = 0; i < d->n_unread; i++)
                if (!d->unread[i].denied)
                        return true;
        return false;
}

int diagnosis_exit(const struct diagnosis *d) {
        bool denied = false;
        for (size_t i = 0; i < d->n_causes; i++)
                if (!d->causes[i].possible)
                        return COMMAND_PROBLEM;
        for (size_t i = 0; i < d->n_unread; i++)
                denied = denied || d->unread[i].denied;
        return d->fine && !diagnosis_failed(d) ? COMMAND_FINE
               : denied                        ? COMMAND_DENIED
               : d->n_unread                   ? COMMAND_FAILED
                                               : COMMAND_PROBLEM;
}

/* ---- output ---- */

static const char *const who_texts[REASON_FIXERS] = {
        [REASON_FIX_NONE] = "nobody has to act",
        [REASON_FIX_USER] = "you",
        [REASON_FIX_NAMESPACE_ADMIN] = "an admin of the namespace",
        [REASON_FIX_CLUSTER_ADMIN] = "a cluster admin",
        [REASON_FIX_HARDWARE] = "the operator of the hardware",
};

const char *diagnosis_entry_name(const struct reason *r) {
        return r->is_message ? r->anchor : r->name;
}

const char *diagnosis_fix(const struct diagnosis_cause *c) {
        return c->fix ? c->fix : str_or(c->reason->remedy, c->reason->meaning);
}

static void print_cause(const struct diagnosis *d, struct term *t, const struct diagnosis_cause *c) {
        term_newline(t);
        term_paragraph(t, c->possible ? "MAYBE" : "CAUSE",
                       arena_printf(d->a, "%s  [%s]", c->text, diagnosis_entry_name(c->reason)));
        term_paragraph(t, "FIX", diagnosis_fix(c));
        term_paragraph(t, "WHO", who_texts[c->reason->fixer]);
}

static size_t label_width(const struct diagnosis *d) {
        size_t n = 0;
        for (size_t i = 0; i < d->n_lines; i++)
                n = strlen(d->lines[i].label) > n ? strlen(d->lines[i].label) : n;
        return n;
}

void diagnosis_print(const struct diagnosis *d, struct term *t) {
        int width = (int)label_width(d);
        term_bold(t, "%s", d->object);
        term_line(t, "  %s", d->state ? d->state : "");
        for (size_t i = 0; i < d->n_lines; i++) {
                const struct diagnosis_line *x = &d->lines[i];
                term_add_branch(t, i + 1 == d->n_lines);
                term_add_mark(t, x->mark);
                term_line(t, "%-*s  %s", width, x->label, x->text);
        }
        for (size_t i = 0; i < d->n_causes; i++)
                print_cause(d, t, &d->causes[i]);
        if (d->n_causes == 0 && !d->fine) {
                term_newline(t);
                term_line(t, "The cause is not known.");
        }
        if (d->n_hints)
                term_newline(t);
        for (size_t i = 0; i < d->n_hints; i++)
                term_paragraph(t, "", d->hints[i]);
        if (d->n_unread)
                term_newline(t);
        for (size_t i = 0; i < d->n_unread; i++) {
                term_add_mark(t, TERM_UNKNOWN);
                term_line(t, "%s: %s", d->unread[i].what, d->unread[i].why);
        }
        if (d->n_unread && d->command && diagnosis_exit(d) == COMMAND_DENIED)
                term_line(t, "An admin can name the cause:  %s", d->command);
}

static const char *const mark_words[] = {
        [TERM_NONE] = "none", [TERM_OK] = "ok",           [TERM_BAD] = "bad",
        [TERM_WAIT] = "wait", [TERM_UNKNOWN] = "unknown",
};

void diagnosis_json(const struct diagnosis *d, struct buf *out) {
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        term_json(&w, "object", d->object, d->a);
        term_json(&w, "state", d->state, d->a);
        jw_bool(&w, "fine", d->fine && d->n_causes == 0 && !diagnosis_failed(d));
        jw_arr(&w, "steps");
        for (size_t i = 0; i < d->n_lines; i++) {
                jw_obj(&w, NULL);
                jw_str(&w, "step", d->lines[i].label);
                jw_str(&w, "mark", mark_words[d->lines[i].mark]);
                term_json(&w, "text", d->lines[i].text, d->a);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_arr(&w, "causes");
        for (size_t i = 0; i < d->n_causes; i++) {
                const struct diagnosis_cause *c = &d->causes[i];
                jw_obj(&w, NULL);
                jw_str(&w, "reason", diagnosis_entry_name(c->reason));
                jw_bool(&w, "possible", c->possible);
                term_json(&w, "cause", c->text, d->a);
                term_json(&w, "fix", diagnosis_fix(c), d->a);
                jw_str(&w, "who", reason_fixer_names[c->reason->fixer]);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_arr(&w, "hints");
        for (size_t i = 0; i < d->n_hints; i++)
                term_json(&w, NULL, d->hints[i], d->a);
        jw_end_arr(&w);
        jw_arr(&w, "unread");
        for (size_t i = 0; i < d->n_unread; i++) {
                jw_obj(&w, NULL);
                jw_str(&w, "what", d->unread[i].what);
                term_json(&w, "why", d->unread[i].why, d->a);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        term_json(&w, "adminCommand", d->n_unread ? d->command : NULL, d->a);
        jw_end_obj(&w);
        buf_addc(out, '\n');
}
