/* SPDX-License-Identifier: Apache-2.0 */
/* channel_nodes: the device nodes of IMEX channels. Lists those that a container has, for pods that check
 * their channels before they start, for `helm test` and for `kubectl compute-domains test`. Creates those on
 * the host. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"

/* Appends one line for each channel in the folder `dir` to *out, sorted by number. -1: the folder has no
 * channel; *e has the reason. */
int channel_nodes_list(const char *dir, struct buf *out, struct err *e);
/* The main() of the subcommand: prints the channels. Returns 0 if there is at least one. With --wait, it then
 * waits for SIGTERM or SIGINT first. 2: a wrong argument. */
int channel_nodes_main(int argc, char **argv);

/* Pods in a user namespace (hostUsers: false) need device nodes of their channels on the host. A process in a
 * user namespace cannot create a device node, so runc bind-mounts the host's node of the same path, and fails
 * if the host has none (createDevices() in libcontainer/rootfs_linux.go, 1.1 to 1.5; crun 1.8 needs none). A
 * folder other than /dev is no alternative, for three reasons. Other file systems may be mounted nodev. runc
 * opens the node as the container's root user, which may not enter the kubelet's folders. devtmpfs does not
 * support ID-mapped mounts, which CDI libraries request.
 *
 * Creates the nodes of `channels` in `dir` with their base names, device numbers and modes. `dir` is the
 * host's /dev/nvidia-caps-imex-channels or its substitute. Keeps an existing node. Atomically replaces a node
 * with other device numbers, which dates from before the driver was reloaded. */
int host_nodes_make(const char *dir, const struct cdi_edits *channels, struct err *e);
