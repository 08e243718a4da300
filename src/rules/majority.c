/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/majority.h"

#include <inttypes.h>
#include <string.h>

#include "rules/message.h"

static int64_t usual_count(const struct majority *m, int64_t was) {
        int64_t best = was;
        size_t most = 0;
        for (size_t i = 0; i < m->n; i++) {
                int64_t count = m->nodes[i]->count;
                size_t n = 0;
                for (size_t k = 0; count >= 0 && k < m->n; k++)
                        n += m->nodes[k]->count == count;
                if (n > most || (n && n == most && best != was && (count == was || count < best))) {
                        most = n;
                        best = count;
                }
        }
        return best;
}

static const char *rack_of(const struct channels_node *x) {
        return x->rack;
}

static const char *imex_of(const struct channels_node *x) {
        return x->imex;
}

static const char *usual_text(const struct majority *m, const char *(*of)(const struct channels_node *x),
                              const char *was) {
        const char *best = was;
        size_t most = 0;
        for (size_t i = 0; i < m->n; i++) {
                const char *text = of(m->nodes[i]);
                size_t n = 0;
                for (size_t k = 0; text && k < m->n; k++)
                        n += streq(of(m->nodes[k]), text);
                if (n > most ||
                    (n && n == most && !streq(best, was) && (streq(text, was) || strcmp(text, best) < 0))) {
                        most = n;
                        best = text;
                }
        }
        return best;
}

void majority_find(const struct channels_node *const *nodes, size_t n,
                   const struct compute_domain_fabric *old, struct majority *ret) {
        *ret = (struct majority){ .nodes = nodes, .n = n };
        ret->channel_count = usual_count(ret, old ? old->channel_count : 0);
        ret->rack = usual_text(ret, rack_of, old ? old->rack : NULL);
        ret->imex_version = usual_text(ret, imex_of, old ? old->imex_version : NULL);
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
                                       "The driver of most nodes has %" PRId64
                                       " IMEX channels, that of %s another "
                                       "number: those nodes offer none until NVreg_ImexChannelCount is the "
                                       "same",
                                       m->channel_count, message_end(&counts, a));
        if (versions.n)
                of_versions = message_of(a,
                                         "nvidia-imex of most nodes is of version %s, that of %s of another: "
                                         "those nodes offer no channels until it is the same",
                                         m->imex_version, message_end(&versions, a));
        *ret = (struct majority_words){ *of_counts ? "ChannelCount" : "IMEXVersion",
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
                "DevicesWithheld",
                any ? message_of(a,
                                 "These nodes offer no channels to new pods, and the Event "
                                 "ComputeDomainDevicesWithheld of each says why: %s",
                                 message_end(&list, a))
                    : ""
        };
        return any;
}
