/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_check: the subcommand check-node of the plugin for GPUs (node/check_node.h). It also checks the GPUs
 * and MIG devices, the files of the driver for containers, and the CDI hook. */
#pragma once

#include "gpu_plugin/gpu_devices.h"
#include "node/check_node.h"
#include "nvidia/driver_set.h"
#include "nvidia/inventory.h"

struct gpu_check_options {
        struct check_node_options node;
        bool sockets; /* as the flag gpu-ipc-sockets */
};
void gpu_check_run(struct check_list *l, const struct gpu_check_options *o);

/* The following functions are pure. They are exported for tests. */

/* Judges the GPUs, by NVML's inventory and the devices that the plugin makes of it. */
void gpu_check_devices(struct check_list *l, const struct inventory *in, const struct gpu_devices *d);
/* Judges the files that containers with a GPU get. */
void gpu_check_files(struct check_list *l, const struct driver_set *set);
