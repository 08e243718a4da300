/* SPDX-License-Identifier: Apache-2.0 */
/* schema: what the chart's CustomResourceDefinitions refuse, as the API server would: types, lengths,
 * patterns, enums, bounds, required members and immutable members. Pruning of unknown members and defaults
 * are left out. */
#pragma once

#include <yyjson.h>

#include "store.h"

/* NULL: nothing. Else which member is refused and why; static. Values that are the same in `was` (NULL: the
 * object is new) are not checked, as with ratcheting
 * (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting).
 */
const char *schema_refuses(enum kind k, yyjson_val *now, yyjson_val *was);
/* Whether the definition of ComputeDomains is that of an earlier version, which accepts any name of a claim
 * template. */
void schema_set_old(bool is);
