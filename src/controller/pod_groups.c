/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/pod_groups.h"

#include "api/reasons.h"

static void pod_groups_report(struct controller *c, const struct claim_record *r) {
        const struct claim_group *g = r->group;
        const struct compute_domain *cd = records_domain(c, g->domain_uid);
        if (!cd || !cd->channel || !streq(cd->o.meta.ns, r->o.meta.ns))
                return;
        event_record(
                c->events,
                &(struct event_about){ g->api_version, CLAIM_GROUP_KIND, r->o.meta.ns, g->name, g->uid },
                EVENT_WARNING, REASON_POD_GROUP_ON_ONE_NODE,
                "ResourceClaim %s, which the Pods of this group share, is for a channel of ComputeDomain "
                "'%s'. A channel belongs to one node, so all these Pods can only run on the same node. "
                "For Pods on several nodes, recreate the PodGroup without the claim in "
                "spec.resourceClaims, and let each Pod name the claim template %s in its own "
                "spec.resourceClaims",
                r->o.meta.name, cd->o.meta.name, cd->channel->template_name);
}

void pod_groups_changed(struct controller *c, const struct claim_record *was, const struct claim_record *is) {
        if (c->leading && is && is->group && !(was && was->group) && records_synced(c))
                pod_groups_report(c, is);
}

static bool report_one(void *u, const struct kube_object *o) {
        const struct claim_record *r = (const struct claim_record *)o;
        if (r->group)
                pod_groups_report(u, r);
        return true;
}

void pod_groups_report_all(struct controller *c) {
        kube_informer_each(c->claims, report_one, c);
}
