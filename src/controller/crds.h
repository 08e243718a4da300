/* SPDX-License-Identifier: Apache-2.0 */
/* crds: creates and updates the CustomResourceDefinitions. They are built into the program, because Helm
 * installs them once and never upgrades them.
 *
 * Every replica creates missing definitions, because without them no cache can be filled and no replica takes
 * part in the election. Only the leader updates existing definitions. Before each write, the replica reads
 * the annotation CD_ANNOTATION_SCHEMA, and keeps a newer schema: an older one would remove fields from
 * objects. The rest of the program does not wait for these requests. A request that fails is logged and
 * retried without limit, with its own back-off. */
#pragma once

#include <stdbool.h>

#include "base/metrics.h"
#include "kube/kube_client.h"

struct crds;

struct crds_options {
        struct kube_client *client;
        /* Also apply the definitions of ComputeDomain and ComputeDomainClique, which another driver may own.
         * The definition of ComputeDomainFabric is always applied, because no other driver ships it, and
         * every controller watches its objects. */
        bool domains;
        struct metric *failing;   /* gauge with the label "crd": 1 while this definition cannot be created or
                                     updated */
        /* Called when the definition of ComputeDomain on the server equals the built-in one, or is newer.
         * Never called without `domains`. */
        void (*applied)(void *u);
        void *u;
};

struct crds *crds_new(const struct crds_options *o);
void crds_free(struct crds *c); /* NULL is allowed */
/* Call this when the replica has become the leader: it now updates existing definitions. */
void crds_lead(struct crds *c);
/* Call this on the leader when the schema on the server differs although it was applied: another client has
 * replaced it, or the API server that answered does not use it yet. Checks the definitions again. */
void crds_recheck(struct crds *c);
