/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/shared_claim.h"

#include "api/kinds.h"
#include "api/names.h"
#include "api/reasons.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "rules/message.h"

/* Returns for how many seconds the controller still waits after another client has removed its write. */
static int64_t pause_left(int64_t since, int64_t pause_s, int64_t now) {
        int64_t left = since ? since + pause_s - now : 0;
        return left > 0 ? left : 0;
}

/* Adds the PodGroups to the consumers, up to the limit of the API. Returns whether any was added. */
static bool reserve(const struct shared_claim_facts *f, struct arena *a, struct shared_claim_decision *ret) {
        struct claim_consumer *list = arena_alloc(a, (f->n_consumers + f->n_groups + 1) * sizeof *list);
        size_t n = 0;
        for (size_t i = 0; i < f->n_consumers; i++)
                list[n++] = f->consumers[i];
        for (size_t i = 0; i < f->n_groups && n < CLAIM_PODS_MAX; i++)
                if (!claim_is_reserved_for(list, n, f->groups[i].uid))
                        list[n++] = f->groups[i];
        ret->reserved = list;
        ret->n_reserved = n;
        return n > f->n_consumers;
}

void shared_claim_decide(const struct shared_claim_facts *f, struct arena *a,
                         struct shared_claim_decision *ret) {
        BUG_ON(f->now <= 0);
        *ret = (struct shared_claim_decision){ 0 };
        /* Nobody can reserve a claim that is being deleted. */
        if (f->deleted) {
                if (f->finalizer && !f->n_consumers)
                        ret->step = SHARED_CLAIM_RELEASE;
                return;
        }
        if (!f->lives || !f->device)
                return;
        bool reserves = reserve(f, a, ret);
        if (f->allocated && !reserves)
                return;
        ret->recheck_s =
                f->allocated
                        ? pause_left(f->unreserved, SHARED_CLAIM_PAUSE_S, f->now)
                        : pause_left(f->deallocated,
                                     f->was_used ? SHARED_CLAIM_PAUSE_S : SHARED_CLAIM_UNFIT_PAUSE_S, f->now);
        if (!ret->recheck_s)
                ret->step = f->allocated ? SHARED_CLAIM_RESERVE : SHARED_CLAIM_ALLOCATE;
}

/* ---- nodes that offer the device ---- */

const struct cd_condition *shared_claim_condition(const struct compute_domain *cd) {
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (streq(cd->conditions[i].type, CONDITION_SHARED_CLAIM_AVAILABLE))
                        return &cd->conditions[i];
        return NULL;
}

bool shared_claim_is_reachable(const struct compute_domain *cd, enum shared_claim_reach reach,
                               const char **ret_reason, const char **ret_message) {
        const struct cd_condition *was = shared_claim_condition(cd);
        bool usable = was && condition_status_decode(was->status) == STATUS_TRUE,
             unreachable = was && streq(was->reason, REASON_NO_CHANNEL_OFFERED);
        if (reach == SHARED_REACH_NODES || (reach == SHARED_REACH_UNKNOWN && usable))
                return true;
        if (reach == SHARED_REACH_NONE || unreachable) {
                *ret_reason = REASON_NO_CHANNEL_OFFERED;
                *ret_message =
                        "No node offers a channel, so pods that use a shared claim wait: no Node has the "
                        "label " CD_LABEL_SHARED ", which the driver sets where IMEX is ready";
        } else {
                *ret_reason = REASON_SHARED_CLAIM_PENDING;
                *ret_message = "No Node has the label " CD_LABEL_SHARED " yet";
        }
        return false;
}

/* ---- PodGroups that share a claim for one node ---- */

static const char *on_one_node_remedy(const struct cd_channel *channel, bool shares, struct arena *a) {
        const char *pods =
                message_of(a,
                           "recreate the PodGroup without the claim in spec.resourceClaims, and let "
                           "each Pod name the claim template %s in its own spec.resourceClaims",
                           str_or(channel->template_name, ""));
        if (!shares)
                return pods;
        if (channel->shared_template_name)
                return message_of(a,
                                  "recreate the PodGroup with the claim template %s, whose claims Pods on "
                                  "several nodes can share",
                                  channel->shared_template_name);
        if (channel->claim_name)
                return message_of(
                        a,
                        "recreate the PodGroup with ResourceClaim %s, which Pods on several nodes can share",
                        channel->claim_name);
        return message_of(
                a,
                "use a ComputeDomain with spec.channel.sharedResourceClaimTemplate, and recreate the "
                "PodGroup with that claim template. Or %s",
                pods);
}

const char *shared_claim_on_one_node(const struct compute_domain *cd, const char *claim, const char *group,
                                     bool shares, struct arena *a) {
        BUG_ON(!cd->channel);
        const char *remedy = on_one_node_remedy(cd->channel, shares, a);
        if (group)
                return message_of(
                        a,
                        "The Pods of PodGroup %s share ResourceClaim %s. It is for a channel of one "
                        "node, so all these Pods can only run on the same node. For Pods on several "
                        "nodes, %s",
                        group, claim, remedy);
        return message_of(
                a,
                "ResourceClaim %s, which the Pods of this group share, is for a channel of "
                "ComputeDomain '%s'. A channel belongs to one node, so all these Pods can only run on "
                "the same node. For Pods on several nodes, %s",
                claim, cd->o.meta.name, remedy);
}

const char *shared_claim_terminating(const char *ns, const char *name, const char *const *finalizers,
                                     size_t n_finalizers, struct arena *a) {
        BUG_ON(!ns || !name);
        struct message_list list = { 0 };
        for (size_t i = 0; i < n_finalizers; i++)
                if (domain_finalizer_is_foreign(finalizers[i]))
                        message_add(&list, "%s", finalizers[i]);
        const char *names = message_end(&list, a);
        return message_of(a,
                          "ResourceClaim %s/%s is being deleted. The driver creates it again when all pods "
                          "that use it have ended%s%s",
                          ns, name, *names ? " and these finalizers are removed: " : "", names);
}
