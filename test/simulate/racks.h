/* SPDX-License-Identifier: Apache-2.0 */
/* racks: checks the ComputeDomains that the controllers create for racks, in the driver's namespace and in
 * the users' namespace, against the promises of docs/how-to/racks.md. A rack is a partition here, so its
 * nodes change when a node returns with another clique ID. */
#pragma once

#include "store.h"

/* Enables racks. Call it before the world begins; without it, the other functions do nothing. */
void racks_use(void);
bool racks_used(void);
/* Creates the namespaces. */
void racks_begin(void);

/* Writes the name of the ComputeDomain of a rack. RACKS_TEMPLATE is the format of its claim template's
 * name. */
void racks_name(unsigned clique, char *ret, size_t n);
#define RACKS_TEMPLATE "imex-channel-%s"
/* Returns true if a pod of the ComputeDomain of that name may run on the node of this slice. */
bool racks_may_run(const char *name, const struct version *slice);
/* Returns true if at least one node publishes the rack of that ComputeDomain. */
bool racks_has(const char *name);
/* Returns true if the object is the ComputeDomain of a rack that is not being deleted, or belongs to such a
 * ComputeDomain. Nobody may delete it before a day has passed. */
bool racks_keeps(const struct version *v);

/* Causes a fault. "rack_deleted": somebody deletes a ComputeDomain of a rack. "rack_namespace": the users'
 * namespace no longer requests the ComputeDomains of racks, or requests them again. */
void racks_fault(const char *name);
void racks_calm(void);
/* Deletes, as the operator does, the ComputeDomains of racks whose list of nodes is lost: somebody deleted
 * the ComputeDomain in the driver's namespace while no Node stated the rack. The controller keeps the others.
 */
void racks_delete_lost(void);
/* Lets a day pass. */
void racks_next_day(void);
bool racks_over(void); /* this day has passed */

/* Checks the promises about this change. */
void racks_look(enum kind k, const struct change *c);
/* Returns NULL if each rack has its ComputeDomains and all their objects, otherwise a description of a
 * missing one. */
const char *racks_misses(void);
/* Returns NULL if each ComputeDomain of a rack states since when its rack has no nodes, and each fabric object
 * since when it is empty, otherwise a description of one that does not. */
const char *racks_unaware(void);
