/* SPDX-License-Identifier: Apache-2.0 */
/* commands: implements the commands of the hook. `root` is the descriptor of the container's root
 * (in_root.h). Each function returns 0, or prints the reason and returns -1. */
#pragma once

#include <stddef.h>

struct options {
        const char *const *links; /* create-symlinks: "<text>::<path>" */
        size_t n_links;
        const char *const *folders; /* update-ldcache */
        size_t n_folders;
        const char *ldconfig;       /* update-ldcache: the host's program; NULL: search for it */
        const char *driver_version; /* enable-cuda-compat */
};

/* Creates a link with the given text at each given path. Does not resolve the text. Replaces an existing
 * file. */
int create_symlinks(int root, const struct options *o);

/* Makes the loader prefer the image's CUDA compatibility library if this library belongs to a newer driver
 * than the driver of the host. */
int enable_cuda_compat(int root, const struct options *o);

/* Adds the folders to the loader's cache: runs the host's ldconfig on the container (sandbox.h). `path` is
 * the path of the root. */
int update_ldcache(int root, const char *path, const struct options *o);

/* Prevents NVML in the container from creating device nodes: covers the driver's parameters in the
 * container's /proc with a changed copy (nvidia/params_mask.h). mask_params() covers any file in a folder of
 * that /proc. */
int disable_device_node_modification(int root);
int mask_params(int root, const char *folder, const char *file);

/* Restricts EGL and Vulkan in the container to the GPUs whose device nodes /dev/nvidia<n> it has: writes an
 * application profile of NVIDIA's driver with the bit of each minor number. The profile has the same form as
 * that of NVIDIA's container toolkit 1.20 (cmd/nvidia-cdi-hook/update-application-profile). Without such a
 * node, writes nothing. */
int update_application_profile(int root);

/* A file of /proc whose text a process can set in its own UTS namespace: the domain name. The self-test
 * uses it instead of the driver's parameters, because the driver may be missing. */
#define SELF_TEST_FOLDER "sys/kernel"
#define SELF_TEST_FILE "domainname"
#define SELF_TEST_DOMAIN "ModifyDeviceFiles: 1"

/* Runs all commands twice on a container that it creates in its own mount and UTS namespaces. The process
 * must exit afterwards. */
int self_test(void);
