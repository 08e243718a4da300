/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/racks.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "model/rack.h"
#include "rules/sorted.h"

bool racks_is_domain(const struct compute_domain *cd) {
        const char *template = cd->channel ? cd->channel->template_name : NULL;
        size_t n = strlen(RACK_TEMPLATE_PREFIX);
        return cd->rack && *cd->rack && template && strncmp(template, RACK_TEMPLATE_PREFIX, n) == 0 &&
               streq(template + n, cd->o.meta.name);
}

/* The names of the rack's Nodes. A Node that does not exist, or states another rack, no longer belongs to the
 * rack. While a cache is stale, it stays in the text. *ret_doubted: a Node is in the text only for that
 * reason. */
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
        BUG_ON(!cd || f->now <= 0);
        BUG_ON_UNSORTED(f->nodes, f->n_nodes, name);
        size_t n;
        bool doubted = false;
        *ret = (struct racks_decision){ .nodes = nodes_text(f, a, &n, &doubted) };
        bool ours = streq(cd->rack_uid, cd->o.meta.uid);
        if (cd->o.meta.deleted || (!ours && !f->wanted))
                return;
        /* A text that is no time, or a time in the future, is wrong: the day begins now. */
        int64_t since = 0;
        bool recorded = cd->rack_empty && jd_time(cd->rack_empty, &since) && since > 0 && since <= f->now;
        /* A rack that no Node states may be down. If it was empty before the list was lost, it stays
         * empty. */
        if (!n && f->lost && f->wanted && !recorded)
                return;
        if (!n)
                ret->empty_since = recorded ? since : f->now;
        int64_t left = n ? 0 : ret->empty_since + RACKS_EMPTY_S - f->now;
        bool over = !f->wanted || (!n && left <= 0);
        if (!ours || !streq(str_or(cd->rack_nodes, ""), ret->nodes) ||
            (n ? cd->rack_empty != NULL : !recorded)) {
                ret->step = RACKS_NOTE;
        } else if (doubted || (over && f->stale)) {
                ret->step = RACKS_PAUSE;
        } else if (over && !f->claimed) {
                ret->step = f->confirmed ? RACKS_DELETE : RACKS_ASK;
        }
        if (!n && left > 0)
                ret->recheck_s = left;
}

const char *racks_check(const struct racks_facts *f, const struct racks_decision *d) {
        if (d->step != RACKS_DELETE)
                return NULL;
        if (f->stale)
                return "it would be deleted while a cache is stale";
        if (f->claimed || !f->confirmed)
                return "it would be deleted while a claim may use it";
        for (size_t i = 0; f->wanted && i < f->n_nodes; i++)
                if (f->nodes[i].states)
                        return "it would be deleted while a Node states the rack";
        if (f->wanted && (!d->empty_since || f->now - d->empty_since < RACKS_EMPTY_S))
                return "it would be deleted before its rack has had no Node for a day";
        return NULL;
}
