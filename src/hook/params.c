/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/in_root.h"
#include "hook/hook_log.h"
#include "nvidia/params_mask.h"

/* The tests use another file of the kernel (commands.h), because the test machine has no driver. */
#ifdef HOOK_OF_TESTS
#define PARAMS_FOLDER SELF_TEST_FOLDER
#define PARAMS_FILE SELF_TEST_FILE
#else
#define PARAMS_FOLDER PARAMS_MASK_FOLDER
#define PARAMS_FILE PARAMS_MASK_FILE
#endif

int mask_params(int root, const char *folder, const char *file) {
        char path[PATH_MAX], why[PARAMS_MASK_WHY];
        snprintf(path, sizeof path, "/proc/%s", folder);
        int fd = in_root(root, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
                return 0;
        if (fd < 0)
                return hook_log_errno("open '%s' in the container", path);
        int r = params_mask(fd, file, why);
        close(fd);
        return r < 0 ? hook_log("cover '%s/%s' in the container: %s", path, file, why) : 0;
}

int disable_device_node_modification(int root) {
        return mask_params(root, PARAMS_FOLDER, PARAMS_FILE);
}
