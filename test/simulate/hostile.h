/* SPDX-License-Identifier: Apache-2.0 */
/* hostile: simulates a tenant that may write only ComputeDomains, claims and claim templates, in one
 * namespace. It writes everything there that may harm other tenants: each label, annotation and finalizer of
 * the driver, names and UIDs of others' objects, the longest names, many objects. No ComputeDomain of another
 * tenant may be affected. */
#pragma once

#include <stdbool.h>

#define HOSTILE_NS "hostile"

void hostile_use(void);
bool hostile_used(void);
/* Call it after the seed is set. Some worlds begin with an earlier CustomResourceDefinition of
 * ComputeDomain. */
void hostile_begin(void);
/* Returns true if this world has a greedy tenant, which does everything faster, and uses most nodes, so that
 * one ComputeDomain after the other gets an entry in the fabric object. In such a world, other tenants use
 * few nodes. Nobody deletes the fabric object, because a deletion would delete the entries. */
bool hostile_greedy(void);
void hostile_step(void);
/* Returns how often a claim of the tenant was allocated on a node or deleted. Each time, the fabric object
 * changes. */
unsigned hostile_moves(void);
/* Deletes the tenant's claims; the tenant does nothing afterwards. */
void hostile_calm(void);
/* Deletes all objects of the tenant. */
void hostile_empty(void);
/* Returns NULL if each ComputeDomain of the tenant has a status, otherwise a description of one that has
 * none. */
const char *hostile_misses(void);
