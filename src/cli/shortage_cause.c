/* SPDX-License-Identifier: Apache-2.0 */
/* Why no channel device is free, as the controller reports it on the ComputeDomain. For users who may not
 * read the nodes, the slices and the claims of other namespaces. */
#include <string.h>

#include "api/names.h"
#include "cli/pod_case.h"

/* The reason of the nodes: "No node offers a channel (FabricError): 6 of 6 nodes withhold it". */
static const struct reason *reason_of_nodes(const struct pod_case *c, const char *message) {
        const char *at = strchr(message, '('), *end = at ? strchr(at, ')') : NULL;
        return end ? reason_find(REASON_OF_NODE, arena_strndup(c->d->a, at + 1, (size_t)(end - at) - 1))
                   : NULL;
}

bool shortage_diagnose(struct pod_case *c, bool has_affinity) {
        const struct cd_condition *x = NULL;
        for (size_t i = 0; c->cd && i < c->cd->n_conditions; i++)
                if (streq(c->cd->conditions[i].type, CONDITION_CHANNEL_AVAILABLE) &&
                    condition_status_decode(c->cd->conditions[i].status) == STATUS_FALSE)
                        x = &c->cd->conditions[i];
        const struct reason *r = x ? reason_find(REASON_OF_COMPUTE_DOMAIN, x->reason) : NULL;
        /* Only the affinity of the pod makes its partition a cause. */
        if (!r || (streq(x->reason, REASON_PARTITION_FULL) && (!has_affinity || !c->n_placed)))
                return false;
        const char *message = str_or(x->message, "");
        const struct reason *node =
                streq(x->reason, REASON_NO_CHANNEL_OFFERED) ? reason_of_nodes(c, message) : NULL;
        diagnosis_line(c->d, TERM_BAD, "channel", "%s", message);
        diagnosis_add(c->d, node ? node : r, NULL, "the controller reports on ComputeDomain %s: %s",
                      c->cd_name, message);
        return true;
}
