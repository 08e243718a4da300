/* SPDX-License-Identifier: Apache-2.0 */
/* host_nodes: the device nodes of channels on the host, for pods in a user namespace (hostUsers: false).
 *
 * A process in a user namespace cannot create a device node, so runc binds the host's node of the same path
 * there, and fails if the host has none (createDevices() in libcontainer/rootfs_linux.go, 1.1 to 1.5;
 * crun 1.8 needs none). Another folder than /dev is no alternative: other file systems may be mounted nodev;
 * runc looks for the node as the container's root, which may not enter the kubelet's folders; and devtmpfs
 * supports no mounts with mapped IDs, which CDI libraries request. */
#pragma once

#include "base/err.h"
#include "cdi/cdi.h"

/* Makes the nodes of `channels` in `dir`, which is the host's /dev/nvidia-caps-imex-channels or its
 * substitute, with their base names, numbers and modes. An existing node is kept. One with other numbers,
 * from before the driver was reloaded, is replaced in one step. */
int host_nodes_make(const char *dir, const struct cdi_edits *channels, struct err *e);
