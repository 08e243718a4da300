/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's cache at the limits of its format. */
#include "nvidia/ld_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"

#define NEW "glibc-ld.so.cache1.1"
#define OLD "ld.so-1.7.0"
enum { HEADER = 48, ENTRY = 24 };

static void put_u32(char *to, uint32_t v) {
        for (int i = 0; i < 4; i++)
                to[i] = (char)(v >> 8 * i);
}

/* Writes a cache with room for `entries` entries of the library "a" with the path "/b", and states `count`.
 */
static size_t make_cache(char *to, uint32_t count, uint32_t entries) {
        uint32_t text = HEADER + entries * ENTRY;
        memset(to, 0, text);
        memcpy(to, NEW, strlen(NEW));
        put_u32(to + strlen(NEW), count);
        for (uint32_t i = 0; i < entries; i++) {
                put_u32(to + HEADER + i * ENTRY + 4, text);
                put_u32(to + HEADER + i * ENTRY + 8, text + 2);
        }
        memcpy(to + text, "a\0/b", 5);
        return text + 5;
}

/* The number of paths. The sanitizer finds a byte that is read behind the cache. */
static unsigned paths(const char *cache, size_t n) {
        char *exact = malloc(n);
        struct str path;
        size_t at = 0;
        unsigned found = 0;
        memcpy(exact, cache, n);
        while (ld_cache_next((struct str){ exact, n }, "a", &at, &path)) {
                assert_int_equal(path.n, 2);
                assert_memory_equal(path.p, "/b", 2);
                found++;
        }
        free(exact);
        return found;
}

static void only_the_entries_of_the_count_are_read(void **state) {
        char cache[256];
        assert_int_equal(paths(cache, make_cache(cache, 1, 1)), 1);
        assert_int_equal(paths(cache, make_cache(cache, 2, 2)), 2);
        assert_int_equal(paths(cache, make_cache(cache, 1, 2)), 1);
        assert_int_equal(paths(cache, make_cache(cache, 2, 1)), 1);
        assert_int_equal(paths(cache, make_cache(cache, UINT32_MAX, 1)), 1);
}

static void a_truncated_cache_has_no_paths(void **state) {
        char cache[256];
        size_t n = make_cache(cache, 1, 1);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(paths(cache, i), 0);
}

static void the_part_for_old_loaders_is_skipped(void **state) {
        char cache[256] = OLD;
        size_t n = make_cache(cache + 32, 1, 1);
        put_u32(cache + 12, 1); /* 28 bytes, aligned to 32 */
        assert_int_equal(paths(cache, 32 + n), 1);
        for (size_t i = 0; i <= 32; i++)
                assert_int_equal(paths(cache, i), 0);
        put_u32(cache + 12, UINT32_MAX);
        assert_int_equal(paths(cache, 32 + n), 0);
}

static void a_relative_path_is_ignored(void **state) {
        static const char others[] = ".0";
        char cache[256];
        size_t n = make_cache(cache, 1, 1);
        for (size_t i = 0; others[i]; i++) {
                cache[n - 3] = others[i];
                assert_int_equal(paths(cache, n), 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_entries_of_the_count_are_read),
                cmocka_unit_test(a_truncated_cache_has_no_paths),
                cmocka_unit_test(the_part_for_old_loaders_is_skipped),
                cmocka_unit_test(a_relative_path_is_ignored),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
