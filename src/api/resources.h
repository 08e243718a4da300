/* SPDX-License-Identifier: Apache-2.0 */
/* resources: defines the resources of the driver's own API group. */
#pragma once

#include <stddef.h>

#include "kube/kube_object.h"

extern const struct kube_resource kube_compute_domains, kube_cliques, kube_fabrics;
