/* SPDX-License-Identifier: Apache-2.0 */
/* schema: applies the chart's CustomResourceDefinitions to an object, as the API server does. It drops
 * unknown members and adds defaults. It checks types, lengths, patterns, enums, bounds, times, required and
 * immutable members, and duplicate keys of lists. */
#pragma once

#include <yyjson.h>

#include "store.h"

/* Returns NULL if the object is valid, otherwise the invalid member and the reason, in a static buffer.
 * Values that are the same in `was` (NULL: the object is new) are not checked, as with ratcheting
 * (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting).
 */
const char *schema_refuses(enum kind k, yyjson_val *now, yyjson_val *was);
/* Drops members that the definition does not have, and adds its defaults. Does nothing for a built-in
 * kind. */
void schema_complete(enum kind k, yyjson_mut_doc *d);
/* Sets whether to use the CustomResourceDefinition of ComputeDomain of an earlier version, which accepts any
 * name of a claim template. */
void schema_set_old(bool is);
