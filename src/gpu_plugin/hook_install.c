/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/hook_install.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cdi/cdi.h"

enum { PROGRAM_MAX = 64 << 20, CDI_FILE_MAX = 4 << 20, HASH_BYTES = 8 };

static bool hook_install_holds(const char *path, const char *content, size_t n) {
        _cleanup_(freep) char *there = NULL;
        size_t there_n;
        struct err e;
        return file_read(path, PROGRAM_MAX, &there, &there_n, &e) == 0 && there_n == n &&
               memcmp(there, content, n) == 0;
}

int hook_install(const char *program, const char *dir, char **ret, struct err *e) {
        _cleanup_(freep) char *content = NULL;
        unsigned char hash[SHA256_DIGEST_LENGTH];
        char name[sizeof HOOK_PREFIX + 2 * HASH_BYTES] = HOOK_PREFIX;
        size_t n;
        if (file_read(program, PROGRAM_MAX, &content, &n, e) < 0)
                return err_wrap(e, "the CDI hook");
        SHA256((const unsigned char *)content, n, hash);
        for (size_t i = 0; i < HASH_BYTES; i++)
                snprintf(name + sizeof HOOK_PREFIX - 1 + 2 * i, 3, "%02x", hash[i]);
        free(*ret);
        *ret = file_join(dir, name);
        /* A file with this name and other content was truncated by a crash of the system. */
        if (!hook_install_holds(*ret, content, n) && file_replace(*ret, content, n, 0755, e) < 0)
                return err_wrap(e, "the CDI hook");
        return 0;
}

struct claim_gc {
        const char *dir, *current, *cdi_root, *prefix;
        const char *name; /* of the copy that is checked */
        bool named, unknown;
};

static int on_cdi_file(void *u, int folder, const char *name, struct err *e) {
        struct claim_gc *s = u;
        if (s->named || s->unknown || !str_starts(name, s->prefix))
                return 0;
        _cleanup_(freep) char *path = file_join(s->cdi_root, name), *text = NULL;
        if (file_read(path, CDI_FILE_MAX, &text, NULL, e) < 0)
                s->unknown = e->kind != ERR_NOT_FOUND;
        else
                s->named = strstr(text, s->name) != NULL;
        return 0;
}

static void remove_copy(const struct claim_gc *s, const char *name, const char *what) {
        _cleanup_(freep) char *path = file_join(s->dir, name);
        struct err why;
        if (file_remove(path, &why) < 0)
                log_warn(what, kv_err(&why));
}

static int on_copy(void *u, int folder, const char *name, struct err *e) {
        struct claim_gc *s = u;
        struct err why;
        if (str_starts(name, "." HOOK_PREFIX) && strstr(name, ".tmp.")) {
                /* A process that is copying at this moment retries. */
                remove_copy(s, name, "cannot remove an incomplete copy of a CDI hook");
                return 0;
        }
        if (!str_starts(name, HOOK_PREFIX) || str_ends(s->current, name))
                return 0;
        s->name = name;
        s->named = s->unknown = false;
        if (file_each(s->cdi_root, on_cdi_file, s, &why) < 0 || s->named || s->unknown)
                return 0;
        remove_copy(s, name, "cannot remove an unused CDI hook");
        return 0;
}

void hook_remove_old(const char *dir, const char *current, const char *cdi_root, const char *kind) {
        _cleanup_(freep) char *prefix = cdi_prefix(kind);
        struct claim_gc s = { .dir = dir, .current = current, .cdi_root = cdi_root, .prefix = prefix };
        struct err e;
        if (file_each(dir, on_copy, &s, &e) < 0)
                log_warn("cannot look for old CDI hooks", kv_err(&e));
}

bool hook_folder_is_noexec(const char *dir) {
        struct statvfs v;
        return statvfs(dir, &v) == 0 && v.f_flag & ST_NOEXEC;
}
