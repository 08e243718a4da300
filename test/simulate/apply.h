/* SPDX-License-Identifier: Apache-2.0 */
/* apply: server-side apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/), forced: which
 * fields of an object a manager has applied, and the result of its next apply.
 *
 * All other writers count as one owner, because the owner of a field matters only to a manager that omits the
 * field. Lists are merged by the keys that the API types of Kubernetes define. Lists that are not known here
 * are replaced as a whole. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

/* The owners of fields. It is immutable. */
struct owners;
struct owners *owners_ref(struct owners *o);
void owners_unref(struct owners *o);                               /* NULL is allowed */
bool owners_equal(const struct owners *a, const struct owners *b); /* NULL equals no owner */

/* After a create, an update or a patch: fields that differ between `was` (NULL: the object is new) and `now`
 * are no longer owned by a manager that applies. */
struct owners *owners_updated(const struct owners *o, yyjson_val *was, yyjson_val *now);

/* The result of an apply to `live`, as a value of `d`: it has all fields of `config`. Fields that the manager
 * applied before and omits now are removed, unless another manager owns them. `live` NULL: the object does
 * not exist. */
yyjson_mut_val *apply_merged(yyjson_mut_doc *d, yyjson_val *live, yyjson_val *config, const struct owners *o,
                             const char *manager, struct owners **ret_owners);
