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
        assert_false(str_to_i64(STR("1/"), &v) || str_to_i64(STR("1:"), &v));
        assert_true(str_to_i64(STR("1029"), &v) && v == 1029);
        assert_true(str_to_i64((struct str){ "123", 2 }, &v) && v == 12);
}

static void texts_are_equal_if_each_byte_is(void **state) {
        assert_true(str_eq(STR("a"), STR("a")) && str_eq(STR("ab"), STR("ab")));
        assert_false(str_eq(STR("a"), STR("b")) || str_eq(STR("ab"), STR("ac")) ||
                     str_eq(STR("a"), STR("ab")));
        assert_true(str_eq((struct str){ NULL, 0 }, STR("")) && str_eq(STR(""), (struct str){ NULL, 0 }));
}

static void blank_space_is_trimmed_at_both_ends(void **state) {
        assert_true(str_eq(str_trim(STR(" \t\n\v\f\ra b\r\f\v\n\t ")), STR("a b")));
        assert_int_equal(str_trim(STR(" \t\r")).n, 0);
        static const char *const kept[] = { "\b", "\x0e", "\x1f", "!" };
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                assert_int_equal(str_trim(str_from(kept[i])).n, 1);
}

/* The words of Go's strconv.ParseBool. */
static void a_truth_value_has_the_words_of_go(void **state) {
        static const char *const words[][2] = {
                { "1", "0" },        { "t", "f" },        { "T", "F" },
                { "true", "false" }, { "TRUE", "FALSE" }, { "True", "False" }
        };
        bool v;
        for (size_t i = 0; i < ARRAY_LEN(words); i++) {
                v = false;
                assert_true(str_to_bool(str_from(words[i][0]), &v) && v);
                assert_true(str_to_bool(str_from(words[i][1]), &v) && !v);
        }
        assert_false(str_to_bool(STR(""), &v) || str_to_bool(STR("yes"), &v) ||
                     str_to_bool(STR("true "), &v));
}

static void a_suffix_is_the_end_of_a_text(void **state) {
        const char text[] = "a.json";
        assert_true(str_ends(text, ".json") && str_ends(text, text) && str_ends(text, ""));
        assert_false(str_ends(text + 1, text)); /* the text before it does not count */
        assert_false(str_ends("a.jsom", ".json") || str_ends("a.jsoo", ".json") || str_ends(NULL, ""));
}

/* The published vectors of FNV-1a. */
static void a_hash_is_fnv_1a(void **state) {
        assert_int_equal(str_fnv64("", 0), 0xcbf29ce484222325);
        assert_int_equal(str_fnv64("a", 1), 0xaf63dc4c8601ec8c);
        assert_int_equal(str_fnv64("foobar", 6), 0x85944171f73967e8);
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
        assert_true(str_is_dns_label("az09") && str_is_dns_label("9z") && str_is_dns_label("0-0"));
        static const char *const neither[] = { NULL,  "",   "-a",  "a-",  "A",    "a_b",  "a/b",
                                               "a b", ".",  ".a",  "a.",  "a..b", "a.-b", "\xc3\xa4",
                                               "a\n", "a`", "a{b", "a:b", "/a" };
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
        char text[] = "09afAF2d-12a8-47f7-b55b-fdcbcf4e35d0";
        assert_true(str_is_uuid(text));
        static const char no_digits[] = "/:@G`g";
        for (size_t i = 0; i + 1 < sizeof no_digits; i++) {
                text[35] = no_digits[i];
                assert_false(str_is_uuid(text));
        }
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
        buf_add(&b, "12345", 5); /* exactly the limit, at once */
        assert_false(b.failed);
        buf_clear(&b);
        buf_add(&b, "123456", 6);
        assert_true(b.failed);
        assert_int_equal(b.n, 0);
        buf_done(&b);
}

static void a_buf_grows_at_each_length(void **state) {
        static const char digits[] = "0123456789012345678901234567890123456789012345678901234567890123456789";
        char want[301] = "";
        for (int n = 0; n <= 300; n++) {
                struct buf once = BUF_INIT(1000), slowly = BUF_INIT(1000), formatted = BUF_INIT(1000);
                memset(want, 'x', (size_t)n);
                buf_adds(&once, want);
                for (int i = 0; i < n; i++)
                        buf_addc(&slowly, 'x');
                buf_addc(&formatted, 'x'); /* allocates room */
                buf_addf(&formatted, "%.*s", n ? n - 1 : 0, want);
                assert_string_equal(buf_str(&once), want);
                assert_string_equal(buf_str(&slowly), want);
                assert_int_equal(strlen(buf_str(&formatted)), n ? n : 1);
                assert_false(once.failed || slowly.failed || formatted.failed);
                buf_done(&once);
                buf_done(&slowly);
                buf_done(&formatted);
        }
        struct buf b = BUF_INIT(1000);
        buf_addf(&b, "%s", ""); /* an empty text is no failure */
        assert_false(b.failed);
        buf_adds(&b, digits);
        buf_consume(&b, 0);
        assert_string_equal(buf_str(&b), digits);
        buf_consume(&b, sizeof digits - 2);
        assert_string_equal(buf_str(&b), "9");
        buf_consume(&b, 1);
        assert_int_equal(b.n, 0);
        buf_adds(&b, "ab");
        buf_consume(&b, 3);
        assert_int_equal(b.n, 0);
        buf_done(&b);
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
                                            "\x7f",
                                            "\xc2\x80",
                                            "\xdf\xbf",
                                            "\xe0\xa0\x80",
                                            "\xed\x9f\xbf",
                                            "\xee\x80\x80",
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
                                           "\xed\xbf\xbf",
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

static void a_text_is_cut_before_the_character_that_does_not_fit(void **state) {
        static const struct {
                const char *text;
                size_t n, cut;
        } cases[] = {
                { "", 0, 0 },
                { "abc", 2, 2 },
                { "abc", 3, 3 },
                { "abc", 9, 3 },
                { "\xc3\xa9x", 1, 0 },
                { "\xc3\xa9x", 2, 2 },
                { "a\xe2\x82\xac", 3, 1 },
                { "\xf0\x9f\x98\x80x", 1, 0 },
                { "\xf0\x9f\x98\x80x", 2, 0 },
                { "\xf0\x9f\x98\x80x", 3, 0 },
                { "\xf0\x9f\x98\x80x", 4, 4 },
                /* Bytes that are not a part of a character are cut anywhere. */
                { "\xc3\xa9\x80", 2, 2 },
                { "\x80\x80\x80\x80\x80", 1, 1 },
                { "\x80\x80\x80\x80\x80", 4, 4 },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                /* No byte precedes or follows the text. */
                size_t n = strlen(cases[i].text);
                char *exact = memcpy(xmalloc(n + !n), cases[i].text, n);
                if (str_utf8_cut((struct str){ exact, n }, cases[i].n) != cases[i].cut)
                        fail_msg("case %zu: %zu", i, str_utf8_cut((struct str){ exact, n }, cases[i].n));
                free(exact);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(cuts_lines_with_and_without_a_final_newline),
                cmocka_unit_test(cuts_fields_keeping_empty_ones),
                cmocka_unit_test(reads_whole_numbers_only),
                cmocka_unit_test(texts_are_equal_if_each_byte_is),
                cmocka_unit_test(blank_space_is_trimmed_at_both_ends),
                cmocka_unit_test(a_truth_value_has_the_words_of_go),
                cmocka_unit_test(a_suffix_is_the_end_of_a_text),
                cmocka_unit_test(a_hash_is_fnv_1a),
                cmocka_unit_test(names_are_valid_where_kubernetes_accepts_them),
                cmocka_unit_test(a_uid_is_a_uuid_and_nothing_else),
                cmocka_unit_test(a_buf_stops_at_its_limit_and_stays_failed),
                cmocka_unit_test(a_buf_grows_at_each_length),
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
                cmocka_unit_test(a_text_is_cut_before_the_character_that_does_not_fit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
