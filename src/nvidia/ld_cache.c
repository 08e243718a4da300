/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/ld_cache.h"

#include <endian.h>
#include <string.h>

/* The format of glibc's cache. Its numbers have the machine's byte order, and amd64 and arm64 are
 * little-endian. */
static const char old_magic[] = "ld.so-1.7.0", new_magic[] = "glibc-ld.so.cache1.1";
enum {
        OLD_HEADER = 16, /* magic, and the number of entries of 12 bytes at 12 */
        OLD_ENTRY = 12,
        NEW_HEADER = 48, /* magic, the number of entries at 20 */
        NEW_ENTRY = 24,  /* flags, then the offsets of name and path from the header */
        ALIGN = 8,
};

static uint32_t u32_at(struct str s, size_t at) {
        uint32_t v;
        memcpy(&v, s.p + at, sizeof v);
        return le32toh(v);
}

static bool begins(struct str s, const char *magic) {
        return s.n >= strlen(magic) && memcmp(s.p, magic, strlen(magic)) == 0;
}

/* Skips the part for old loaders. */
static bool skip_old(struct str *cache) {
        if (!begins(*cache, old_magic))
                return true;
        if (cache->n < OLD_HEADER)
                return false;
        uint64_t skip = OLD_HEADER + (uint64_t)u32_at(*cache, 12) * OLD_ENTRY;
        skip = (skip + ALIGN - 1) / ALIGN * ALIGN;
        if (skip > cache->n)
                return false;
        cache->p += skip;
        cache->n -= (size_t)skip;
        return true;
}

static bool ld_cache_text_at(struct str cache, uint32_t at, struct str *ret) {
        const char *end = at < cache.n ? memchr(cache.p + at, '\0', cache.n - at) : NULL;
        if (!end)
                return false;
        *ret = (struct str){ cache.p + at, (size_t)(end - cache.p) - at };
        return true;
}

bool ld_cache_next(struct str cache, const char *name, size_t *at, struct str *ret_path) {
        if (!skip_old(&cache) || !begins(cache, new_magic) || cache.n < NEW_HEADER)
                return false;
        size_t n = u32_at(cache, strlen(new_magic)), room = (cache.n - NEW_HEADER) / NEW_ENTRY;
        while (*at < n && *at < room) {
                size_t entry = NEW_HEADER + (*at)++ * NEW_ENTRY;
                struct str key;
                if (ld_cache_text_at(cache, u32_at(cache, entry + 4), &key) && str_eq(key, str_from(name)) &&
                    ld_cache_text_at(cache, u32_at(cache, entry + 8), ret_path) && ret_path->n &&
                    ret_path->p[0] == '/')
                        return true;
        }
        return false;
}
