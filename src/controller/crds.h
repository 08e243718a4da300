/* SPDX-License-Identifier: Apache-2.0 */
/* crds: the CustomResourceDefinitions, built into the program: Helm installs them once and never upgrades
 * them.
 *
 * Every replica makes those that are missing, because without them no cache can be filled and nobody stands
 * for election. It looks first and changes none that is there: a replica of an older version would put the
 * old schema back. Only who leads brings them up to date. Nothing waits for any of it; what fails is tried
 * again for ever, with a back-off of its own, and said. */
#pragma once

#include <stdbool.h>

#include "base/metrics.h"
#include "kube/kube_client.h"

struct crds;

struct crds_options {
        struct kube_client *client;
        /* That of ComputeDomains and that of their cliques, which may be somebody else's. That of fabrics is
         * ours in every mode: nobody else ships it, and every controller watches it. */
        bool domains;
        struct metric
                *failing; /* gauge with the label "crd": 1 while it cannot be made or brought up to date */
        void (*applied)(void *u); /* one of them is as ours is */
        void *u;
};

struct crds *crds_new(const struct crds_options *o);
void crds_free(struct crds *c); /* NULL is allowed */
/* We lead. */
void crds_lead(struct crds *c);
/* The server's schema is another than ours after all: somebody has put it there, or the API server that
 * answered has not taken ours up yet. For the leader. */
void crds_doubt(struct crds *c);
