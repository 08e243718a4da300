/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <errno.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/stderr.h"

/* For small fixed allocations there is no useful way to continue without memory. The process ends, its
 * supervisor restarts it, and it resumes from its files and the API. */
static _Noreturn void out_of_memory(size_t n) {
        char text[64];
        int k = snprintf(text, sizeof text, "out of memory allocating %zu bytes\n", n);
        if (k > 0)
                stderr_write(text, (size_t)k);
        abort();
}

void *xmalloc(size_t n) {
        void *p = malloc(n ? n : 1);
        if (!p)
                out_of_memory(n);
        return p;
}

void *xcalloc(size_t n, size_t size) {
        void *p = calloc(n ? n : 1, size ? size : 1);
        if (!p)
                out_of_memory(n * size);
        return p;
}

void *xrealloc(void *p, size_t n) {
        p = realloc(p, n ? n : 1);
        if (!p)
                out_of_memory(n);
        return p;
}

static size_t more(size_t cap) {
        return cap ? 2 * cap : 8;
}

void *grow_list(void *list, size_t n, size_t *cap, size_t size) {
        if (n < *cap)
                return list;
        *cap = more(*cap);
        return xrealloc(list, *cap * size);
}

char *xstrndup(const char *s, size_t n) {
        char *p = xmalloc(n + 1);
        memcpy(p, s, n);
        p[n] = '\0';
        return p;
}

void *xcalloc_keyed(size_t size, size_t offset, const char *key) {
        size_t n = strlen(key) + 1;
        char *p = xcalloc(1, size + n);
        memcpy(p + offset, key, n);
        return p;
}

char *xstrdup(const char *s) {
        return xstrndup(s, strlen(s));
}

char *xstrdup_or_null(const char *s) {
        return s ? xstrdup(s) : NULL;
}

char *xasprintf(const char *fmt, ...) {
        char *s;
        va_list ap;
        va_start(ap, fmt);
        int n = vasprintf(&s, fmt, ap);
        va_end(ap);
        if (n < 0)
                out_of_memory(strlen(fmt));
        return s;
}

void wipe(char *secret) {
        /* explicit_bzero() does the same, but macOS lacks it. */
        for (volatile char *p = secret; p && *p; p++)
                *p = '\0';
        free(secret);
}

void freep(void *p) {
        free(*(void **)p);
}

void closep(int *fd) {
        if (*fd < 0)
                return;
        int saved = errno;
        close(*fd);
        errno = saved;
}

struct block {
        struct block *next;
        uint32_t used, size;
        alignas(uint64_t) unsigned char bytes[];
};

struct arena {
        struct block *newest;
};

/* With AddressSanitizer, the bytes after each allocation are poisoned. Otherwise a list that grows beyond its
 * end would write into the next one, and the sanitizer would see one valid block. */
#if defined __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
enum { REDZONE = 16 };
#else
enum { REDZONE = 0 };
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum { ARENA_MIN_BLOCK = 128, ARENA_ALIGN = alignof(uint64_t) };

static struct block *block_new(size_t size) {
        BUG_ON(size > UINT32_MAX);
        struct block *b = xmalloc(sizeof(struct block) + size);
        *b = (struct block){ .size = (uint32_t)size };
        ASAN_POISON_MEMORY_REGION(b->bytes, size);
        return b;
}

/* The arena's own header is in its first block, so a small object costs one allocation. */
struct arena *arena_new(size_t hint) {
        const size_t head = (sizeof(struct arena) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
        struct block *b = block_new(head + (hint < ARENA_MIN_BLOCK ? ARENA_MIN_BLOCK : hint));
        struct arena *a = (struct arena *)(void *)b->bytes;
        ASAN_UNPOISON_MEMORY_REGION(a, sizeof *a);
        b->used = (uint32_t)head;
        a->newest = b;
        return a;
}

void arena_free(struct arena *a) {
        if (!a)
                return;
        /* The arena itself is in the last block of the list. */
        for (struct block *b = a->newest, *next; b; b = next) {
                next = b->next;
                free(b);
        }
}

void arena_freep(struct arena **a) {
        arena_free(*a);
}

static void *alloc_aligned(struct arena *a, size_t n, size_t align) {
        struct block *b = a->newest;
        size_t used = ((size_t)b->used + align - 1) / align * align;
        if (used > b->size || b->size - used < n) {
                size_t size = b->size > 2048 ? 4096 : b->size * 2;
                struct block *fresh = block_new(size < n ? n : size);
                fresh->next = b;
                a->newest = b = fresh;
                used = 0;
        }
        void *p = b->bytes + used;
        ASAN_UNPOISON_MEMORY_REGION(p, n);
        used += n + REDZONE;
        b->used = used < b->size ? (uint32_t)used : b->size;
        return p;
}

void *arena_alloc(struct arena *a, size_t n) {
        return memset(alloc_aligned(a, n, ARENA_ALIGN), 0, n);
}

size_t arena_used(const struct arena *a) {
        size_t n = 0;
        for (const struct block *b = a->newest; b; b = b->next)
                n += b->used;
        return n;
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
        char *p = alloc_aligned(a, n + 1, 1);
        memcpy(p, s, n);
        p[n] = '\0';
        return p;
}

char *arena_strdup(struct arena *a, const char *s) {
        return arena_strndup(a, s, strlen(s));
}

char *arena_strdup_or_null(struct arena *a, const char *s) {
        return s ? arena_strdup(a, s) : NULL;
}

const char **arena_strdups(struct arena *a, const char *const *list) {
        size_t n = 0;
        while (list && list[n])
                n++;
        const char **copy = arena_alloc(a, (n + 1) * sizeof *copy);
        for (size_t i = 0; i < n; i++)
                copy[i] = arena_strdup(a, list[i]);
        return copy;
}

void *arena_grow_list(struct arena *a, const void *list, size_t n, size_t *cap, size_t size) {
        if (n < *cap)
                return (void *)(uintptr_t)list;
        size_t old = *cap;
        *cap = more(old);
        void *grown = arena_alloc(a, *cap * size);
        return old ? memcpy(grown, list, old * size) : grown;
}

char *arena_printf(struct arena *a, const char *fmt, ...) {
        _cleanup_(freep) char *s = NULL;
        va_list ap;
        va_start(ap, fmt);
        if (vasprintf(&s, fmt, ap) < 0)
                out_of_memory(strlen(fmt));
        va_end(ap);
        return arena_strdup(a, s);
}
