/* SPDX-License-Identifier: Apache-2.0 */
/* schema: what the chart's CustomResourceDefinitions make of an object, as the API server would: unknown
 * members are dropped and defaults added; and what they refuse: types, lengths, patterns, enums, bounds,
 * times, required and immutable members, and keys that a list has twice. */
#pragma once

#include <yyjson.h>

#include "store.h"

/* NULL: nothing. Else which member is refused and why; static. Values that are the same in `was` (NULL: the
 * object is new) are not checked, as with ratcheting
 * (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting).
 */
const char *schema_refuses(enum kind k, yyjson_val *now, yyjson_val *was);
/* Drops what the definition does not know, and adds its defaults; nothing for a built-in kind. */
void schema_complete(enum kind k, yyjson_mut_doc *d);
/* Whether the definition of ComputeDomains is that of an earlier version, which accepts any name of a claim
 * template. */
void schema_set_old(bool is);
