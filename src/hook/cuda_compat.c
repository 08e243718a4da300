/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/compat_note.h"
#include "hook/in_root.h"
#include "hook/hook_log.h"

/* NVIDIA's images have the user-space part of a newer driver here. */
static const char compat_folder[] = "/usr/local/cuda/compat";

/* The first number of a version; 0: there is none. */
static unsigned long major_of(const char *version) {
        char *end;
        errno = 0;
        unsigned long n = *version >= '0' && *version <= '9' ? strtoul(version, &end, 10) : 0;
        return errno || (n && *end != '.') ? 0 : n;
}

/* "libcuda.so.580.95.05" -> 580. libcuda.so.1 is the name of a link. */
static unsigned long library_major(int folder, const char *name) {
        static const char prefix[] = "libcuda.so.";
        struct stat st;
        if (strncmp(name, prefix, strlen(prefix)) != 0 || !strchr(name + strlen(prefix), '.') ||
            fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                return 0;
        return major_of(name + strlen(prefix));
}

/* A library without a list of drivers supports all older drivers. */
static bool cuda_compat_is_for(int folder, const char *name, unsigned long driver) {
        int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return false;
        int listed = compat_note_has(fd, driver);
        close(fd);
        return listed != 0 && library_major(folder, name) > driver;
}

/* True if exactly one library supports that driver. With several, the loader may use any of them. */
static bool is_preferred(int root, unsigned long driver) {
        int fd = in_root(root, compat_folder, O_RDONLY | O_DIRECTORY, 0);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;
        char name[NAME_MAX + 1] = "";
        unsigned n = 0;
        if (!dir) {
                if (fd >= 0)
                        close(fd);
                return false;
        }
        while ((entry = readdir(dir))) {
                if (library_major(dirfd(dir), entry->d_name)) {
                        snprintf(name, sizeof name, "%s", entry->d_name);
                        n++;
                }
        }
        bool yes = n == 1 && cuda_compat_is_for(dirfd(dir), name, driver);
        closedir(dir);
        return yes;
}

int enable_cuda_compat(int root, const struct options *o) {
        char name[NAME_MAX];
        unsigned long ours = o->driver_version ? major_of(o->driver_version) : 0;
        if (!ours)
                return hook_log(
                        "--host-driver-version: the value must be the version of the host's driver, such "
                        "as 580.95.05");
        if (!is_preferred(root, ours))
                return 0;
        int folder = in_root_folder(root, "/etc/ld.so.conf.d");
        if (folder < 0)
                return -1;
        /* The name sorts before all others, because the loader uses the first folder that has a library. */
        int r = in_root_random_name("00-compat-", ".conf", name, sizeof name);
        if (r == 0)
                r = in_root_place_file(folder, name, "/usr/local/cuda/compat\n", 0644);
        close(folder);
        return r;
}
