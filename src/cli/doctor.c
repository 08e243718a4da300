/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include <string.h>

#include "base/mem.h"
#include "cli/diagnosis.h"

const struct doctor_fault_text doctor_faults[DOCTOR_FAULTS] = {
#define PRE DOCTOR_PRE
#define RUNNING DOCTOR_RUNNING
#define GO DOCTOR_GO
#define NODE DOCTOR_NODE
#define FAULT(constant, name, check, area, modes, text) [constant] = { name, check, area, modes, text },
#include "cli/doctor.def"
#undef FAULT
#undef PRE
#undef RUNNING
#undef GO
#undef NODE
};

enum doctor_fault doctor_fault_find(const char *name) {
        size_t i = 0;
        while (i < DOCTOR_FAULTS && !streq(doctor_faults[i].name, name))
                i++;
        return (enum doctor_fault)i;
}

/* ---- results ---- */

static struct doctor_result *doctor_add(struct doctor *d, enum doctor_state state, const char *text) {
        ARENA_GROW(d->a, d->results, d->n, d->cap);
        d->results[d->n] = (struct doctor_result){
                .check = d->check, .state = state, .text = text, .fault = DOCTOR_FAULTS
        };
        return &d->results[d->n++];
}

#define DOCTOR_TEXT(text)                                                                                    \
        _cleanup_(buf_done) struct buf text = BUF_INIT(64 << 10);                                            \
        va_list ap;                                                                                          \
        va_start(ap, fmt);                                                                                   \
        buf_vaddf(&text, fmt, ap);                                                                           \
        va_end(ap)

void doctor_ok(struct doctor *d, const char *fmt, ...) {
        DOCTOR_TEXT(b);
        doctor_add(d, DOCTOR_OK, arena_strdup(d->a, buf_str(&b)));
}

void doctor_skip(struct doctor *d, const char *fmt, ...) {
        DOCTOR_TEXT(b);
        doctor_add(d, DOCTOR_SKIPPED, arena_strdup(d->a, buf_str(&b)));
}

void doctor_fail_reason(struct doctor *d, enum doctor_fault fault, const struct reason *r, const char *fix,
                        const char *text) {
        struct doctor_result *x = doctor_add(d, DOCTOR_PROBLEM, text);
        x->fault = fault;
        x->reason = r;
        x->fix = fix ? fix : r ? str_or(r->remedy, r->meaning) : "";
}

void doctor_fail(struct doctor *d, enum doctor_fault fault, const char *fix, const char *fmt, ...) {
        DOCTOR_TEXT(b);
        const char *name = doctor_faults[fault].name;
        const struct reason *r = NULL;
        for (size_t i = 0; i < reason_count && !r; i++)
                if (reason_list[i].is_cause && streq(reason_list[i].name, name))
                        r = &reason_list[i];
        doctor_fail_reason(d, fault, r, fix, arena_strdup(d->a, buf_str(&b)));
}

bool doctor_doubts_driver(struct doctor *d, bool verified) {
        const struct view *v = d->v;
        bool several = verified && v->gpu_releases;
        if (v->driver != VIEW_DRIVER_UNCLEAR && !(verified && v->driver == VIEW_DRIVER_ASSUMED) && !several)
                return false;
        struct doctor_result *x =
                doctor_add(d, DOCTOR_SKIPPED,
                           several ? v->driver_doubt
                                   : arena_printf(d->a,
                                                  "%s Or name the driver's namespace: --namespace NAMESPACE",
                                                  v->driver_doubt));
        x->denied = view_state(v, VIEW_ADMISSION, NULL) == VIEW_UNREADABLE;
        x->failed = !x->denied;
        return true;
}

static bool doctor_readable(struct doctor *d, enum view_kind k, const char *ns, enum view_state state,
                            const char *why) {
        const char *plural = view_resource(k)->plural;
        if (state == VIEW_COMPLETE)
                return true;
        struct doctor_result *x = doctor_add(
                d, DOCTOR_SKIPPED,
                state == VIEW_UNREADABLE
                        ? arena_printf(d->a, "needs permission to list %s%s%s", plural,
                                       ns ? " in namespace " : "", ns ? ns : "")
                        : arena_printf(d->a, "%s: %s", plural, str_or(why, "the list is not complete")));
        x->denied = state == VIEW_UNREADABLE;
        x->failed = !x->denied;
        return false;
}

bool doctor_needs(struct doctor *d, enum view_kind k, const char *ns) {
        view_read(d->v, k, ns);
        return doctor_readable(d, k, ns, view_state(d->v, k, ns), view_why(d->v, k, ns));
}

bool doctor_needs_one(struct doctor *d, enum view_kind k, const char *name) {
        view_read_one(d->v, k, NULL, name);
        return doctor_readable(d, k, NULL, view_state_one(d->v, k, NULL, name), NULL);
}

int doctor_exit(const struct doctor *d) {
        bool denied = false, failed = false;
        for (size_t i = 0; i < d->n; i++) {
                if (d->results[i].state == DOCTOR_PROBLEM)
                        return COMMAND_PROBLEM;
                denied = denied || d->results[i].denied;
                failed = failed || d->results[i].failed;
        }
        return denied ? COMMAND_DENIED : failed ? COMMAND_FAILED : COMMAND_FINE;
}

/* ---- output ---- */

static const enum term_mark doctor_marks[] = {
        [DOCTOR_OK] = TERM_OK, [DOCTOR_PROBLEM] = TERM_BAD, [DOCTOR_SKIPPED] = TERM_UNKNOWN
};

static size_t state_count(const struct doctor *d, enum doctor_state state) {
        size_t n = 0;
        for (size_t i = 0; i < d->n; i++)
                n += d->results[i].state == state;
        return n;
}

/* A command is one line, so that it can be copied. */
static bool is_command(const char *fix) {
        return str_starts(fix, "kubectl ") || str_starts(fix, "helm ");
}

void doctor_print(const struct doctor *d, struct term *t) {
        size_t n = state_count(d, DOCTOR_PROBLEM), skipped = state_count(d, DOCTOR_SKIPPED);
        int width = 0;
        for (size_t i = 0; i < d->n; i++)
                width = (int)strlen(d->results[i].check) > width ? (int)strlen(d->results[i].check) : width;
        for (size_t i = 0; i < d->n; i++) {
                const struct doctor_result *x = &d->results[i];
                term_add_mark(t, doctor_marks[x->state]);
                term_line(t, "%-*s  %s%s%s%s%s", width, x->check,
                          x->state == DOCTOR_SKIPPED ? "skipped: " : "", x->text, x->reason ? "  [" : "",
                          x->reason ? diagnosis_entry_name(x->reason) : "", x->reason ? "]" : "");
                if (x->state == DOCTOR_PROBLEM && *x->fix && is_command(x->fix))
                        term_line(t, "       %s", x->fix);
                else if (x->state == DOCTOR_PROBLEM && *x->fix)
                        term_paragraph(t, "", x->fix);
        }
        term_newline(t);
        if (n)
                term_line(t, "%zu problem%s", n, n == 1 ? "" : "s");
        else
                term_line(t, skipped ? "No problem found. %zu check%s skipped." : "No problem found.",
                          skipped, skipped == 1 ? " was" : "s were");
}

static const char *const state_words[] = {
        [DOCTOR_OK] = "ok", [DOCTOR_PROBLEM] = "problem", [DOCTOR_SKIPPED] = "skipped"
};

void doctor_json(const struct doctor *d, struct buf *out) {
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        term_json(&w, "namespace", d->ns, d->a);
        jw_int(&w, "problems", (int64_t)state_count(d, DOCTOR_PROBLEM));
        jw_int(&w, "skipped", (int64_t)state_count(d, DOCTOR_SKIPPED));
        jw_arr(&w, "checks");
        for (size_t i = 0; i < d->n; i++) {
                const struct doctor_result *x = &d->results[i];
                jw_obj(&w, NULL);
                term_json(&w, "check", x->check, d->a);
                jw_str(&w, "state", state_words[x->state]);
                term_json(&w, "text", x->text, d->a);
                if (x->state == DOCTOR_PROBLEM) {
                        jw_str(&w, "fault", doctor_faults[x->fault].name);
                        if (x->reason)
                                jw_str(&w, "reason", diagnosis_entry_name(x->reason));
                        term_json(&w, "fix", x->fix, d->a);
                }
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        buf_addc(out, '\n');
}
