/* SPDX-License-Identifier: Apache-2.0 */
/* prepare_inputs: reads what a Prepare needs in addition to its claim: the ComputeDomains, and the objects
 * that state whether IMEX on this node serves one of them. It retries requests for as long as the kubelet
 * waits, and repeats them if an answer may be stale. For struct node_driver.
 *
 * The claim's configuration has the UID of the ComputeDomain. The name of the ComputeDomain is in an
 * annotation that the controller writes into the claim template, and that Kubernetes copies to the claims.
 * Users can write that annotation too, so the name is only a hint: it counts if the ComputeDomain of that
 * name has that UID. Otherwise the module lists the namespace, as it does for claims without the
 * annotation. */
#pragma once

#include "cd_plugin/go_daemon.h"
#include "cd_plugin/cd_requests.h"
#include "cd_plugin/gate_watch.h"
#include "cd_plugin/may_prepare.h"
#include "cd_plugin/state.h"

/* The type of op->own between prepare_inputs_fetch() and prepare_inputs_release(). */
struct prepare_inputs {
        struct lookup *lookup;
        struct lookup_list *domains;
        bool one;   /* the last request was for the ComputeDomain by the name in the claim, not for a list */
        bool all;   /* the last request was a list of all namespaces */
        bool fresh; /* the last request was a list that the API server did not read from its cache */
        struct lookup_watch *watch;
        struct fabric_ask *fabric; /* NULL: no channel is assigned */
        struct go_clique *clique;  /* NULL: not requested */
        struct gate_watch *gate;   /* NULL: not watched */
        /* For the checks in cd_steps: */
        bool granting; /* the last judgement found everything that the claim needs */
        bool noted;    /* the claim has a grant, `waiting` or `granting` */
        bool renewed;  /* grants_renew() has been called for this daemon */
};

void prepare_inputs_fetch(void *u, struct op *op);
void prepare_inputs_start(void *u, struct op *op);
void prepare_inputs_release(void *u, struct op *op);
void prepare_inputs_investigate(void *u, struct op *op);
/* Repeats the request if the watch does not show an object that a list has shown. */
void prepare_inputs_recheck(struct op *op);
/* For a daemon of the Go driver, finds the ComputeDomainClique of this node and whether the Node has the
 * label; the first call requests them. False: they are not known; op->msg has the reason. q->clique is valid
 * until the next turn of the loop. */
bool prepare_inputs_get_clique(struct op *op, const struct prepare_daemon *d, struct prepare_question *q);
/* Finds the ComputeDomain of the request, with what decides on its start gate; the first call begins to watch
 * it. False: it has not been read yet. *ret NULL: it does not exist; otherwise valid until the next turn of
 * the loop. */
bool prepare_inputs_get_gate(struct op *op, const struct cd_request *w, const struct gated_domain **ret);
