/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pod_group.h"

#include "api/claim.h"
#include "base/str.h"

#define PODGROUPS(version)                                                                                   \
        { CLAIM_GROUP_API, version, CLAIM_GROUP_RESOURCE, CLAIM_GROUP_KIND, true, NULL }
static const struct kube_resource v1beta1 = PODGROUPS("v1beta1"), v1alpha2 = PODGROUPS("v1alpha2");
const struct kube_resource *const pod_group_resources[] = { &v1beta1, &v1alpha2, NULL };

static const struct jd_field pod_group_claim_fields[] = {
        JD_STR(struct pod_group_claim, "resourceClaimName", name), JD_END
};
const struct jd_field pod_group_fields[] = {
        JD_OBJ(struct pod_group, "metadata", o.meta, kube_f_meta),
        JD_LIST(struct pod_group, "spec>resourceClaims", claims, struct pod_group_claim,
                pod_group_claim_fields),
        JD_END,
};

bool pod_group_names(const struct pod_group *g, const char *name) {
        for (size_t i = 0; i < g->n_claims; i++)
                if (g->claims[i].name && (!name || streq(g->claims[i].name, name)))
                        return true;
        return false;
}
