/* SPDX-License-Identifier: Apache-2.0 */
/* crds: the CustomResourceDefinitions. They are built into the program, because Helm installs them once and
 * never upgrades them.
 *
 * Every replica creates missing definitions, because without them no cache can be filled and no replica
 * takes part in the election. It reads first and does not change existing ones, because a replica of an older
 * version would restore the old schema. Only the leader updates them. Nothing waits for these requests. A
 * request that fails is logged and retried without limit, with its own back-off. */
#pragma once

#include <stdbool.h>

#include "base/metrics.h"
#include "kube/kube_client.h"

struct crds;

struct crds_options {
        struct kube_client *client;
        /* Apply the definitions of ComputeDomain and ComputeDomainClique, too, which another driver may own.
         * That of ComputeDomainFabric is applied in every mode: no other driver ships it, and every
         * controller watches it. */
        bool domains;
        struct metric *failing;   /* gauge with label "crd": 1 while it cannot be created or updated */
        void (*applied)(void *u); /* a definition now equals the built-in one */
        void *u;
};

struct crds *crds_new(const struct crds_options *o);
void crds_free(struct crds *c); /* NULL is allowed */
/* This replica leads. */
void crds_lead(struct crds *c);
/* The schema on the server differs although it was applied: another client has replaced it, or the API server
 * that answered does not use it yet. For the leader. */
void crds_recheck(struct crds *c);
