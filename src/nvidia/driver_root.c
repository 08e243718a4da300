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

void driver_file_done(struct driver_file *f) {
        free(f->here);
        free(f->host);
        free(f->inside);
        *f = (struct driver_file){ 0 };
}

/* root + path, without a doubled slash when the root is "/". */
static char *below(const char *root, const char *path) {
        size_t n = strlen(root);
        while (n && root[n - 1] == '/')
                n--;
        return xasprintf("%.*s%s", (int)n, root, path);
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
static char *resolved_path(int root_fd, int fd) {
        char link[64], root[PATH_MAX], file[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", root_fd);
        ssize_t n_root = readlink(link, root, sizeof root - 1);
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n_file = readlink(link, file, sizeof file - 1);
        if (n_root <= 0 || n_file <= 0)
                return NULL;
        root[n_root] = file[n_file] = '\0';
        if (streq(root, "/"))
                return xstrdup(file);
        if (!str_starts(file, root) || file[n_root] != '/')
                return NULL;
        return xstrdup(file + n_root);
}

/* What says that there is no such file. Any other error says nothing: a driver that cannot be looked at is
 * not one that is missing. */
static bool is_miss(int errnum) {
        return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == ENAMETOOLONG;
}

/* Fills *ret and *ret_found when `inside` leads to a regular file. */
static int probe(const struct driver_root *r, int root_fd, const char *inside, struct driver_file *ret,
                 bool *ret_found, struct err *e) {
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
        _cleanup_(freep) char *real = resolved_path(root_fd, fd);
        if (!real)
                return 0;
        *ret_found = true;
        *ret = (struct driver_file){ .here = below(r->here, real),
                                     .host = below(r->host, real),
                                     .inside = xstrdup(inside) };
        return 0;
}

static int open_root(const struct driver_root *r, struct err *e) {
        int fd = open(r->here, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                err_errno(e, errno, "driver root '%s'", r->here);
        return fd;
}

static int find(const struct driver_root *r, const char *const *dirs, const char *name,
                struct driver_file *ret, struct err *e) {
        _cleanup_(closep) int root_fd = open_root(r, e);
        if (root_fd < 0)
                return -1;
        _cleanup_(buf_done) struct buf searched = BUF_INIT(1024);
        struct err denied = { 0 };
        for (const char *const *d = dirs; *d; d++) {
                _cleanup_(freep) char *inside = below(*d, "");
                _cleanup_(freep) char *path = xasprintf("%s/%s", inside, name);
                bool found;
                if (probe(r, root_fd, path, ret, &found, e) < 0) {
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

int driver_root_find_library(const struct driver_root *r, const char *name, struct driver_file *ret,
                             struct err *e) {
        return find(r, library_dirs, name, ret, e);
}

int driver_root_find_binary(const struct driver_root *r, const char *name, struct driver_file *ret,
                            struct err *e) {
        return find(r, binary_dirs, name, ret, e);
}

static int by_path(const void *a, const void *b) {
        return strcmp(((const struct driver_file *)a)->inside, ((const struct driver_file *)b)->inside);
}

struct libraries {
        const struct driver_root *r;
        int root_fd;
        const char *dir, *suffix;
        struct driver_files *to;
};

/* Adds the file when it is one of the driver's. */
static int add_library(void *u, int folder, const char *name, struct err *e) {
        const struct libraries *l = u;
        struct driver_files *to = l->to;
        struct driver_file file;
        bool is_file;
        if (!strstr(name, ".so."))
                return 0;
        _cleanup_(freep) char *inside = xasprintf("%s/%s", l->dir, name);
        if (probe(l->r, l->root_fd, inside, &file, &is_file, e) < 0)
                return -1;
        if (!is_file)
                return 0;
        if (!streq(name, NVML_SONAME) && !str_ends(file.host, l->suffix)) {
                driver_file_done(&file);
                return 0;
        }
        to->items = xrealloc(to->items, (to->n + 1) * sizeof *to->items);
        to->items[to->n++] = file;
        return 0;
}

int driver_root_list_libraries(const struct driver_root *r, const char *version, struct driver_files *ret,
                               struct err *e) {
        struct driver_file nvml = { 0 };
        struct driver_files found = { 0 };
        if (driver_root_find_library(r, NVML_SONAME, &nvml, e) < 0)
                return -1;
        _cleanup_(freep) char *dir = xstrndup(nvml.here, (size_t)(strrchr(nvml.here, '/') - nvml.here));
        _cleanup_(freep) char *suffix = xasprintf(".so.%s", version);
        driver_file_done(&nvml);
        _cleanup_(freep) char *root_prefix = below(r->here, "");
        const char *inside_dir = dir + strlen(root_prefix);
        _cleanup_(closep) int root_fd = open_root(r, e);
        if (root_fd < 0)
                return -1;
        struct libraries l = { r, root_fd, inside_dir, suffix, &found };
        if (file_each(*dir ? dir : "/", add_library, &l, e) < 0) {
                driver_files_done(&found);
                return -1;
        }
        if (found.n)
                qsort(found.items, found.n, sizeof *found.items, by_path);
        *ret = found;
        return 0;
}

void driver_files_done(struct driver_files *f) {
        for (size_t i = 0; i < f->n; i++)
                driver_file_done(&f->items[i]);
        free(f->items);
        *f = (struct driver_files){ 0 };
}
