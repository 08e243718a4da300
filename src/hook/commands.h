/* SPDX-License-Identifier: Apache-2.0 */
/* commands: what the hook does in a container. `root` is its root's descriptor (in_root.h). 0, or -1 with the
 * reason said. */
#pragma once

#include <stddef.h>

struct options {
        const char *const *links; /* create-symlinks: "<text>::<path>" */
        size_t n_links;
        const char *const *folders; /* update-ldcache */
        size_t n_folders;
        const char *ldconfig;       /* update-ldcache: the program of the host's; NULL: looked for */
        const char *driver_version; /* enable-cuda-compat */
};

/* Each path becomes a link with that text, of which nothing is resolved. What has that name goes. */
int create_symlinks(int root, const struct options *o);

/* Has the loader prefer the CUDA compatibility library of the image when it is of a newer driver than the
 * host's. */
int enable_cuda_compat(int root, const struct options *o);

/* Has the loader know the folders, by running the host's ldconfig on the container (sandbox.h). `path`: the
 * root's. */
int update_ldcache(int root, const char *path, const struct options *o);

/* Makes NVML in the container create no device nodes: covers the driver's parameters in the container's /proc
 * with a changed copy (nvidia/params_mask.h). mask_params() does that with any file there. */
int disable_device_node_modification(int root);
int mask_params(int root, const char *folder, const char *file);

/* A file of /proc whose text a process may choose, in its own UTS namespace: the domain name. It stands
 * for the driver's parameters where there is no driver. */
#define SELF_TEST_FOLDER "sys/kernel"
#define SELF_TEST_FILE "domainname"
#define SELF_TEST_DOMAIN "ModifyDeviceFiles: 1"

/* Runs all commands, twice, on a container that it makes in its own mount and UTS namespaces. The process
 * must end afterwards. */
int self_test(void);
