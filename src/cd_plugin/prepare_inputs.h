/* SPDX-License-Identifier: Apache-2.0 */
/* prepare_inputs: reads what a Prepare needs in addition to its claim: the ComputeDomains, and the objects
 * that state whether IMEX on this node serves one of them. Requests are retried for as long as the kubelet
 * waits, and repeated in case of doubt. For node_driver.
 *
 * The claim's configuration has the domain's UID. Its name is in an annotation that the controller writes
 * into the claim template, and that Kubernetes copies to the claims. Users can write that annotation too, so
 * it is a hint: the ComputeDomain of that name must have that UID. Everything else is found by a list of the
 * namespace, as for claims of templates without the annotation. */
#pragma once

#include "cd_plugin/go_clique.h"
#include "cd_plugin/state.h"

/* op->own, from prepare_inputs_fetch() to prepare_inputs_release(). */
struct prepare_inputs {
        struct lookup *lookup;
        struct lookup_list *domains;
        bool one;   /* the last request: for the domain by its name in the claim, or else a list */
        bool all;   /* a list of all namespaces */
        bool fresh; /* a list that the API server did not read from its cache */
        struct lookup_watch *watch;
        struct fabric_ask *fabric; /* NULL: no channel is assigned */
        struct go_clique *clique;  /* NULL: not requested */
        /* For the steps: */
        bool granting; /* the last judgement found everything that the claim needs */
        bool noted;    /* the claim has a grant, waiting or granting */
        bool renewed;  /* grants_renew() has been called for this daemon */
};

void prepare_inputs_fetch(void *u, struct op *op);
void prepare_inputs_start(void *u, struct op *op);
void prepare_inputs_release(void *u, struct op *op);
void prepare_inputs_investigate(void *u, struct op *op);
/* Repeats the request when the watch does not show an object that a list has shown. */
void prepare_inputs_recheck(struct op *op);
/* The ComputeDomainClique of this node in a ComputeDomain that the Go driver formed; the first call requests
 * it. False: not known; op->msg has the reason. *ret NULL: it does not exist. Valid until the next turn. */
bool prepare_inputs_get_clique(struct op *op, const char *ns, const char *domain_uid,
                               const struct clique **ret);
