/* SPDX-License-Identifier: Apache-2.0 */
/* foreign: finds what the Go driver has set up for claims of this node and this driver does not manage. The
 * Go driver's checkpoint may contain claims with an MPS control daemon, claims of GPUs that are bound to
 * vfio-pci, and claims with MIG devices that were created for them. Pure. */
#pragma once

#include "base/mem.h"
#include "node/checkpoint.h"

enum foreign_kind { FOREIGN_MPS, FOREIGN_VFIO, FOREIGN_MIG, FOREIGN_KINDS };
extern const char *const foreign_names[FOREIGN_KINDS]; /* for metrics */

struct foreign_device {
        enum foreign_kind kind;
        const char *uid;    /* of the claim; borrowed from the table */
        const char *device; /* borrowed from the table */
        const char *remedy; /* for people: what remains after Unprepare, and the commands that remove it */
};
/* Devices of completed claims, one for each MPS daemon. The checkpoint does not record whether a MIG device
 * was created for its claim (the feature gate DynamicMIG) or by an administrator. So all MIG devices count
 * that the Go driver has prepared: those of entries without a name. In the arena. */
size_t foreign_find(const struct checkpoint *table, struct arena *a, struct foreign_device **ret);

/* The ID of the device's MPS control daemon; NULL: it has none. In the arena. */
const char *foreign_mps_daemon(const struct node_device *d, struct arena *a);
