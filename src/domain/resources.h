/* SPDX-License-Identifier: Apache-2.0 */
/* resources: the kinds of our own API group. */
#ifndef DOMAIN_RESOURCES_H
#define DOMAIN_RESOURCES_H

#include "kube/kube_client.h"

extern const struct kube_resource kube_compute_domains, kube_cliques;

#endif
