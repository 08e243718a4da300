/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/driver_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

static const char *const library_dirs[] = {
        "/",
        "/usr/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/lib64",
        "/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu",
        NULL,
};
static const char *const binary_dirs[] = { "/", "/opt/bin", "/usr/bin", "/usr/sbin", "/bin", "/sbin", NULL };

#define NVML_SONAME "libnvidia-ml.so.1"

/* root + path, without a doubled slash when the root is "/". */
static char *below(const char *root, const char *path, struct arena *a) {
        size_t n = strlen(root);
        while (n && root[n - 1] == '/')
                n--;
        return arena_printf(a, "%.*s%s", (int)n, root, path);
}

/* Opens a path inside the root with all links resolved as if the root were "/": an absolute link stays in it
 * and ".." cannot leave it. The kernel does the whole walk, so a tree that changes meanwhile cannot cheat it.
 */
static int open_in_root(int root_fd, const char *path) {
        const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                                      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);
        return fd < 0 ? -1 : (int)fd;
}

/* The path, below the root, of what an open descriptor points to: the container's mount tree is the prefix
 * that goes. */
static const char *resolved_path(int root_fd, int fd, struct arena *a) {
        char link[64], root[PATH_MAX], file[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", root_fd);
        ssize_t n_root = readlink(link, root, sizeof root - 1);
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n_file = readlink(link, file, sizeof file - 1);
        if (n_root <= 0 || n_file <= 0)
                return NULL;
        root[n_root] = file[n_file] = '\0';
        if (streq(root, "/"))
                return arena_strdup(a, file);
        if (!str_starts(file, root) || file[n_root] != '/')
                return NULL;
        return arena_strdup(a, file + n_root);
}

/* What says that there is no such file. Any other error says nothing: a driver that cannot be looked at is
 * not one that is missing. */
static bool is_miss(int errnum) {
        return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == ENAMETOOLONG;
}

/* Fills *ret and *ret_found when `inside`, which is in the arena, leads to a regular file. */
static int probe(const struct driver_root *r, int root_fd, const char *inside, struct arena *a,
                 struct driver_file *ret, bool *ret_found, struct err *e) {
        struct stat st;
        _cleanup_(closep) int fd = open_in_root(root_fd, inside);
        *ret_found = false;
        if (fd < 0)
                return is_miss(errno) ? 0
                                      : err_errno(e, errno, "open '%s' in driver root '%s'", inside, r->host);
        if (fstat(fd, &st) < 0)
                return err_errno(e, errno, "stat '%s' in driver root '%s'", inside, r->host);
        if (!S_ISREG(st.st_mode))
                return 0;
        const char *real = resolved_path(root_fd, fd, a);
        if (!real)
                return 0;
        *ret_found = true;
        *ret = (struct driver_file){ below(r->here, real, a), below(r->host, real, a), inside };
        return 0;
}

static int open_root(const struct driver_root *r, struct err *e) {
        int fd = open(r->here, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                err_errno(e, errno, "driver root '%s'", r->here);
        return fd;
}

int driver_root_read(const struct driver_root *r, const char *path, size_t limit, char **ret, size_t *ret_n,
                     struct err *e) {
        /* A FIFO in its place must not keep us waiting for a writer. */
        const struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                                      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        _cleanup_(closep) int root_fd = open_root(r, e);
        if (root_fd < 0)
                return -1;
        struct stat st;
        _cleanup_(closep) int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
        if (fd < 0 && is_miss(errno))
                return err_set(e, ERR_NOT_FOUND, errno, "there is no '%s' in '%s'", path, r->host);
        if (fd < 0 || fstat(fd, &st) < 0)
                return err_errno(e, errno, "open '%s' in '%s'", path, r->host);
        if (!S_ISREG(st.st_mode))
                return err_set(e, ERR_INVALID, 0, "'%s' in '%s' is no regular file", path, r->host);
        return file_read_fd(fd, path, limit, ret, ret_n, e);
}

static int find(const struct driver_root *r, const char *const *dirs, const char *name, struct arena *a,
                struct driver_file *ret, struct err *e) {
        _cleanup_(closep) int root_fd = open_root(r, e);
        if (root_fd < 0)
                return -1;
        _cleanup_(buf_done) struct buf searched = BUF_INIT(1024);
        struct err denied = { 0 };
        for (const char *const *d = dirs; *d; d++) {
                const char *path = arena_printf(a, "%s/%s", below(*d, "", a), name);
                bool found;
                if (probe(r, root_fd, path, a, ret, &found, e) < 0) {
                        /* It may be in a folder that we may enter. */
                        if (e->code != EACCES)
                                return -1;
                        if (!denied.kind)
                                denied = *e;
                        continue;
                }
                if (found)
                        return 0;
                buf_addf(&searched, "%s%s", d == dirs ? "" : ", ", *d);
        }
        if (denied.kind) {
                *e = denied;
                return err_wrap(e, "'%s' is not where driver root '%s' may be searched", name, r->host);
        }
        return err_set(e, ERR_NOT_FOUND, ENOENT,
                       "'%s' is not in driver root '%s': is it installed there, and is the chart value "
                       "nvidiaDriverRoot right? (searched %s)",
                       name, r->host, buf_str(&searched));
}

int driver_root_find_library(const struct driver_root *r, const char *name, struct arena *a,
                             struct driver_file *ret, struct err *e) {
        return find(r, library_dirs, name, a, ret, e);
}

int driver_root_find_binary(const struct driver_root *r, const char *name, struct arena *a,
                            struct driver_file *ret, struct err *e) {
        return find(r, binary_dirs, name, a, ret, e);
}

static int by_path(const void *a, const void *b) {
        return strcmp(((const struct driver_file *)a)->inside, ((const struct driver_file *)b)->inside);
}

struct libraries {
        const struct driver_root *r;
        int root_fd;
        const char *dir, *suffix;
        struct arena *a;
        struct driver_files *to;
        size_t cap;
};

/* Adds the file when it is one of the driver's. */
static int add_library(void *u, int folder, const char *name, struct err *e) {
        struct libraries *l = u;
        struct driver_files *to = l->to;
        struct driver_file file;
        bool is_file;
        if (!strstr(name, ".so."))
                return 0;
        const char *inside = arena_printf(l->a, "%s/%s", l->dir, name);
        if (probe(l->r, l->root_fd, inside, l->a, &file, &is_file, e) < 0)
                return -1;
        if (!is_file || (!streq(name, NVML_SONAME) && !str_ends(file.host, l->suffix)))
                return 0;
        if (to->n == l->cap) {
                struct driver_file *more = arena_alloc(l->a, (l->cap = l->cap * 2 + 16) * sizeof *more);
                if (to->n)
                        memcpy(more, to->items, to->n * sizeof *more);
                to->items = more;
        }
        to->items[to->n++] = file;
        return 0;
}

int driver_root_list_libraries(const struct driver_root *r, const char *version, struct arena *a,
                               struct driver_files *ret, struct err *e) {
        struct driver_file nvml;
        struct driver_files found = { 0 };
        if (driver_root_find_library(r, NVML_SONAME, a, &nvml, e) < 0)
                return -1;
        const char *dir = arena_strndup(a, nvml.here, (size_t)(strrchr(nvml.here, '/') - nvml.here));
        _cleanup_(closep) int root_fd = open_root(r, e);
        if (root_fd < 0)
                return -1;
        struct libraries l = { .r = r,
                               .root_fd = root_fd,
                               .dir = dir + strlen(below(r->here, "", a)),
                               .suffix = arena_printf(a, ".so.%s", version),
                               .a = a,
                               .to = &found };
        if (file_each(*dir ? dir : "/", add_library, &l, e) < 0)
                return -1;
        if (found.n)
                qsort(found.items, found.n, sizeof *found.items, by_path);
        *ret = found;
        return 0;
}
