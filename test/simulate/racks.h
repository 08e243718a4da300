/* SPDX-License-Identifier: Apache-2.0 */
/* racks: the ComputeDomains that the controllers make of racks, in the driver's namespace and in the users',
 * and what docs/how-to/racks.md promises of them. A rack is a clique here, so it is partitioned anew when a node
 * comes back with another one. */
#pragma once

#include "store.h"

/* Before the world begins; without it there are none, and nothing here does anything. */
void racks_use(void);
bool racks_used(void);
/* The namespaces. */
void racks_begin(void);

/* What the ComputeDomain of a clique's rack is called, and its claim template. */
void racks_name(unsigned clique, char *ret, size_t n);
#define RACKS_TEMPLATE "imex-channel-%s"
/* May a pod of the ComputeDomain of that name run on the node of this slice? */
bool racks_may_run(const char *name, const struct version *slice);
/* Does any node state the rack of that ComputeDomain? */
bool racks_has(const char *name);
/* It is a living ComputeDomain of a rack, or of one, which nobody deletes before its day is over. */
bool racks_keeps(const struct version *v);

/* "rack_deleted": somebody deletes one of them; "rack_namespace": the users' wants none any more, or again.
 */
void racks_fault(const char *name);
void racks_calm(void);
/* A day goes by. */
void racks_next_day(void);

/* What is promised of each change. */
void racks_look(enum kind k, const struct change *c);
/* NULL: each rack has its ComputeDomains, with all that belongs to them. Else what is missing. */
const char *racks_misses(void);
/* NULL: each of them says since when no node of its rack is there. Else which does not. */
const char *racks_unaware(void);
