/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/fingerprint.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

enum { TEXT_MAX = 4096, DEPTH_MAX = 4 };

/* Folders list their entries in no order, so the fingerprint is a sum of hashes, each of a path and its
 * content. */
struct look {
        uint64_t sum;
        const char *dir;
        unsigned depth; /* of `dir` below capabilities */
};

static void fingerprint_add(struct look *l, const char *path, const char *text, size_t n) {
        struct buf b = BUF_INIT(2 * TEXT_MAX);
        buf_addf(&b, "%s=", path);
        buf_add(&b, text, n);
        l->sum += str_fnv64(b.p, b.n);
        buf_done(&b);
}

static void fingerprint_add_text(struct look *l, const char *path) {
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        struct err e;
        if (file_read(path, TEXT_MAX, &text, &n, &e) == 0)
                fingerprint_add(l, path, text, n);
}

/* Adds the identity of a file: another file with the same name has another inode number or another time. */
static void add_file(struct look *l, const char *path) {
        struct stat st;
        char text[128];
        if (stat(path, &st) < 0)
                return;
        int n = snprintf(text, sizeof text, "%llu:%llu:%lld.%ld", (unsigned long long)st.st_dev,
                         (unsigned long long)st.st_ino, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        fingerprint_add(l, path, text, (size_t)n);
}

static int on_gpu(void *u, int folder, const char *name, struct err *e) {
        fingerprint_add(u, "gpu", name, str_from(name).n);
        return 0;
}

/* "nvidia" and a number: device nodes of GPUs, not control nodes. */
static bool is_gpu_node(const char *name) {
        if (!str_starts(name, "nvidia") || !name[6])
                return false;
        for (name += 6; *name; name++)
                if (!isdigit((unsigned char)*name))
                        return false;
        return true;
}

static int fingerprint_on_node(void *u, int folder, const char *name, struct err *e) {
        struct stat st;
        char text[64];
        if (!is_gpu_node(name) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        int n = snprintf(text, sizeof text, "%u:%u:%o", major(st.st_rdev), minor(st.st_rdev), st.st_mode);
        fingerprint_add(u, name, text, (size_t)n);
        return 0;
}

/* gpu0/mig/gi1/ci0: the file "access" of an instance contains its capability. */
static int on_instance(void *u, int folder, const char *name, struct err *e) {
        struct look *l = u;
        _cleanup_(freep) char *path = file_join(l->dir, name);
        bool below = str_starts(name, "gpu") || streq(name, "mig") || str_starts(name, "gi") ||
                     str_starts(name, "ci");
        if (streq(name, "access")) {
                fingerprint_add_text(l, path);
        } else if (below && l->depth < DEPTH_MAX) {
                struct look deeper = { .dir = path, .depth = l->depth + 1 };
                (void)file_each(path, on_instance, &deeper, e);
                l->sum += deeper.sum;
        }
        return 0;
}

uint64_t fingerprint(const struct fingerprint_of *of) {
        struct look l = { 0 };
        struct err e;
        _cleanup_(freep) char *gpus = file_join(of->proc_driver, "gpus");
        _cleanup_(freep) char *capabilities = file_join(of->proc_driver, "capabilities");
        _cleanup_(freep) char *version = file_join(of->sys, "module/nvidia/version");
        (void)file_each(gpus, on_gpu, &l, &e);
        l.dir = capabilities;
        (void)file_each(capabilities, on_instance, &l, &e);
        (void)file_each(of->dev, fingerprint_on_node, &l, &e);
        fingerprint_add_text(&l, version);
        add_file(&l, of->library);
        return l.sum > 1 ? l.sum : 2;
}
