/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/own_channel.h"

#include <inttypes.h>
#include <stdio.h>

/* Why nobody gets a channel there, in the controller's words; NULL: it does not say. */
static const char *standstill(const struct compute_domain_fabric *f) {
        static const char *const types[] = { FABRIC_TABLE_LOST, FABRIC_CHANNELS_EXHAUSTED };
        const struct condition *c =
                f ? condition_first_true(f->conditions, f->n_conditions, types, ARRAY_LEN(types)) : NULL;
        return c ? str_or(c->message, c->type) : NULL;
}

bool own_channel(const struct compute_domain_fabric *f, const struct own_channel_question *q, int64_t *ret,
                 char *msg, size_t n) {
        const struct fabric_channel *c = f ? fabric_channel_of(f, q->domain_uid) : NULL;
        const char *rack = f ? str_or(f->rack, q->clique_id) : q->clique_id, *why = standstill(f);
        if (!c)
                snprintf(msg, n, "%s: no channel has been assigned to ComputeDomain '%s/%s' on %s yet%s%s",
                         q->node, q->domain_ns, q->domain_name, rack, why ? ": " : "",
                         why ? why
                             : "; if that lasts, look whether a compute-domain-controller leads and what it "
                               "logs");
        else if (c->releasing)
                snprintf(msg, n,
                         "%s: the channel of ComputeDomain '%s/%s' on %s is being taken back because nobody "
                         "had a claim for it; it is kept once the controller has seen this one",
                         q->node, q->domain_ns, q->domain_name, rack);
        else if (c->id < 1 || c->id >= FABRIC_CHANNELS_MOST || (uint64_t)c->id >= q->channel_count)
                snprintf(msg, n,
                         "%s: ComputeDomain '%s/%s' has channel %" PRId64
                         " on %s, which this node's driver does not have: it has 1 to %u "
                         "(NVreg_ImexChannelCount must be the same on all nodes of a fabric)",
                         q->node, q->domain_ns, q->domain_name, c->id, rack, q->channel_count - 1);
        else
                *ret = c->id;
        return c && !c->releasing && c->id >= 1 && c->id < FABRIC_CHANNELS_MOST &&
               (uint64_t)c->id < q->channel_count;
}
