/* SPDX-License-Identifier: Apache-2.0 */
/* apply: implements forced server-side apply
 * (https://kubernetes.io/docs/reference/using-api/server-side-apply/): it records which fields of an object a
 * manager has applied, and computes the result of the next apply.
 *
 * All other writers count as one owner, because the owner of a field matters only to a manager that omits the
 * field. Lists are merged by the keys that the API types of Kubernetes define. An apply replaces other lists
 * as a whole. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

/* The owners of an object's fields; immutable. */
struct owners;
struct owners *owners_ref(struct owners *o);
void owners_unref(struct owners *o);                               /* NULL is allowed */
bool owners_equal(const struct owners *a, const struct owners *b); /* NULL equals no owner */

/* Returns the owners after a create, an update or a patch: a manager that applies no longer owns fields that
 * differ between `was` (NULL: the object is new) and `now`. */
struct owners *owners_updated(const struct owners *o, yyjson_val *was, yyjson_val *now);

/* Returns the result of an apply to `live`, as a value of `d`. The result has all fields of `config`. It
 * lacks the fields that the manager applied before and omits now, unless another manager owns them. `live`
 * NULL: the object does not exist. Sets *ret_owners to the new owners. */
yyjson_mut_val *apply_merged(yyjson_mut_doc *d, yyjson_val *live, yyjson_val *config, const struct owners *o,
                             const char *manager, struct owners **ret_owners);
