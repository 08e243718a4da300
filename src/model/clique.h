/* SPDX-License-Identifier: Apache-2.0 */
/* clique: decodes a ComputeDomainClique of the Go driver, in which the daemons of the Go driver list
 * themselves. This driver only reads such an object, and deletes it with the other objects of the Go driver.
 * model/fabric describes the partition itself. */
#pragma once

#include "base/json.h"
#include "base/str.h"
#include "kube/kube_object.h"
#include "model/domain_node.h"

struct clique {
        struct kube_object o;
        const char *domain_uid, *clique_id; /* labels */
        struct domain_node *nodes;
        size_t n_nodes;
};
extern const struct jd_field clique_fields[];

/* Renders the name of the object: "<UID of the ComputeDomain>.<clique ID>". */
void clique_object_name(const char *domain_uid, const char *clique_id, struct buf *out);
