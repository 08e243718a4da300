/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/majority.h"

#include <inttypes.h>
#include <string.h>

#include "api/reasons.h"
#include "rules/message.h"

/* How one node's value compares with another's. A node that has reported nothing sorts last. */
typedef int order_fn(const struct channels_node *x, const struct channels_node *y);

static int by_count(const struct channels_node *x, const struct channels_node *y) {
        return (x->count > y->count) - (x->count < y->count);
}

static int by_rack(const struct channels_node *x, const struct channels_node *y) {
        return strcmp(str_or(x->rack, ""), str_or(y->rack, ""));
}

static int by_imex(const struct channels_node *x, const struct channels_node *y) {
        return strcmp(str_or(x->imex, ""), str_or(y->imex, ""));
}

/* A node that reports the same as most nodes, or `was`, which has the values of the object so far. */
static const struct channels_node *usual(const struct majority *m, order_fn *order,
                                         const struct channels_node *was) {
        static const struct channels_node nothing = { .count = -1 };
        const struct channels_node *best = was;
        size_t most = 0;
        for (size_t i = 0; i < m->n; i++) {
                const struct channels_node *x = m->nodes[i];
                size_t n = 0;
                for (size_t k = 0; order(x, &nothing) != 0 && k < m->n; k++)
                        n += order(m->nodes[k], x) == 0;
                if (n > most ||
                    (n && n == most && order(best, was) != 0 && (order(x, was) == 0 || order(x, best) < 0))) {
                        most = n;
                        best = x;
                }
        }
        return best;
}

void majority_find(const struct channels_node *const *nodes, size_t n,
                   const struct compute_domain_fabric *old, struct majority *ret) {
        const struct channels_node was = { .count = old ? old->channel_count : 0,
                                           .rack = old ? old->rack : NULL,
                                           .imex = old ? old->imex_version : NULL };
        *ret = (struct majority){ .nodes = nodes, .n = n };
        ret->channel_count = usual(ret, by_count, &was)->count;
        ret->rack = usual(ret, by_rack, &was)->rack;
        ret->imex_version = usual(ret, by_imex, &was)->imex;
}

bool majority_differ(const struct majority *m, struct arena *a, struct majority_words *ret) {
        struct message_list counts = { 0 }, versions = { 0 };
        const char *of_counts = "", *of_versions = "";
        for (size_t i = 0; i < m->n; i++) {
                const struct channels_node *x = m->nodes[i];
                if (x->count >= 0 && x->count != m->channel_count)
                        message_add(&counts, "%s", x->name);
                if (x->imex && !streq(x->imex, m->imex_version))
                        message_add(&versions, "%s (%s)", x->name, x->imex);
        }
        if (counts.n)
                of_counts = message_of(a,
                                       "Most nodes have %" PRId64
                                       " IMEX channels, but %s have another number. Those nodes offer no "
                                       "channels until NVreg_ImexChannelCount is the same",
                                       m->channel_count, message_end(&counts, a));
        if (versions.n)
                of_versions = message_of(a,
                                         "Most nodes have nvidia-imex %s, but %s have another version. Those "
                                         "nodes offer no channels until the version is the same",
                                         m->imex_version, message_end(&versions, a));
        *ret = (struct majority_words){ *of_counts ? REASON_CHANNEL_COUNT : REASON_IMEX_VERSION,
                                        message_of(a, "%s%s%s", of_counts,
                                                   *of_counts && *of_versions ? ". " : "", of_versions) };
        return *of_counts || *of_versions;
}

bool majority_withhold(const struct majority *m, struct arena *a, struct majority_words *ret) {
        struct message_list list = { 0 };
        for (size_t i = 0; i < m->n; i++)
                if (m->nodes[i]->withheld)
                        message_add(&list, "%s (%s)", m->nodes[i]->name, m->nodes[i]->withheld);
        bool any = list.n;
        *ret = (struct majority_words){
                REASON_DEVICES_WITHHELD,
                any ? message_of(a,
                                 "These nodes offer no channels to new pods. The Event "
                                 "ComputeDomainDevicesWithheld of each Node explains why: %s",
                                 message_end(&list, a))
                    : ""
        };
        return any;
}
