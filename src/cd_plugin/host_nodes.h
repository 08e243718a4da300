/* SPDX-License-Identifier: Apache-2.0 */
/* host_nodes: creates the device nodes of IMEX channels on the host.
 *
 * Pods in a user namespace (hostUsers: false) need device nodes of their channels on the host. A process in a
 * user namespace cannot create a device node, so runc bind-mounts the host's node of the same path, and fails
 * if the host has none (createDevices() in libcontainer/rootfs_linux.go, 1.1 to 1.5; crun 1.8 needs none). A
 * folder other than /dev is no alternative, for three reasons. Other file systems may be mounted nodev. runc
 * opens the node as the container's root user, which may not enter the kubelet's folders. devtmpfs does not
 * support ID-mapped mounts, which CDI libraries request. */
#pragma once

#include "base/err.h"
#include "cdi/cdi.h"

/* Creates the nodes of `channels` in `dir` with their base names, device numbers and modes. `dir` is the
 * host's /dev/nvidia-caps-imex-channels or its substitute. Keeps an existing node. Atomically replaces a node
 * with other device numbers, which dates from before the driver was reloaded. */
int host_nodes_make(const char *dir, const struct cdi_edits *channels, struct err *e);
