/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/driver_root.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "nvidia/root_walk.h"

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

/* 1: `inside`, a text in the arena, leads to a regular file, and *ret is filled. 0: it does not. */
static int probe(const struct driver_root *r, const struct root_walk *walk, const char *inside,
                 struct arena *a, struct driver_file *ret, struct err *e) {
        struct root_file f;
        int there = root_walk_find(walk, inside, a, &f, e);
        if (there < 0)
                return -1;
        if (!there || !S_ISREG(f.st.st_mode))
                return 0;
        *ret = (struct driver_file){ root_walk_below(r->here, f.real, a), root_walk_below(r->host, f.real, a),
                                     inside };
        return 1;
}

int driver_root_read(const struct driver_root *r, const char *path, size_t limit, char **ret, size_t *ret_n,
                     struct err *e) {
        _cleanup_(root_walk_done) struct root_walk walk;
        if (root_walk_init(&walk, r->here, r->host, e) < 0)
                return -1;
        _cleanup_(closep) int fd = root_walk_read(&walk, path, e);
        return fd < 0 ? -1 : file_read_fd(fd, path, limit, ret, ret_n, e);
}

bool driver_root_has_dev(const struct driver_root *r) {
        _cleanup_(freep) char *dev = file_join(r->here, "dev");
        struct stat st;
        return stat(dev, &st) == 0 && S_ISDIR(st.st_mode);
}

static int driver_root_find(const struct driver_root *r, const char *const *dirs, const char *name,
                            struct arena *a, struct driver_file *ret, struct err *e) {
        _cleanup_(root_walk_done) struct root_walk walk;
        if (root_walk_init(&walk, r->here, r->host, e) < 0)
                return -1;
        _cleanup_(buf_done) struct buf searched = BUF_INIT(1024);
        struct err denied = { 0 };
        for (const char *const *d = dirs; *d; d++) {
                const char *path = arena_printf(a, "%s/%s", root_walk_below(*d, "", a), name);
                int found = probe(r, &walk, path, a, ret, e);
                if (found < 0) {
                        /* Another folder may be readable and have the file. */
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
                return err_wrap(e, "'%s' is not in the readable folders of driver root '%s'", name, r->host);
        }
        return err_set(e, ERR_NOT_FOUND, ENOENT,
                       "'%s' is not in driver root '%s': is it installed there, and is the chart value "
                       "nvidiaDriverRoot correct? (searched %s)",
                       name, r->host, buf_str(&searched));
}

int driver_root_find_library(const struct driver_root *r, const char *name, struct arena *a,
                             struct driver_file *ret, struct err *e) {
        return driver_root_find(r, library_dirs, name, a, ret, e);
}

int driver_root_find_binary(const struct driver_root *r, const char *name, struct arena *a,
                            struct driver_file *ret, struct err *e) {
        return driver_root_find(r, binary_dirs, name, a, ret, e);
}

static int driver_root_by_path(const void *a, const void *b) {
        return strcmp(((const struct driver_file *)a)->inside, ((const struct driver_file *)b)->inside);
}

struct libraries {
        const struct driver_root *r;
        const struct root_walk *walk;
        const char *dir, *suffix;
        struct arena *a;
        struct driver_files *to;
        size_t cap;
};

/* Adds the file if it belongs to the driver. */
static int add_library(void *u, int folder, const char *name, struct err *e) {
        struct libraries *l = u;
        struct driver_files *to = l->to;
        struct driver_file file;
        if (!strstr(name, ".so."))
                return 0;
        const char *inside = arena_printf(l->a, "%s/%s", l->dir, name);
        int is_file = probe(l->r, l->walk, inside, l->a, &file, e);
        if (is_file < 0)
                return -1;
        if (!is_file || (!streq(name, NVML_SONAME) && !str_ends(file.host, l->suffix)))
                return 0;
        ARENA_GROW(l->a, to->items, to->n, l->cap);
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
        _cleanup_(root_walk_done) struct root_walk walk;
        if (root_walk_init(&walk, r->here, r->host, e) < 0)
                return -1;
        struct libraries l = { .r = r,
                               .walk = &walk,
                               .dir = dir + strlen(root_walk_below(r->here, "", a)),
                               .suffix = arena_printf(a, ".so.%s", version),
                               .a = a,
                               .to = &found };
        if (file_each(*dir ? dir : "/", add_library, &l, e) < 0)
                return -1;
        if (found.n)
                qsort(found.items, found.n, sizeof *found.items, driver_root_by_path);
        *ret = found;
        return 0;
}
