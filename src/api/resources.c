/* SPDX-License-Identifier: Apache-2.0 */
#include "api/resources.h"

#include "api/names.h"

const struct kube_resource kube_compute_domains = {
        CD_GROUP, "v1beta1", "computedomains", CD_KIND, true, NULL
};
const struct kube_resource kube_cliques = { CD_GROUP,       "v1beta1", "computedomaincliques",
                                            CD_CLIQUE_KIND, true,      NULL };
const struct kube_resource kube_fabrics = { CD_GROUP,       "v1beta1", "computedomainfabrics",
                                            CD_FABRIC_KIND, false,     NULL };
