/* SPDX-License-Identifier: Apache-2.0 */
/* check_node: runs the parts of the subcommand check-node that both plugins share. The subcommand checks the
 * node with the settings of the plugin, and changes nothing on it: it writes no file, takes no lock, and
 * creates no device node. It runs beside the plugin, in the same container:
 *
 *     kubectl exec POD -c CONTAINER -- PROGRAM check-node [--json]
 *
 * Exit status: 0, 1 with a problem, 2 for a wrong argument or setting. */
#pragma once

#include "node/check_list.h"
#include "node/node_main.h"
#include "nvidia/driver_root.h"

#define CHECK_NODE "check-node"

/* Adds the plugin's items to the list. */
typedef void(check_node_fn)(struct node_main *m, struct check_list *l);
/* Runs the subcommand: reads the command line of the plugin and --json, calls `run`, and prints the list.
 * argv[0] is CHECK_NODE. Returns the exit status. */
int check_node_main(struct node_main *m, const struct flag *flags, int argc, char **argv, check_node_fn *run);

struct check_node_options {
        const struct node_flags *flags;
        const char *driver_name; /* "compute-domain.nvidia.com" */
        const char *host_root;   /* path of the host's root folder in the container, which may not exist; "":
                                    none */
};
/* Checks the kernel, the driver's files and modules, folders, sockets, disks and the container runtime. */
void check_node_common(struct check_list *l, const struct check_node_options *o);

/* The roots in which configurations of the host are visible: 0, 1 or 2. */
size_t check_node_host_roots(const struct check_node_options *o, struct driver_root ret[static 2]);
/* The folder of the device nodes: below the driver root if it has one, else "/dev". The caller frees it. */
char *check_node_dev(const char *root_here);
/* The version of the loaded kernel module, in the arena; NULL: unknown. */
const char *check_node_module_version(const struct check_node_options *o, struct arena *a);

/* Checks device nodes of the driver: nvidiactl, nvidia-uvm, nvidia-uvm-tools, nvidia<minor> of GPUs, and
 * those of capabilities that exist. */
void check_node_devices(struct check_list *l, const struct check_node_options *o, const unsigned *minors,
                        size_t n);

/* Checks the DRM device nodes of the GPUs at these PCI addresses, if nvidia_drm has created any. `sys` is the
 * path of sysfs. */
void check_node_drm(struct check_list *l, const struct check_node_options *o, const char *sys,
                    const char *const *pci, size_t n);

/* Queries NVML in a separate process, in a mount namespace in which NVML creates no device nodes
 * (nvml_worker.h). `verb` is an NVML_ASK_* of nvml_line.h. Returns 0 with the answer in the arena, or -1.
 * Adds an item if the library does not exist or does not answer. */
int check_node_nvml(struct check_list *l, const struct driver_root *root, const char *verb, struct arena *a,
                    struct str *ret);
