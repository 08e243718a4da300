/* SPDX-License-Identifier: Apache-2.0 */
#include "domain/resources.h"

#include "domain/names.h"

const struct kube_resource kube_compute_domains = {
        CD_GROUP, "v1beta1", "computedomains", CD_KIND, true, NULL
};
const struct kube_resource kube_cliques = { CD_GROUP,       "v1beta1", "computedomaincliques",
                                            CD_CLIQUE_KIND, true,      NULL };
