/* SPDX-License-Identifier: Apache-2.0 */
/* apply: server-side apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/), forced: which
 * fields of an object a manager has applied, and what its next apply makes of the object.
 *
 * All who write otherwise count as one owner: whose a field is matters only to the manager that leaves it
 * out. Lists are merged by the keys that the API types of Kubernetes give them; those that are not known here
 * are replaced as a whole. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

/* Who owns which fields. Nothing in it changes. */
struct owners;
struct owners *owners_ref(struct owners *o);
void owners_unref(struct owners *o);                               /* NULL is allowed */
bool owners_equal(const struct owners *a, const struct owners *b); /* NULL equals nobody */

/* After a create, an update or a patch: what has changed from `was` (NULL: nothing was there) to `now`
 * belongs to nobody who applies. */
struct owners *owners_updated(const struct owners *o, yyjson_val *was, yyjson_val *now);

/* What `live` becomes, as a value of `d`: with all of `config`, and without what the manager had applied
 * before and leaves out now, unless another one owns it. `live` NULL: there is nothing. */
yyjson_mut_val *apply_merged(yyjson_mut_doc *d, yyjson_val *live, yyjson_val *config, const struct owners *o,
                             const char *manager, struct owners **ret_owners);
