/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/in_root.h"
#include "hook/hook_log.h"

enum { MASK_BITS = 64, TEXT_MAX = 256 };

/* The bit of a GPU's device node; 0: this is another file, or its minor has no bit. */
static uint64_t bit_of(int dev, const char *name) {
        static const char prefix[] = "nvidia";
        const char *number = name + strlen(prefix);
        struct stat st;
        if (strncmp(name, prefix, strlen(prefix)) != 0 || !*number ||
            number[strspn(number, "0123456789")] != '\0' ||
            fstatat(dev, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISCHR(st.st_mode) ||
            minor(st.st_rdev) >= MASK_BITS)
                return 0;
        return UINT64_C(1) << minor(st.st_rdev);
}

static int find_gpus(int root, uint64_t *ret_mask) {
        int fd = in_root(root, "/dev", O_RDONLY | O_DIRECTORY, 0);
        const struct dirent *entry;
        *ret_mask = 0;
        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
                return 0;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                hook_log_errno("open '/dev' in the container");
                if (fd >= 0)
                        close(fd);
                return -1;
        }
        while ((errno = 0, entry = readdir(dir)))
                *ret_mask |= bit_of(dirfd(dir), entry->d_name);
        int r = errno ? hook_log_errno("read '/dev' in the container") : 0;
        closedir(dir);
        return r;
}

int update_application_profile(int root) {
        char text[TEXT_MAX];
        uint64_t mask;
        if (find_gpus(root, &mask) < 0)
                return -1;
        if (!mask)
                return 0;
        snprintf(text, sizeof text,
                 "{\"profiles\":[{\"name\":\"_container_\",\"settings\":[\"EGLVisibleDGPUDevices\",0x%llx]}],"
                 "\"rules\":[{\"pattern\":[],\"profile\":\"_container_\"}]}",
                 (unsigned long long)mask);
        int folder = in_root_folder(root, "/etc/nvidia/nvidia-application-profiles-rc.d");
        if (folder < 0)
                return -1;
        int r = in_root_place_file(folder, "10-container.conf", text, 0444);
        close(folder);
        return r;
}
