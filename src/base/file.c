/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

int file_read_fd(int fd, const char *name, size_t limit, char **ret, size_t *ret_n, struct err *e) {
        /* Files of /proc and /sys have no size, so the buffer grows while reading. */
        size_t cap = 512, n = 0;
        _cleanup_(freep) char *p = xmalloc(cap);
        for (;;) {
                if (cap - n < 2) {
                        cap *= 2;
                        p = xrealloc(p, cap);
                }
                ssize_t got = pread(fd, p + n, cap - n - 1, (off_t)n);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return err_errno(e, errno, "read '%s'", name);
                if (got == 0)
                        break;
                n += (size_t)got;
                if (n > limit)
                        return err_set(e, ERR_INVALID, EFBIG, "'%s' is larger than %zu bytes", name, limit);
        }
        p[n] = '\0';
        if (ret_n)
                *ret_n = n;
        *ret = TAKE(p);
        return 0;
}

int file_read(const char *path, size_t limit, char **ret, size_t *ret_n, struct err *e) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return err_errno(e, errno, "open '%s'", path);
        return file_read_fd(fd, path, limit, ret, ret_n, e);
}

int file_open_nofollow(const char *path, int *ret_fd, struct err *e) {
        struct stat st;
        /* O_NONBLOCK: a FIFO in the file's place must not block us. */
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return err_errno(e, errno, "open '%s'", path);
        if (fstat(fd, &st) < 0)
                return err_errno(e, errno, "stat '%s'", path);
        if (!S_ISREG(st.st_mode))
                return err_set(e, ERR_INVALID, EINVAL, "'%s' is not a regular file", path);
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int file_write_all(int fd, const char *name, const void *data, size_t n, struct err *e) {
        const char *p = data;
        while (n) {
                ssize_t k = write(fd, p, n);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return err_errno(e, errno, "write '%s'", name);
                p += k;
                n -= (size_t)k;
        }
        return 0;
}

static int sync_folder(const char *dir, struct err *e) {
        _cleanup_(closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return err_errno(e, errno, "open folder '%s'", dir);
        if (fsync(fd) < 0)
                return err_errno(e, errno, "sync folder '%s'", dir);
        return 0;
}

struct content {
        const void *data;
        size_t n;
        mode_t mode;
        bool durable; /* a file that was replaced survives a crash of the machine */
};

/* Errors name `path`, so that the text of a failure is the same at each attempt. */
static int fill(const char *tmp, const char *path, const struct content *c, struct stat *ret, struct err *e) {
        _cleanup_(closep) int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, c->mode);
        if (fd < 0)
                return err_errno(e, errno, "create '%s'", path);
        /* The requested mode, independent of the umask. */
        if (fchmod(fd, c->mode) < 0)
                return err_errno(e, errno, "chmod '%s'", path);
        if (file_write_all(fd, path, c->data, c->n, e) < 0)
                return -1;
        if (c->durable && fsync(fd) < 0)
                return err_errno(e, errno, "sync '%s'", path);
        if (ret && fstat(fd, ret) < 0)
                return err_errno(e, errno, "stat '%s'", path);
        return 0;
}

static int file_replace_with(const char *path, const struct content *c, struct stat *ret, struct err *e) {
        static atomic_uint serial;
        const char *slash = strrchr(path, '/');
        _cleanup_(freep) char *dir =
                slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");
        _cleanup_(freep) char *tmp = xasprintf("%s/.%s.tmp.%d.%u", dir, slash ? slash + 1 : path,
                                               (int)getpid(), atomic_fetch_add(&serial, 1));
        (void)unlink(tmp); /* left by an earlier process with our PID */
        if (fill(tmp, path, c, ret, e) < 0) {
                unlink(tmp);
                return -1;
        }
        if (rename(tmp, path) < 0) {
                int saved = errno;
                unlink(tmp);
                return err_errno(e, saved, "replace '%s'", path);
        }
        return c->durable ? sync_folder(dir, e) : 0;
}

int file_replace(const char *path, const void *data, size_t n, mode_t mode, struct err *e) {
        return file_replace_with(path, &(struct content){ data, n, mode, true }, NULL, e);
}

int file_replace_known(const char *path, const void *data, size_t n, struct stat *ret, struct err *e) {
        return file_replace_with(path, &(struct content){ data, n, 0600, true }, ret, e);
}

int file_replace_volatile(const char *path, const void *data, size_t n, mode_t mode, struct err *e) {
        return file_replace_with(path, &(struct content){ data, n, mode, false }, NULL, e);
}

int file_remove(const char *path, struct err *e) {
        if (unlink(path) < 0 && errno != ENOENT)
                return err_errno(e, errno, "remove '%s'", path);
        return 0;
}

int file_mkdirs(const char *path, mode_t mode, struct err *e) {
        _cleanup_(freep) char *p = xstrdup(path);
        struct stat st;
        if (!*p)
                return err_set(e, ERR_INVALID, 0, "the path of a folder is empty");
        for (char *c = p; *c;) {
                c += 1 + strcspn(c + 1, "/");
                char end = *c;
                *c = '\0';
                if (mkdir(p, mode) < 0 && errno != EEXIST)
                        return err_errno(e, errno, "create folder '%s'", p);
                *c = end;
        }
        if (stat(p, &st) < 0)
                return err_errno(e, errno, "stat '%s'", p);
        if (!S_ISDIR(st.st_mode))
                return err_set(e, ERR_INVALID, ENOTDIR, "'%s' is not a folder", p);
        return 0;
}

int file_each(const char *dir, file_entry_fn *fn, void *u, struct err *e) {
        DIR *d = opendir(dir);
        const struct dirent *f;
        int r = 0;
        if (!d)
                return err_errno(e, errno, "open folder '%s'", dir);
        /* readdir() returns NULL at the end and when it fails. */
        while (r == 0 && (errno = 0, f = readdir(d)))
                if (!streq(f->d_name, ".") && !streq(f->d_name, ".."))
                        r = fn(u, dirfd(d), f->d_name, e);
        if (r == 0 && errno)
                r = err_errno(e, errno, "read folder '%s'", dir);
        closedir(d);
        return r;
}

static int remove_temporary(void *u, int folder, const char *name, struct err *e) {
        if (str_starts(name, u))
                (void)unlinkat(folder, name, 0);
        return 0;
}

void file_remove_temporary(const char *dir, const char *base) {
        _cleanup_(freep) char *prefix = xasprintf(".%s.tmp.", base);
        struct err ignored;
        (void)file_each(dir, remove_temporary, prefix, &ignored);
}

char *file_join(const char *dir, const char *name) {
        return xasprintf("%s%s%s", dir, str_ends(dir, "/") ? "" : "/", name[0] == '/' ? name + 1 : name);
}

int file_boot_id(const char *path, char ret[static 37], struct err *e) {
        _cleanup_(freep) char *text = NULL;
        size_t n;
        if (file_read(path, 256, &text, &n, e) < 0)
                return -1;
        struct str id = str_trim((struct str){ text, n });
        if (id.n == 0 || id.n > 36)
                return err_set(e, ERR_INVALID, 0, "'%s' contains no boot ID", path);
        memcpy(ret, id.p, id.n);
        ret[id.n] = '\0';
        return 0;
}

bool file_same(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}
