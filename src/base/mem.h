/* SPDX-License-Identifier: Apache-2.0 */
/* mem: allocates memory (and ends the process when memory is out), frees it at the end of a scope, and
 * provides arenas.
 *
 * Ownership has three forms: scope (_cleanup_ and TAKE), arena (everything decoded from one object is freed
 * together) and reference (objects of a cache). Callers check a size from outside the program against a limit
 * before they allocate. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrdup_or_null(const char *s); /* NULL returns NULL */
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
void wipe(char *secret); /* overwrites and frees a text that must not stay in memory; NULL is allowed */
char *xasprintf(const char *fmt, ...) __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/* Makes room for one more element in a list with `n` elements and room for `cap` elements (NULL and 0 at
 * first). If the list is full, its room is doubled, and `list` and `cap` are updated. */
#define GROW(list, n, cap) ((list) = grow_list((list), (n), &(cap), sizeof *(list)))
void *grow_list(void *list, size_t n, size_t *cap, size_t size) __attribute__((returns_nonnull));

#define xnew(type) ((type *)xcalloc(1, sizeof(type)))
#define xnew_n(type, n) ((type *)xcalloc((n), sizeof(type)))
/* A struct whose last member, `char member[]`, has a copy of the text `key`. */
#define xnew_keyed(type, member, key) ((type *)xcalloc_keyed(sizeof(type), offsetof(type, member), (key)))
void *xcalloc_keyed(size_t size, size_t offset, const char *key) __attribute__((malloc, returns_nonnull));

/* _cleanup_(freep) char *s = NULL;   The variable must be initialised in its declaration. */
#define _cleanup_(fn) __attribute__((cleanup(fn)))
void freep(void *p);  /* free(*(void **)p) */
void closep(int *fd); /* close(*fd) when >= 0; keeps errno */
#define TAKE(p)                                                                                              \
        (__extension__({                                                                                     \
                __typeof__(p) take_ = (p);                                                                   \
                (p) = NULL;                                                                                  \
                take_;                                                                                       \
        }))
#define TAKE_FD(fd)                                                                                          \
        (__extension__({                                                                                     \
                int take_ = (fd);                                                                            \
                (fd) = -1;                                                                                   \
                take_;                                                                                       \
        }))

/* The object that contains an embedded member. */
#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* An arena allocates memory that is released all at once. arena_new(hint) creates an arena with a first block
 * of about `hint` bytes; arena_free(NULL) is allowed. Memory is zeroed and aligned for pointers and integers.
 */
struct arena;
struct arena *arena_new(size_t hint);
void arena_free(struct arena *a);
void arena_freep(struct arena **a);
void *arena_alloc(struct arena *a, size_t n) __attribute__((returns_nonnull));
size_t arena_used(const struct arena *a); /* allocated bytes, including alignment */
char *arena_strdup(struct arena *a, const char *s) __attribute__((returns_nonnull));
char *arena_strdup_or_null(struct arena *a, const char *s); /* NULL returns NULL */
char *arena_strndup(struct arena *a, const char *s, size_t n) __attribute__((returns_nonnull));
/* Copies a NULL-terminated list including its strings; NULL returns an empty list. */
const char **arena_strdups(struct arena *a, const char *const *list) __attribute__((returns_nonnull));
/* Like GROW, for a list in an arena. The old list stays allocated as well. */
#define ARENA_GROW(a, list, n, cap) ((list) = arena_grow_list((a), (list), (n), &(cap), sizeof *(list)))
void *arena_grow_list(struct arena *a, const void *list, size_t n, size_t *cap, size_t size)
        __attribute__((returns_nonnull));
char *arena_printf(struct arena *a, const char *fmt, ...)
        __attribute__((returns_nonnull, format(printf, 2, 3)));
