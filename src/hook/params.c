/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/in_root.h"
#include "hook/say.h"

enum { PARAMS_MAX = 16384 };

/* The host's parameters with that one at 0; false: there is nothing to change. */
static bool changed_params(char ret[static PARAMS_MAX + 1]) {
        static const char line[] = "ModifyDeviceFiles: ";
        int fd = open("/proc/driver/nvidia/params", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        ssize_t n = read(fd, ret, PARAMS_MAX);
        close(fd);
        if (n <= 0)
                return false;
        ret[n] = '\0';
        for (char *p = ret; (p = strstr(p, line)); p += strlen(line)) {
                char *value = p + strlen(line);
                if ((p == ret || p[-1] == '\n') && *value == '1' && (value[1] == '\n' || !value[1])) {
                        *value = '0';
                        return true;
                }
        }
        return false;
}

static long fs_mount(void) {
        int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
        if (fs < 0)
                return -1;
        long mount = -1;
        if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", "65536", 0) == 0 &&
            syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
                mount = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
        int why = errno;
        close(fs);
        errno = why;
        return mount;
}

/* A file with the text in a file system that is mounted nowhere: there is no path by which anybody could
 * reach it before it is where it belongs, and no mount target to be made. */
static int detached_file(const char *text) {
        const struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                                     MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
                                                     MOUNT_ATTR_NOSYMFOLLOW };
        int mount = (int)fs_mount();
        int file = mount < 0 ? -1 : openat(mount, "params", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
        bool written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
        if (file >= 0)
                close(file);
        int tree = written ? (int)syscall(SYS_open_tree, mount, "params", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)
                           : -1;
        if (tree >= 0 && syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0) {
                int why = errno;
                close(tree);
                errno = why;
                tree = -1;
        }
        int why = errno;
        if (mount >= 0)
                close(mount);
        errno = why;
        return tree;
}

int disable_device_node_modification(int root) {
        char text[PARAMS_MAX + 1];
        struct statfs fs;
        if (!changed_params(text))
                return 0;
        /* Covered is what the kernel's own /proc has there, and nothing that the image has put in its place.
         */
        int target = in_root(root, "/proc/driver/nvidia/params", O_PATH, RESOLVE_NO_SYMLINKS);
        if (target < 0 && (errno == ENOENT || errno == ENOTDIR))
                return 0;
        if (target < 0)
                return say_errno("open /proc/driver/nvidia/params in the container");
        if (fstatfs(target, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC) {
                close(target);
                return say("/proc/driver/nvidia/params in the container is no file of the kernel's");
        }
        int tree = detached_file(text);
        int r = tree < 0 ? say_errno("make a copy of /proc/driver/nvidia/params (needs Linux 5.12)") : 0;
        if (r == 0 && syscall(SYS_move_mount, tree, "", target, "",
                              MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                r = say_errno("cover /proc/driver/nvidia/params in the container");
        if (tree >= 0)
                close(tree);
        close(target);
        return r;
}
