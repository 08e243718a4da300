/* SPDX-License-Identifier: Apache-2.0 */
/* hostile: a tenant that may write ComputeDomains, claims and claim templates in one namespace, and nothing
 * else. There it writes all that may harm other tenants: each label, annotation and finalizer of the driver,
 * names and UIDs of others' objects, the longest names, many objects. No ComputeDomain of another tenant may
 * be affected. */
#pragma once

#include <stdbool.h>

#define HOSTILE_NS "hostile"

void hostile_use(void);
bool hostile_used(void);
/* Call it after the seed is set. Some worlds begin with an earlier CustomResourceDefinition of
 * ComputeDomain. */
void hostile_begin(void);
/* In some worlds the tenant does everything faster, and uses most nodes, so that one ComputeDomain after the
 * other gets an entry in the fabric object. Other tenants use few nodes there. Nobody deletes the fabric
 * object, because that would delete the entries. */
bool hostile_greedy(void);
void hostile_step(void);
/* How often a claim of the tenant was allocated on a node or deleted: each time the fabric object changes. */
unsigned hostile_moves(void);
/* The tenant deletes its claims, and does nothing from then on. */
void hostile_calm(void);
/* The tenant deletes everything. */
void hostile_empty(void);
/* NULL: each of the tenant's ComputeDomains has a status. Otherwise a description of one without. */
const char *hostile_misses(void);
