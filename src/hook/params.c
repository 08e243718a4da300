/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/in_root.h"
#include "hook/say.h"
#include "nvidia/params_mask.h"

/* The tests have another file of the kernel's, with a text that they choose: no driver is where they run. */
#ifndef PARAMS_FOLDER
#define PARAMS_FOLDER PARAMS_MASK_FOLDER
#define PARAMS_FILE PARAMS_MASK_FILE
#endif

int disable_device_node_modification(int root) {
        char why[PARAMS_MASK_WHY];
        int folder = in_root(root, "/proc/" PARAMS_FOLDER, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
        if (folder < 0 && (errno == ENOENT || errno == ENOTDIR))
                return 0;
        if (folder < 0)
                return say_errno("open /proc/" PARAMS_FOLDER " in the container");
        int r = params_mask(folder, PARAMS_FILE, why);
        close(folder);
        return r < 0 ? say("cover /proc/" PARAMS_FOLDER "/" PARAMS_FILE " in the container: %s", why) : 0;
}
