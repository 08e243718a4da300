/* SPDX-License-Identifier: Apache-2.0 */
/* alloc: replaces malloc() in the simulation. A run allocates and frees small objects in one thread, in a
 * process that ends with the run. So this allocator has no locks, merges no blocks, and returns no small
 * blocks to the kernel. With sanitizers, their own allocator stays. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

/* Memory consists of spans of 64 KiB. A span has blocks of one size, or is the first span of a large block.
 */
enum {
        SPAN_BYTES = 64 << 10,
        STEP = 16, /* sizes up to FINE_BYTES are multiples of it, larger ones are powers of two */
        FINE_BYTES = 1024,
        MOST_BYTES = 16 << 10,
        FINE_CLASSES = FINE_BYTES / STEP,
        CLASSES = FINE_CLASSES + 4,
        LARGE = CLASSES,
        KEPT_SPANS = 64, /* larger blocks are returned to the kernel */
        HEAD_BYTES = 32
};
#define RESERVED_BYTES ((size_t)32 << 30)

struct span {
        size_t class, bytes; /* bytes: of a block, or of the whole large block with its head */
        struct span *next;   /* a large block that is free */
};
struct block {
        struct block *next;
};

static struct block *free_blocks[CLASSES];
static struct span *free_large[KEPT_SPANS + 1]; /* by the number of spans */
static char *unused, *unused_end;

static struct span *take_spans(size_t n) {
        if (!unused) {
                char *p = mmap(NULL, RESERVED_BYTES + SPAN_BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
                if (p == MAP_FAILED)
                        return NULL;
                unused = p + (SPAN_BYTES - (uintptr_t)p % SPAN_BYTES);
                unused_end = unused + RESERVED_BYTES;
        }
        if ((size_t)(unused_end - unused) / SPAN_BYTES < n)
                return NULL;
        struct span *s = (struct span *)(void *)unused;
        unused += n * SPAN_BYTES;
        return s;
}

static struct span *span_of(void *p) {
        return (struct span *)(void *)((char *)p - (uintptr_t)p % SPAN_BYTES);
}

static size_t class_of(size_t n) {
        if (n <= FINE_BYTES)
                return n ? (n - 1) / STEP : 0;
        size_t class = FINE_CLASSES;
        for (size_t bytes = 2 * FINE_BYTES; bytes < n; bytes *= 2)
                class ++;
        return class;
}

static size_t bytes_of(size_t class) {
        return class < FINE_CLASSES ? (class + 1) * STEP : (size_t)FINE_BYTES << (class - FINE_CLASSES + 1);
}

static void *fill(size_t class) {
        struct span *s = take_spans(1);
        size_t bytes = bytes_of(class);
        if (!s) {
                errno = ENOMEM;
                return NULL;
        }
        *s = (struct span){ .class = class, .bytes = bytes };
        /* The blocks with the lowest addresses are used first. */
        for (size_t n = (SPAN_BYTES - HEAD_BYTES) / bytes; n-- > 0;) {
                struct block *b = (struct block *)(void *)((char *)s + HEAD_BYTES + n * bytes);
                b->next = free_blocks[class];
                free_blocks[class] = b;
        }
        return free_blocks[class];
}

static void *take_large(size_t n) {
        size_t spans = (n + HEAD_BYTES + SPAN_BYTES - 1) / SPAN_BYTES;
        struct span *s = spans <= KEPT_SPANS ? free_large[spans] : NULL;
        if (n > RESERVED_BYTES)
                s = NULL;
        else if (s)
                free_large[spans] = s->next;
        else
                s = take_spans(spans);
        if (!s) {
                errno = ENOMEM;
                return NULL;
        }
        *s = (struct span){ .class = LARGE, .bytes = spans * SPAN_BYTES };
        return (char *)s + HEAD_BYTES;
}

/* calloc() calls it: the compiler would make a call of calloc() of malloc() and memset(). */
static void *take(size_t n) {
        if (n > MOST_BYTES)
                return take_large(n);
        size_t class = class_of(n);
        struct block *b = free_blocks[class];
        if (!b && !(b = fill(class)))
                return NULL;
        free_blocks[class] = b->next;
        return b;
}

void *malloc(size_t n) {
        return take(n);
}

void free(void *p) {
        if (!p)
                return;
        struct span *s = span_of(p);
        if (s->class < CLASSES) {
                struct block *b = p;
                b->next = free_blocks[s->class];
                free_blocks[s->class] = b;
        } else if (s->bytes <= (size_t)KEPT_SPANS * SPAN_BYTES) {
                s->next = free_large[s->bytes / SPAN_BYTES];
                free_large[s->bytes / SPAN_BYTES] = s;
        } else {
                (void)madvise(s, s->bytes, MADV_DONTNEED);
        }
}

void *calloc(size_t n, size_t size) {
        size_t bytes;
        if (__builtin_mul_overflow(n, size, &bytes)) {
                errno = ENOMEM;
                return NULL;
        }
        void *p = take(bytes);
        return p ? memset(p, 0, bytes) : NULL;
}

void *realloc(void *p, size_t n) {
        if (!p)
                return malloc(n);
        const struct span *s = span_of(p);
        size_t room = s->class < CLASSES ? s->bytes : s->bytes - HEAD_BYTES;
        if (n <= room)
                return p;
        void *fresh = malloc(n);
        if (!fresh)
                return NULL;
        memcpy(fresh, p, room);
        free(p);
        return fresh;
}

/* Larger alignments take a large block, and start in its first span, so that free() finds the span. */
int posix_memalign(void **ret, size_t align, size_t n) {
        if (align <= STEP) {
                *ret = malloc(n);
                return *ret ? 0 : ENOMEM;
        }
        if (align > SPAN_BYTES / 2)
                return ENOMEM;
        char *p = take_large(n + SPAN_BYTES / 2);
        if (!p)
                return ENOMEM;
        *ret = (char *)span_of(p) + (align > HEAD_BYTES ? align : HEAD_BYTES);
        return 0;
}

void *aligned_alloc(size_t align, size_t n) {
        void *p;
        int error = posix_memalign(&p, align, n);
        if (error)
                errno = error;
        return error ? NULL : p;
}

#endif
