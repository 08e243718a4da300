/* SPDX-License-Identifier: Apache-2.0 */
/* racks: the ComputeDomains that the controllers create for racks, in the driver's namespace and in the
 * users', and the promises of docs/how-to/racks.md. A rack is a partition here, so its nodes change when a
 * node returns with another clique ID. */
#pragma once

#include "store.h"

/* Call it before the world begins. Without it there are no racks, and the other functions do nothing. */
void racks_use(void);
bool racks_used(void);
/* Creates the namespaces. */
void racks_begin(void);

/* The name of the ComputeDomain of a rack, and the format of its claim template's name. */
void racks_name(unsigned clique, char *ret, size_t n);
#define RACKS_TEMPLATE "imex-channel-%s"
/* A pod of the ComputeDomain of that name may run on the node of this slice. */
bool racks_may_run(const char *name, const struct version *slice);
/* At least one node publishes the rack of that ComputeDomain. */
bool racks_has(const char *name);
/* The object is the ComputeDomain of a rack that is not being deleted, or belongs to one. Nobody deletes it
 * before a day has passed. */
bool racks_keeps(const struct version *v);

/* "rack_deleted": somebody deletes a ComputeDomain of a rack. "rack_namespace": the users' namespace no
 * longer requests them, or requests them again. */
void racks_fault(const char *name);
void racks_calm(void);
/* Lets a day pass. */
void racks_next_day(void);

/* Checks the promises about each change. */
void racks_look(enum kind k, const struct change *c);
/* NULL: each rack has its ComputeDomains and all their objects. Otherwise a description of a missing one. */
const char *racks_misses(void);
/* NULL: each of them states since when its rack has no nodes. Otherwise a description of one that does
 * not. */
const char *racks_unaware(void);
