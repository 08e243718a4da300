/* SPDX-License-Identifier: Apache-2.0 */
/* go_clique: the ComputeDomainClique in which the Go driver's daemons of a ComputeDomain report, read once.
 */
#pragma once

#include "kube/kube_client.h"
#include "model/clique.h"

struct go_clique;

/* Of this ComputeDomain in this clique; `ns` is that of the daemons. Asks for as long as the server may yet
 * answer. answered: there is an answer, or another reason why there is none; never from inside. */
struct go_clique *go_clique_ask(struct kube_client *c, const char *ns, const char *domain_uid,
                                const char *clique_id, void (*answered)(void *u), void *u);
/* Asks once more, unless it does so already. What was read stays until the answer. */
void go_clique_ask_again(struct go_clique *g);
/* NULL: *ret is the object as it was read last, NULL when there is none; it lasts until the next turn. Else
 * why it is not known. */
const char *go_clique_see(const struct go_clique *g, const struct clique **ret);
void go_clique_free(struct go_clique *g); /* NULL is allowed */
