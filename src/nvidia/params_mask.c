/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/params_mask.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { TEXT_MAX = 16384 };

static int params_mask_failed(char *why, const char *call) {
        snprintf(why, PARAMS_MASK_WHY, "%s: %s", call, strerror(errno));
        return -1;
}

/* Finds the value of the parameter in the text; NULL: the text lacks it. */
static char *params_mask_find_value(char *text) {
        static const char line[] = "ModifyDeviceFiles: ";
        for (char *p = text; (p = strstr(p, line)); p += strlen(line)) {
                if (p == text || p[-1] == '\n')
                        return p + strlen(line);
        }
        return NULL;
}

static bool is_digit(const char *value, char digit) {
        return value && value[0] == digit && (value[1] == '\n' || !value[1]);
}

static int read_text(int file, char text[static TEXT_MAX]) {
        size_t n = 0;
        ssize_t got;
        while ((got = read(file, text + n, TEXT_MAX - 1 - n)) > 0)
                n += (size_t)got;
        text[n] = '\0';
        return got < 0 ? -1 : 0;
}

/* ---- the mount ---- */

/* Creates a tmpfs that is not mounted yet. */
static int new_tmpfs(char *why) {
        int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), mount = -1;
        if (fs < 0)
                return params_mask_failed(why, "fsopen of tmpfs");
        if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", "65536", 0) < 0 ||
            syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                params_mask_failed(why, "fsconfig of tmpfs");
        else if ((mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0)) < 0)
                params_mask_failed(why, "fsmount of tmpfs");
        close(fs);
        return mount;
}

static int write_file(int tmpfs, const char *name, const char *text, char *why) {
        int fd = openat(tmpfs, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
        if (fd < 0)
                return params_mask_failed(why, "open a file of tmpfs");
        bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
        if (!written)
                params_mask_failed(why, "write to tmpfs");
        close(fd);
        return written ? 0 : -1;
}

/* Returns a detached mount of the file. It is cloned while the tmpfs is attached, and has its flags. */
static int clone_file(int tmpfs, int folder, const char *name, char *why) {
        const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
        int tree = -1;
        if (syscall(SYS_move_mount, tmpfs, "", folder, "",
                    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return params_mask_failed(why, "move_mount of tmpfs");
        if (fchdir(tmpfs) < 0)
                return params_mask_failed(why, "fchdir to tmpfs");
        /* mount_setattr would do this too, but only since Linux 5.12. */
        if (mount(NULL, ".", NULL, flags, NULL) < 0)
                params_mask_failed(why, "mount (remount of tmpfs)");
        else if ((tree = (int)syscall(SYS_open_tree, tmpfs, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)) < 0)
                params_mask_failed(why, "open_tree of a file of tmpfs");
        if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) {
                params_mask_failed(why, "umount2 of tmpfs");
                if (tree >= 0)
                        close(tree);
                return -1;
        }
        return tree;
}

static int cover(int file, int folder, const char *name, const char *text, char *why) {
        int tree = -1, r = -1, tmpfs = new_tmpfs(why);
        if (tmpfs < 0)
                return -1;
        if (write_file(tmpfs, name, text, why) == 0)
                tree = clone_file(tmpfs, folder, name, why);
        close(tmpfs);
        if (tree < 0)
                return -1;
        r = syscall(SYS_move_mount, tree, "", file, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
                    ? params_mask_failed(why, "move_mount of a file of tmpfs")
                    : 0;
        close(tree);
        return r;
}

/* ---- decision ---- */

static int mask_file(int file, int folder, const char *name, char *why) {
        char text[TEXT_MAX];
        struct statfs fs;
        if (fstatfs(file, &fs) < 0 || read_text(file, text) < 0)
                return params_mask_failed(why, "read");
        char *value = params_mask_find_value(text);
        if (fs.f_type != PROC_SUPER_MAGIC) {
                if (is_digit(value, '0')) /* covered before, by us or by another hook */
                        return 0;
                snprintf(why, PARAMS_MASK_WHY,
                         "it is not the kernel's file, and does not contain ModifyDeviceFiles: 0");
                return -1;
        }
        if (!is_digit(value, '1'))
                return 0;
        *value = '0';
        return cover(file, folder, name, text, why);
}

int params_mask(int folder, const char *name, char why[static PARAMS_MASK_WHY]) {
        /* The flags are necessary because an image may have any file in place of /proc. */
        int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (file < 0)
                return errno == ENOENT ? 0 : params_mask_failed(why, "open");
        int r = mask_file(file, folder, name, why);
        close(file);
        return r;
}

int params_mask_unshared(const char *folder, const char *name, char why[static PARAMS_MASK_WHY]) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "/proc/%s", folder);
        if (unshare(CLONE_NEWNS) < 0)
                return params_mask_failed(why, "unshare of the mount namespace");
        if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
                return params_mask_failed(why, "mount (propagation)");
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : params_mask_failed(why, "open");
        int r = params_mask(fd, name, why);
        close(fd);
        return r;
}
