/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

static void cuts_lines_with_and_without_a_final_newline(void **state) {
        (void)state;
        struct str rest = STR("a\n\nb"), line;
        assert_true(str_next_line(&rest, &line) && str_eq(line, STR("a")));
        assert_true(str_next_line(&rest, &line) && line.n == 0);
        assert_true(str_next_line(&rest, &line) && str_eq(line, STR("b")));
        assert_false(str_next_line(&rest, &line));
}

static void cuts_fields_keeping_empty_ones(void **state) {
        (void)state;
        struct str rest = STR("a=1,,b="), f;
        assert_true(str_next_field(&rest, ',', &f) && str_eq(f, STR("a=1")));
        assert_true(str_next_field(&rest, ',', &f) && f.n == 0);
        assert_true(str_next_field(&rest, ',', &f) && str_eq(f, STR("b=")));
        assert_false(str_next_field(&rest, ',', &f));
}

static void reads_whole_numbers_only(void **state) {
        (void)state;
        int64_t v;
        assert_true(str_to_i64(STR("9223372036854775807"), &v) && v == INT64_MAX);
        assert_true(str_to_i64(STR("-7"), &v) && v == -7);
        assert_false(str_to_i64(STR("9223372036854775808"), &v));
        assert_false(str_to_i64(STR(""), &v));
        assert_false(str_to_i64(STR("-"), &v));
        assert_false(str_to_i64(STR("1 "), &v));
        assert_false(str_to_i64(STR("0x1"), &v));
}

static void names_are_valid_where_kubernetes_accepts_them(void **state) {
        char longest[255];
        (void)state;
        memset(longest, 'a', 254);
        longest[253] = '\0';
        assert_true(str_is_dns_subdomain("a") && str_is_dns_subdomain("0-a.b.c9") &&
                    str_is_dns_subdomain(longest));
        assert_true(str_is_dns_label("a") && str_is_dns_label("kube-system") &&
                    str_is_dns_label(longest + 253 - 63));
        longest[253] = 'a';
        longest[254] = '\0';
        assert_false(str_is_dns_subdomain(longest) || str_is_dns_label(longest + 254 - 64) ||
                     str_is_dns_label("a.b"));
        static const char *const neither[] = { NULL, "",   "-a", "a-",   "A",    "a_b",      "a/b", "a b",
                                               ".",  ".a", "a.", "a..b", "a.-b", "\xc3\xa4", "a\n" };
        for (size_t i = 0; i < ARRAY_LEN(neither); i++)
                assert_false(str_is_dns_subdomain(neither[i]) || str_is_dns_label(neither[i]));
}

static void a_uid_is_a_uuid_and_nothing_else(void **state) {
        (void)state;
        assert_true(str_is_uuid("e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d8"));
        assert_false(str_is_uuid(""));
        assert_false(str_is_uuid(NULL));
        assert_false(str_is_uuid("../../../../../../../../../../etc/pwd"));
        assert_false(str_is_uuid("e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d8/"));
        assert_false(str_is_uuid("e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d"));
        assert_false(str_is_uuid("e6d3a22d012a8-47f7-b55b-fdcbcf4e35d8"));
}

static void a_buf_stops_at_its_limit_and_stays_failed(void **state) {
        (void)state;
        struct buf b = BUF_INIT(5);
        buf_adds(&b, "abc");
        buf_addf(&b, "%d", 12);
        assert_false(b.failed);
        buf_addc(&b, 'x');
        assert_true(b.failed);
        buf_adds(&b, "");
        assert_string_equal(buf_str(&b), "abc12");
        buf_clear(&b);
        assert_false(b.failed);
        buf_adds(&b, "hello");
        buf_consume(&b, 2);
        assert_string_equal(buf_str(&b), "llo");
        _cleanup_(freep) char *s = buf_steal(&b);
        assert_string_equal(s, "llo");
        assert_string_equal(buf_str(&b), "");
}

static void a_field_is_found_in_a_list(void **state) {
        (void)state;
        assert_true(str_lists("a", "a"));
        assert_true(str_lists("a, b,c", "b"));
        assert_true(str_lists("a,b,c ", "c"));
        assert_false(str_lists("ab,c", "a"));
        assert_false(str_lists("", "a"));
        assert_false(str_lists("a,b", "a,b"));
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

/* A write beyond a list in an arena is noticed, although the block continues. */
static void the_sanitizer_notices_writes_beyond_an_allocation_of_an_arena(void **state) {
        struct arena *a = arena_new(4096);
        for (size_t n = 1; n < 100; n++) {
                char *p = n % 2 ? arena_alloc(a, n) : arena_strndup(a, "0123456789", n < 10 ? n - 1 : 9);
                size_t size = n % 2 ? n : n < 10 ? n : 10;
                assert_null(__asan_region_is_poisoned(p, size));
                assert_true(__asan_address_is_poisoned(p + size));
                assert_true(__asan_address_is_poisoned(p + size + 7));
        }
        arena_free(a);
}
#endif

static void an_arena_zeroes_aligns_and_grows(void **state) {
        (void)state;
        struct arena *a = arena_new(16);
        for (size_t i = 1; i < 3000; i += 37) {
                char *p = arena_alloc(a, i);
                assert_int_equal((uintptr_t)p % _Alignof(int64_t), 0);
                for (size_t k = 0; k < i; k++)
                        assert_int_equal(p[k], 0);
                memset(p, 0xff, i);
        }
        assert_string_equal(arena_strdup(a, "text"), "text");
        arena_free(a);
        arena_free(NULL);
}

static void a_list_of_strings_is_copied_with_its_strings(void **state) {
        (void)state;
        struct arena *a = arena_new(16);
        char first[] = "a";
        const char *const list[] = { first, "b", NULL };
        const char **copy = arena_strdups(a, list);
        first[0] = 'x';
        assert_string_equal(copy[0], "a");
        assert_string_equal(copy[1], "b");
        assert_null(copy[2]);
        assert_null(arena_strdups(a, NULL)[0]);
        arena_free(a);
}

static void a_full_list_grows(void **state) {
        (void)state;
        struct arena *a = arena_new(16);
        int *own = NULL, *in_arena = NULL;
        size_t own_cap = 0, arena_cap = 0;
        for (int i = 0; i < 100; i++) {
                GROW(own, (size_t)i, own_cap);
                ARENA_GROW(a, in_arena, (size_t)i, arena_cap);
                own[i] = in_arena[i] = i;
        }
        for (int i = 0; i < 100; i++)
                assert_true(own[i] == i && in_arena[i] == i);
        assert_int_equal(own_cap, 128);
        assert_int_equal(arena_cap, 128);
        free(own);
        arena_free(a);
}

static void errors_gain_context_on_their_way_up(void **state) {
        (void)state;
        struct err e = { 0 };
        assert_int_equal(err_errno(&e, ENOENT, "open '%s'", "/x"), -1);
        assert_int_equal(err_wrap(&e, "claim '%s'", "a/b"), -1);
        assert_string_equal(e.msg, "claim 'a/b': open '/x': No such file or directory");
        assert_int_equal(e.kind, ERR_NOT_FOUND);
}

/* The cause and the remedy are at the end of the text, and the place at its beginning. */
/* failure: an error message is too long -> its cause and its remedy remain */
static void a_text_that_is_too_long_loses_its_middle(void **state) {
        struct err e = { 0 };
        char big[3000];
        memset(big, 'x', sizeof big - 1);
        big[sizeof big - 1] = '\0';
        err_set(&e, ERR_INVALID, 0, "the root cause: %s; do this", "it broke");
        for (int i = 0; i < 100; i++)
                err_wrap(&e, "a layer that adds context, number %d", i);
        assert_true(str_starts(e.msg, "a layer that adds context, number 99: "));
        assert_true(str_ends(e.msg, "the root cause: it broke; do this"));
        err_wrap(&e, "%s", big);
        assert_true(str_starts(e.msg, "xxxx"));
        assert_true(str_ends(e.msg, "the root cause: it broke; do this"));
        assert_non_null(strstr(e.msg, " ... "));
        err_set(&e, ERR_INVALID, 0, "begin %s end", big);
        assert_true(str_starts(e.msg, "begin xxx") && str_ends(e.msg, "xxx end"));
        err_errno(&e, ENOENT, "open '%s'", big);
        assert_true(str_starts(e.msg, "open 'xxx") && str_ends(e.msg, "xxx': No such file or directory"));
        assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
}

/* failure: an error message is too long -> it is cut between characters */
static void a_text_is_cut_between_characters(void **state) {
        struct err e;
        char text[3001];
        for (size_t shift = 0; shift < 4; shift++) {
                memset(text, 'x', shift);
                for (size_t i = shift; i + 4 < sizeof text; i += 4)
                        memcpy(text + i, "\xf0\x9f\x98\x80", 5);
                err_set(&e, ERR_INVALID, 0, "%s", text);
                struct str rest = str_from(e.msg);
                for (size_t n; rest.n; rest.p += n, rest.n -= n)
                        assert_true((n = str_utf8_char(rest)) > 0);
                err_wrap(&e, "%s", text);
                for (rest = str_from(e.msg); rest.n;) {
                        size_t n = str_utf8_char(rest);
                        assert_true(n > 0);
                        rest = (struct str){ rest.p + n, rest.n - n };
                }
        }
}

static void characters_follow_utf_8(void **state) {
        static const char *const good[] = { "a",
                                            "\xc2\x80",
                                            "\xdf\xbf",
                                            "\xe0\xa0\x80",
                                            "\xed\x9f\xbf",
                                            "\xef\xbf\xbd",
                                            "\xf0\x90\x80\x80",
                                            "\xf4\x8f\xbf\xbf" };
        static const char *const bad[] = { "",
                                           "\x80",
                                           "\xc0\x80",
                                           "\xc1\xbf",
                                           "\xc3",
                                           "\xc3(",
                                           "\xe0\x9f\xbf",
                                           "\xed\xa0\x80",
                                           "\xe2\x82",
                                           "\xf0\x8f\xbf\xbf",
                                           "\xf4\x90\x80\x80",
                                           "\xf5\x80\x80\x80",
                                           "\xff" };
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                assert_int_equal(str_utf8_char(str_from(good[i])), strlen(good[i]));
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_int_equal(str_utf8_char(str_from(bad[i])), 0);
        assert_int_equal(str_utf8_char((struct str){ "\xe2\x82\xac", 2 }),
                         0); /* the end of the text comes first */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(cuts_lines_with_and_without_a_final_newline),
                cmocka_unit_test(cuts_fields_keeping_empty_ones),
                cmocka_unit_test(reads_whole_numbers_only),
                cmocka_unit_test(names_are_valid_where_kubernetes_accepts_them),
                cmocka_unit_test(a_uid_is_a_uuid_and_nothing_else),
                cmocka_unit_test(a_buf_stops_at_its_limit_and_stays_failed),
                cmocka_unit_test(a_field_is_found_in_a_list),
                cmocka_unit_test(an_arena_zeroes_aligns_and_grows),
#ifdef __SANITIZE_ADDRESS__
                cmocka_unit_test(the_sanitizer_notices_writes_beyond_an_allocation_of_an_arena),
#endif
                cmocka_unit_test(a_list_of_strings_is_copied_with_its_strings),
                cmocka_unit_test(a_full_list_grows),
                cmocka_unit_test(errors_gain_context_on_their_way_up),
                cmocka_unit_test(a_text_that_is_too_long_loses_its_middle),
                cmocka_unit_test(a_text_is_cut_between_characters),
                cmocka_unit_test(characters_follow_utf_8),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
