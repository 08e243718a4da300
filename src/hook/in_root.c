/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/in_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook/hook_log.h"

enum { TRIES = 16 /* the kernel gives up if the tree changes during its walk */, NAME_SIZE = NAME_MAX + 1 };

int in_root_open(const char *path) {
        struct stat root, host;
        if (*path != '/')
                return hook_log("the root of the container, '%s', is not an absolute path", path);
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return hook_log_errno("open the root of the container, '%s'", path);
        if (fstat(fd, &root) < 0 || stat("/", &host) < 0) {
                hook_log_errno("stat the root of the container");
        } else if (root.st_dev == host.st_dev && root.st_ino == host.st_ino) {
                hook_log("the root of the container is the host's own");
        } else {
                return fd;
        }
        close(fd);
        return -1;
}

int in_root(int root, const char *path, unsigned flags, unsigned resolve) {
        const struct open_how how = { .flags = flags | O_CLOEXEC,
                                      .mode = flags & O_CREAT ? 0644 : 0,
                                      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve };
        long fd = -1;
        for (int i = 0; i < TRIES; i++) {
                fd = syscall(SYS_openat2, root, path, &how, sizeof how);
                if (fd >= 0 || errno != EAGAIN)
                        break;
        }
        return (int)fd;
}

/* ---- folders ---- */

/* Cuts off the next component; false at the end. Sets *bad if the component is refused. */
static bool next_component(const char **path, char name[static NAME_SIZE], bool *bad) {
        const char *p = *path + strspn(*path, "/");
        size_t n = strcspn(p, "/");
        *bad = n >= NAME_SIZE || (n == 2 && p[0] == '.' && p[1] == '.') || (n == 1 && p[0] == '.');
        if (!n || *bad)
                return false;
        memcpy(name, p, n);
        name[n] = '\0';
        *path = p + n;
        return true;
}

/* Opens a folder in another one, and creates it if it is missing. A link is refused. */
static int folder_in(int folder, const char *name) {
        const struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                                      .resolve =
                                              RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
        if (mkdirat(folder, name, 0755) < 0 && errno != EEXIST)
                return -1;
        return (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
}

/* Opens the deepest existing folder of the path; *rest is the missing part below it. */
static int deepest(int root, const char *path, const char **rest) {
        char prefix[PATH_MAX];
        size_t n = strlen(path);
        if (n >= sizeof prefix) {
                errno = ENAMETOOLONG;
                return -1;
        }
        for (;;) {
                memcpy(prefix, path, n);
                prefix[n] = '\0';
                int fd = in_root(root, n ? prefix : "/", O_PATH | O_DIRECTORY, 0);
                if (fd >= 0 || errno != ENOENT || !n) {
                        *rest = path + n;
                        return fd;
                }
                while (n && path[n - 1] == '/')
                        n--;
                while (n && path[n - 1] != '/')
                        n--;
        }
}

int in_root_folder(int root, const char *path) {
        char name[NAME_SIZE];
        const char *rest = path;
        bool bad = false;
        while (next_component(&rest, name, &bad))
                ;
        if (*path != '/' || bad)
                return hook_log("'%s' is not an absolute path without '.' and '..'", path);
        int fd = deepest(root, path, &rest);
        while (fd >= 0 && next_component(&rest, name, &bad)) {
                int next = folder_in(fd, name);
                int why = errno;
                close(fd);
                errno = why;
                fd = next;
        }
        return fd < 0 ? hook_log_errno("folder '%s' in the container", path) : fd;
}

/* ---- new links and files ---- */

int in_root_random_name(const char *before, const char *after, char *ret, size_t size) {
        uint64_t random;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
                return hook_log_errno("random numbers");
        int n = snprintf(ret, size, "%s%016llx%s", before, (unsigned long long)random, after);
        return n > 0 && (size_t)n < size ? 0 : hook_log("a name is too long");
}

/* Renames the file to its final name, or removes it. */
static int rename_into_place(int folder, const char *temporary, const char *name) {
        if (renameat(folder, temporary, folder, name) == 0)
                return 0;
        hook_log_errno("put '%s' into its place in the container", name);
        (void)unlinkat(folder, temporary, 0);
        return -1;
}

static int in_root_temporary_name(const char *name, char *ret, size_t size) {
        char before[NAME_SIZE + 2];
        /* A long name is cut, because the temporary name has a limit, too. */
        snprintf(before, sizeof before, ".%.200s.", name);
        return in_root_random_name(before, "", ret, size);
}

int in_root_place_link(int folder, const char *name, const char *text) {
        char temporary[NAME_SIZE + 64], there[PATH_MAX];
        ssize_t n = readlinkat(folder, name, there, sizeof there);
        if (n > 0 && (size_t)n == strlen(text) && memcmp(there, text, (size_t)n) == 0)
                return 0;
        if (in_root_temporary_name(name, temporary, sizeof temporary) < 0)
                return -1;
        if (symlinkat(text, folder, temporary) < 0)
                return hook_log_errno("link '%s' in the container", name);
        return rename_into_place(folder, temporary, name);
}

int in_root_place_file(int folder, const char *name, const char *text, mode_t mode) {
        char temporary[NAME_SIZE + 64];
        size_t n = strlen(text);
        if (in_root_temporary_name(name, temporary, sizeof temporary) < 0)
                return -1;
        int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0)
                return hook_log_errno("file '%s' in the container", name);
        bool written = write(fd, text, n) == (ssize_t)n;
        if (!written)
                hook_log_errno("write '%s' in the container", name);
        close(fd);
        if (!written) {
                (void)unlinkat(folder, temporary, 0);
                return -1;
        }
        return rename_into_place(folder, temporary, name);
}
