/* SPDX-License-Identifier: Apache-2.0 */
/* diagnosis: the answer of `why`: what was found step by step, the causes, and the facts that could not be
 * read.
 *
 * A cause is certain or possible. A possible cause is only named if missing permissions hide the facts that
 * would decide. Every cause has an entry in the catalogue (api/reasons), which gives the remedy and the role
 * that can fix it. */
#pragma once

#include "api/reasons.h"
#include "cli/rack_list.h"
#include "cli/term.h"
#include "cli/view.h"

struct diagnosis_line {
        enum term_mark mark;
        const char *label, *text;
};

struct diagnosis_cause {
        const struct reason *reason;
        const char *text; /* the facts */
        const char *fix;  /* a remedy with the facts; NULL: that of the catalogue */
        bool possible;
};

struct diagnosis_unread {
        const char *what, *why; /* "nodes", the answer of the API server */
        bool denied;            /* the user may not read them; otherwise the list failed */
};

struct diagnosis {
        struct view *v;
        struct arena *a;
        const char *object; /* "pod/bench-2 in team-b" */
        const char *state;  /* "ContainerCreating for 2m10s" */
        struct diagnosis_line *lines;
        struct diagnosis_cause *causes;
        struct diagnosis_unread *unread;
        const char **hints; /* sentences below the causes */
        size_t n_lines, cap_lines, n_causes, cap_causes, n_unread, cap_unread, n_hints, cap_hints;
        bool fine;           /* nothing is wrong, as far as known */
        const char *command; /* what an administrator should run, if permissions are missing; NULL: nothing */
};

void diagnosis_line(struct diagnosis *d, enum term_mark m, const char *label, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
void diagnosis_hint(struct diagnosis *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a certain cause, unless it was added before. `fix` may be NULL. Returns the cause. */
struct diagnosis_cause *diagnosis_add(struct diagnosis *d, const struct reason *r, const char *fix,
                                      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Adds the cause that ComputeDomains are not installed. `lack` is what shows it. */
void diagnosis_no_driver(struct diagnosis *d, const char *lack);
/* Adds the cause why the server does not serve ComputeDomains. */
void diagnosis_no_domains(struct diagnosis *d);
void diagnosis_possible(struct diagnosis *d, const struct reason *r, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Whether the objects of a namespace (NULL: of all) were read completely. If not, records that they are
 * missing. */
bool diagnosis_needs(struct diagnosis *d, enum view_kind k, const char *ns);
/* Whether a list failed that diagnosis_needs() asked for. Then nothing counts as fine. */
bool diagnosis_failed(const struct diagnosis *d);
/* The name with which `explain` finds the entry, and the remedy of a cause. */
const char *diagnosis_entry_name(const struct reason *r);
const char *diagnosis_fix(const struct diagnosis_cause *c);
/* The exit code: a cause is known, nothing is wrong, permissions are missing, or lists have failed. */
int diagnosis_exit(const struct diagnosis *d);
/* Adds the answer to the output. */
void diagnosis_print(const struct diagnosis *d, struct term *t);
void diagnosis_json(const struct diagnosis *d, struct buf *out);
