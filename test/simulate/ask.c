/* SPDX-License-Identifier: Apache-2.0 */
#include "ask.h"

#include "base/stderr.h"
#include "cli/pod_case.h"
#include "cli/term.h"

void ask_why(struct source *s, const char *ns, const char *pod, struct ask_answer *ret, struct buf *text) {
        struct view v;
        view_init(&v, s);
        struct diagnosis d = { .v = &v, .a = v.a };
        struct term t = { .out = BUF_INIT(TERM_OUT_MAX) };
        *ret = (struct ask_answer){ 0 };
        BUG_ON(!pod_diagnose(&d, ns, pod));
        for (size_t i = 0; i < d.n_causes; i++)
                if (!d.causes[i].possible && ret->n < ASK_CAUSES)
                        ret->causes[ret->n++] = d.causes[i].reason->is_message ? d.causes[i].reason->anchor
                                                                               : d.causes[i].reason->name;
        ret->unread = d.n_unread;
        diagnosis_print(&d, &t);
        buf_adds(text, buf_str(&t.out));
        buf_done(&t.out);
        view_done(&v);
}
