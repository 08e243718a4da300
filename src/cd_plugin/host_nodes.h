/* SPDX-License-Identifier: Apache-2.0 */
/* host_nodes: the device nodes of channels on the host, for pods in a user namespace (hostUsers: false).
 *
 * Nobody can create a device node in a user namespace, so runc binds the host's node of the same path there,
 * and fails if the host has none (createDevices() in libcontainer/rootfs_linux.go, 1.1 to 1.5; crun 1.8 needs
 * none). Another place than /dev would not do: other file systems may be mounted nodev, runc looks for the
 * node as the container's root, who may not enter the kubelet's folders, and devtmpfs supports no mounts with
 * mapped ids, which CDI libraries ask for. */
#pragma once

#include "base/err.h"
#include "cdi/cdi.h"

/* Makes the nodes of `channels` in `dir`, which is the host's /dev/nvidia-caps-imex-channels or what stands
 * for it, with their last names, numbers and modes. One that is there already stays; one with other numbers,
 * from before the driver was loaded again, is replaced in one step. */
int host_nodes_make(const char *dir, const struct cdi_edits *channels, struct err *e);
