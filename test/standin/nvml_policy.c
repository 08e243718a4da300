/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a GPU: its compute mode, and its time slice. NVML has no public call for the time slice;
 * nvidia-smi uses a private one, and so does the stand-in.
 *
 * Each accepted setting is a line of libnvidia-ml.policies beside the library ("GPU-... timeslice 1"). The
 * real driver keeps settings in the kernel, and requires CAP_SYS_ADMIN, whether its files are mounted
 * read-only or not. The stand-in requires it, too, and writes the file through its own mount. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "nvml.h"

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length);

static int open_policies(void) {
        struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
        int tree = open_tree(AT_FDCWD, nvml_folder(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        int fd = -1;

        if (tree < 0)
                return -1;
        if (mount_setattr(tree, "", AT_EMPTY_PATH, &writable, sizeof(writable)) == 0)
                fd = openat(tree, "libnvidia-ml.policies", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        close(tree);
        return fd;
}

/* Each setting has four values. */
static nvmlReturn_t set(nvmlDevice_t device, const char *call, const char *what, unsigned value) {
        char uuid[96];
        nvmlReturn_t bad = check_call(device, device, call);
        int fd;

        if (!bad)
                bad = value > 3 ? NVML_ERROR_INVALID_ARGUMENT : nvmlDeviceGetUUID(device, uuid, sizeof(uuid));
        if (bad)
                return bad;
        fd = open_policies();
        if (fd < 0)
                return NVML_ERROR_NO_PERMISSION;
        dprintf(fd, "%s %s %u\n", uuid, what, value);
        close(fd);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned mode);
EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned mode) {
        return set(device, __func__, "compute-mode", mode);
}

EXPORT nvmlReturn_t standinSetTimeSlice(nvmlDevice_t device, unsigned slice);
EXPORT nvmlReturn_t standinSetTimeSlice(nvmlDevice_t device, unsigned slice) {
        return set(device, __func__, "timeslice", slice);
}
