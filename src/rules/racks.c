/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/racks.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "model/rack.h"

bool racks_is_domain(const struct compute_domain *cd) {
        const char *template = cd->channel ? cd->channel->template_name : NULL;
        size_t n = strlen(RACK_TEMPLATE_PREFIX);
        return cd->rack && *cd->rack && template && strncmp(template, RACK_TEMPLATE_PREFIX, n) == 0 &&
               streq(template + n, cd->o.meta.name);
}

/* A Node that is gone, or is elsewhere now, belongs to the rack no more; what a stale cache does not show
 * still may. *ret_doubted: one is in the text for that reason alone. */
static const char *nodes_text(const struct racks_facts *f, struct arena *a, size_t *ret_n,
                              bool *ret_doubted) {
        size_t bytes = 1;
        *ret_n = 0;
        for (size_t i = 0; i < f->n_nodes; i++)
                bytes += strlen(f->nodes[i].name) + 1;
        char *text = arena_alloc(a, bytes), *p = text;
        *p = '\0';
        for (size_t i = 0; i < f->n_nodes; i++) {
                const struct racks_node *n = &f->nodes[i];
                const bool belongs = n->states || (n->there && !n->moved);
                if (!belongs && !f->stale)
                        continue;
                *ret_doubted = *ret_doubted || !belongs;
                p = stpcpy(stpcpy(p, (*ret_n)++ ? "," : ""), n->name);
        }
        return text;
}

void racks_decide(const struct compute_domain *cd, const struct racks_facts *f, struct arena *a,
                  struct racks_decision *ret) {
        size_t n;
        bool doubted = false;
        *ret = (struct racks_decision){ .nodes = nodes_text(f, a, &n, &doubted) };
        bool ours = streq(cd->rack_uid, cd->o.meta.uid);
        if (cd->o.meta.deleted || (!ours && !f->wanted))
                return;
        /* What is no time, or one of the future, is a clock's mistake or a person's: the day begins now. */
        int64_t since = 0;
        bool told = cd->rack_empty && jd_time(cd->rack_empty, &since) && since > 0 && since <= f->now;
        /* A rack that no Node states may be down. One that was empty before the list was lost stays empty. */
        if (!n && f->lost && f->wanted && !told)
                return;
        if (!n)
                ret->empty_since = told ? since : f->now;
        int64_t left = n ? 0 : ret->empty_since + RACKS_EMPTY_S - f->now;
        bool over = !f->wanted || (!n && left <= 0);
        if (!ours || !streq(str_or(cd->rack_nodes, ""), ret->nodes) || (n ? cd->rack_empty != NULL : !told)) {
                ret->step = RACKS_NOTE;
        } else if (doubted || (over && f->stale)) {
                ret->step = RACKS_HOLD;
        } else if (over && !f->claimed) {
                ret->step = f->confirmed ? RACKS_DELETE : RACKS_ASK;
        }
        if (!n && left > 0)
                ret->recheck_s = left;
}
