/* SPDX-License-Identifier: Apache-2.0 */
/* foreign: finds devices that the Go driver has set up for claims of this node in ways that this driver does
 * not manage. The Go driver's checkpoint may contain claims with an MPS control daemon, claims of GPUs that
 * are bound to vfio-pci, and claims with MIG devices that were created for them. Pure. */
#pragma once

#include "base/mem.h"
#include "node/checkpoint.h"

enum foreign_kind { FOREIGN_MPS, FOREIGN_VFIO, FOREIGN_MIG, FOREIGN_KINDS };
extern const char *const foreign_names[FOREIGN_KINDS]; /* values of a metric label */

struct foreign_device {
        enum foreign_kind kind;
        const char *uid;    /* UID of the claim; borrowed from the table */
        const char *device; /* name of the device; borrowed from the table */
        const char *remedy; /* for people: what remains after Unprepare, and the commands that remove it */
};
/* Finds such devices of completed claims, and returns their number. Devices that share an MPS daemon count as
 * one. The checkpoint does not record whether a MIG device was created for its claim (the feature gate
 * DynamicMIG) or by an administrator. So the function returns all MIG devices that the Go driver prepared.
 * Their entries have no claim name. The result is allocated in the arena. */
size_t foreign_find(const struct checkpoint *table, struct arena *a, struct foreign_device **ret);

/* Returns the ID of the device's MPS control daemon, allocated in the arena. Returns NULL if it has none. */
const char *foreign_mps_daemon(const struct node_device *d, struct arena *a);
