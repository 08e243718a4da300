/* SPDX-License-Identifier: Apache-2.0 */
/* hostile: a tenant that may write ComputeDomains, claims and claim templates in one namespace and nothing
 * else, and that writes what may harm others there: each label, annotation and finalizer of the driver, names
 * and UIDs of others' objects, the longest names, many objects. No other tenant's ComputeDomain may notice.
 */
#pragma once

#include <stdbool.h>

#define HOSTILE_NS "hostile"

void hostile_use(void);
bool hostile_used(void);
/* After the seed is set. In some worlds the definition of ComputeDomains is an earlier one at first. */
void hostile_begin(void);
/* In some worlds the tenant does everything
 * faster, and uses most nodes: one ComputeDomain after the other gets a row. Others use few nodes there, and
 * nobody deletes the object, which would forget the rows. */
bool hostile_greedy(void);
void hostile_step(void);
/* How often a claim of the tenant has come to a node or left it: each time the node's fabric changes. */
unsigned hostile_moves(void);
/* The tenant releases what it holds, and does nothing from then on. */
void hostile_calm(void);
/* The tenant deletes everything. */
void hostile_empty(void);
/* NULL: each of the tenant's ComputeDomains has a status. Else which has none. */
const char *hostile_misses(void);
