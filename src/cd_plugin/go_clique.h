/* SPDX-License-Identifier: Apache-2.0 */
/* go_clique: reads the ComputeDomainClique in which the Go driver's daemons of a ComputeDomain report their
 * state. It reads the object once, without a watch. */
#pragma once

#include "kube/kube_client.h"
#include "model/clique.h"

struct go_clique;

/* Requests the object of this ComputeDomain and clique ID; `ns` is the namespace of the daemons. Retries for
 * as long as the server may still answer. `answered` is called when there is an answer, or a new reason why
 * there is none; never from inside this call. */
struct go_clique *go_clique_ask(struct kube_client *c, const char *ns, const char *domain_uid,
                                const char *clique_id, void (*answered)(void *u), void *u);
/* Repeats the request, unless one is pending. The previous result stays valid until the answer. */
void go_clique_ask_again(struct go_clique *g);
/* Returns NULL, and sets *ret to the object as last read (NULL: it does not exist), valid until the next turn
 * of the loop. If the object is not known, returns the reason instead. */
const char *go_clique_see(const struct go_clique *g, const struct clique **ret);
void go_clique_free(struct go_clique *g); /* NULL is allowed */
