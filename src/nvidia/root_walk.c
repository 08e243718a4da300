/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/root_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

/* RESOLVE_IN_ROOT refuses ".." with EAGAIN when anything was renamed or mounted anywhere in the system during
 * the walk (openat2(2): "the caller may choose to retry"). Each try takes microseconds, so one of them
 * succeeds even on a machine that mounts containers all the time. */
enum { TRIES = 1000 };

enum { NAMES_MAX = 65536 /* in a folder; a driver has some hundred libraries */ };

char *root_walk_below(const char *root, const char *path, struct arena *a) {
        size_t n = strlen(root);
        while (n && root[n - 1] == '/')
                n--;
        return arena_printf(a, "%.*s%s", (int)n, root, path);
}

int root_walk_init(struct root_walk *w, const char *here, const char *name, struct err *e) {
        *w = (struct root_walk){ open(here, O_PATH | O_DIRECTORY | O_CLOEXEC), name };
        return w->fd < 0 ? err_errno(e, errno, "driver root '%s'", here) : 0;
}

void root_walk_done(struct root_walk *w) {
        closep(&w->fd);
        w->fd = -1;
}

static int open_in_root(const struct root_walk *w, const char *path, unsigned flags) {
        const struct open_how how = { .flags = flags | O_CLOEXEC,
                                      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        long fd = -1;
        for (unsigned i = 0; i < TRIES; i++) {
                fd = syscall(SYS_openat2, w->fd, path, &how, sizeof how);
                if (fd >= 0 || errno != EAGAIN)
                        break;
        }
        return fd < 0 ? -1 : (int)fd;
}

/* Returns the path of an open descriptor below the root: without the prefix, the path of the root in our
 * container. */
static const char *resolved_path(const struct root_walk *w, int fd, struct arena *a) {
        char link[64], root[PATH_MAX], file[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", w->fd);
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

/* True if the error means that the file does not exist. After any other error it is unknown: a driver that
 * cannot be read is not missing. */
static bool is_miss(int errnum) {
        return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == ENAMETOOLONG;
}

int root_walk_find(const struct root_walk *w, const char *path, struct arena *a, struct root_file *ret,
                   struct err *e) {
        _cleanup_(closep) int fd = open_in_root(w, path, O_PATH);
        if (fd < 0)
                return is_miss(errno) ? 0
                                      : err_errno(e, errno, "open '%s' in driver root '%s'", path, w->name);
        if (fstat(fd, &ret->st) < 0)
                return err_errno(e, errno, "stat '%s' in driver root '%s'", path, w->name);
        ret->real = resolved_path(w, fd, a);
        return ret->real != NULL;
}

int root_walk_stat(const struct root_walk *w, const char *path, struct stat *ret, struct err *e) {
        _cleanup_(closep) int fd = open_in_root(w, path, O_PATH);
        if (fd < 0)
                return is_miss(errno) ? 0
                                      : err_errno(e, errno, "open '%s' in driver root '%s'", path, w->name);
        return fstat(fd, ret) < 0 ? err_errno(e, errno, "stat '%s' in driver root '%s'", path, w->name) : 1;
}

int root_walk_read(const struct root_walk *w, const char *path, struct err *e) {
        struct stat st;
        /* Do not wait for a writer if the path is a FIFO. */
        _cleanup_(closep) int fd = open_in_root(w, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 && is_miss(errno))
                return err_set(e, ERR_NOT_FOUND, errno, "there is no '%s' in '%s'", path, w->name);
        if (fd < 0 || fstat(fd, &st) < 0)
                return err_errno(e, errno, "open '%s' in '%s'", path, w->name);
        if (!S_ISREG(st.st_mode))
                return err_set(e, ERR_INVALID, 0, "'%s' in '%s' is not a regular file", path, w->name);
        return TAKE_FD(fd);
}

bool root_walk_is_link(const struct root_walk *w, const char *dir, const char *name) {
        struct stat st;
        _cleanup_(closep) int fd = open_in_root(w, dir, O_PATH | O_DIRECTORY);
        return fd >= 0 && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static int root_walk_by_name(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct folder {
        const struct root_walk *w;
        const char *path; /* in the root */
        DIR *dir;
};

static int read_names(const struct folder *f, const char *pattern, struct arena *a, const char ***ret,
                      struct err *e) {
        const char **names = arena_alloc(a, 16 * sizeof *names);
        size_t n = 0, cap = 16;
        const struct dirent *entry;
        for (errno = 0; (entry = readdir(f->dir)); errno = 0) {
                if (streq(entry->d_name, ".") || streq(entry->d_name, "..") ||
                    fnmatch(pattern, entry->d_name, FNM_PERIOD) != 0)
                        continue;
                if (n + 1 == cap) {
                        const char **more = arena_alloc(a, (cap *= 2) * sizeof *more);
                        memcpy(more, names, n * sizeof *more);
                        names = more;
                }
                if (n == NAMES_MAX)
                        return err_set(e, ERR_INVALID, 0, "'%s' in the driver root has more than %d files",
                                       f->path, NAMES_MAX);
                names[n++] = arena_strdup(a, entry->d_name);
        }
        if (errno)
                return err_errno(e, errno, "read '%s' in driver root '%s'", f->path, f->w->name);
        if (n)
                qsort(names, n, sizeof *names, root_walk_by_name);
        *ret = names;
        return 0;
}

int root_walk_names(const struct root_walk *w, const char *dir, const char *pattern, struct arena *a,
                    const char ***ret, struct err *e) {
        int fd = open_in_root(w, dir, O_RDONLY | O_DIRECTORY);
        if (fd < 0 && is_miss(errno)) {
                *ret = arena_alloc(a, sizeof **ret);
                return 0;
        }
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        if (!d) {
                err_errno(e, errno, "open '%s' in driver root '%s'", dir, w->name);
                if (fd >= 0)
                        close(fd);
                return -1;
        }
        int r = read_names(&(struct folder){ w, dir, d }, pattern, a, ret, e);
        closedir(d);
        return r;
}
