/* SPDX-License-Identifier: Apache-2.0 */
/* resources: the kinds of our own API group. */
#ifndef API_RESOURCES_H
#define API_RESOURCES_H

#include "kube/kube_client.h"

extern const struct kube_resource kube_compute_domains, kube_cliques;

#endif
