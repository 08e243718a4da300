/* SPDX-License-Identifier: Apache-2.0 */
/* gather: what a Prepare must know beside its claim: which ComputeDomains there are, and the objects that say
 * whether IMEX of this node serves one. Asked for as long as the
 * kubelet waits, and again when there is doubt. For node_driver.
 *
 * The claim's configuration has the domain's UID. Its name is in an annotation that the controller writes
 * into the claim template, and that Kubernetes copies to the claims. Users can write that annotation too, so
 * it is a hint: what has that name must have that UID, and everything else is found by a list of the
 * namespace, as for claims of templates that were made without the annotation. */
#pragma once

#include "cd_plugin/go_clique.h"
#include "cd_plugin/state.h"

/* op->own, from gather_fetch() to gather_release(). */
struct gathered {
        struct lookup *lookup;
        struct lookup_list *domains;
        bool one;   /* what was asked for last: the domain with the claim's name for it, or a list: */
        bool all;   /* the domains of all namespaces, */
        bool fresh; /* and not of the API server's cache */
        struct lookup_watch *watch;
        struct fabric_ask *fabric; /* NULL: no channel is assigned */
        struct go_clique *clique;  /* NULL: it has not been asked for */
        /* Of the steps: */
        bool granting; /* the last judgement has found all that the claim needs */
        bool noted;    /* as waiting or being granted */
        bool renewed;  /* grants_renew() has been called for this daemon */
};

void gather_fetch(void *u, struct op *op);
void gather_start(void *u, struct op *op);
void gather_release(void *u, struct op *op);
void gather_look_closer(void *u, struct op *op);
/* Asks again when the watch does not show what a list has shown. */
void gather_doubt(struct op *op);
/* The ComputeDomainClique of this node in a ComputeDomain that the Go driver formed; the first call asks for
 * it. False: it is not known, and op->msg says why. *ret NULL: there is none. Lasts until the next turn. */
bool gather_see_clique(struct op *op, const char *ns, const char *domain_uid, const struct clique **ret);
