/* SPDX-License-Identifier: Apache-2.0 */
/* lost: cliques of living domains that somebody has deleted, as the cache held them last.
 *
 * A daemon goes on with the index that it has read, and the caches may not show yet that it runs. So what a
 * deleted clique said counts until who needs it has an entry again. */
#pragma once

#include "kube/kube_informer.h"
#include "model/clique.h"

struct lost;

struct lost *lost_new(void);
void lost_free(struct lost *l);

void lost_add(struct lost *l, const struct clique *q); /* keeps a reference */
/* Those of one domain, the latest first. */
void lost_each(const struct lost *l, const char *domain_uid, kube_visit_fn *fn, void *u);
void lost_forget(struct lost *l, const char *domain_uid);
