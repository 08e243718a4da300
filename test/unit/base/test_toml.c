/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/toml.h"

enum { UNSET = -1, BROKEN = -2 };

static struct err e;

static int answer(const char *text) {
        bool there = false, value = false;
        /* No byte follows the text, not even the 0 of a string. */
        size_t n = strlen(text);
        char *exact = n ? memcpy(xcalloc(1, n), text, n) : NULL;
        int r = toml_bool((struct str){ exact, n }, "features", "ignore", &there, &value, &e);
        free(exact);
        return r < 0 ? BROKEN : there ? value : UNSET;
}

static void a_setting_in_all_its_spellings(void **state) {
        (void)state;
        static const char *const on[] = {
                "[features]\nignore = true\n",
                "[features]\r\nignore = true\r\n",
                "features.ignore = true",
                "features = { ignore = true }",
                "features = { other = 1, ignore = true, more = [1, 2] } # why\n",
                "[ features ] # here\n\"ignore\"\t=\ttrue # because\n",
                "['features']\n'ignore' = true",
                "[\"fe\\u0061tures\"]\n\"\\U00000069gnore\" = true",
                "\xef\xbb\xbf[features]\nother = false\nignore = true\n[next]\nignore = false",
                "x = \"\"\"\n[features]\nignore = false\n\"\"\"\n[features]\nignore = true",
                "[features] # with a\ttab\r\nignore = true # and no end of the line",
                "a-b_c.\"d e\" = 'a\tb'\n[features]\nignore = true",
        };
        for (size_t i = 0; i < ARRAY_LEN(on); i++) {
                if (answer(on[i]) != true)
                        fail_msg("case %zu: %d %s", i, answer(on[i]), e.msg);
        }
        assert_int_equal(answer("[features]\nignore = false"), false);
}

static void similar_text_is_not_the_setting(void **state) {
        (void)state;
        static const char *const other[] = {
                "",
                "\n# ignore = true\n",
                "ignore = true",
                "[features]\n#ignore = true",
                "[features]\nignores = true",
                "[features.ignore]\nignore = true",
                "[other.features]\nignore = true",
                "[[features]]\nignore = true",
                "[features]\nx = '''\nignore = true\n'''",
                "[features]\nx = \"\\nignore = true\"",
                "x = [ { features = { ignore = true } } ]",
                "[features]\n\"features.ignore\" = true",
                "[features]\nignore.ignore = true",
        };
        for (size_t i = 0; i < ARRAY_LEN(other); i++) {
                if (answer(other[i]) != UNSET)
                        fail_msg("case %zu: %d %s", i, answer(other[i]), e.msg);
        }
}

static void an_error_names_its_line(void **state) {
        (void)state;
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { "[features]\nignore = yes", "line 2: a value was expected" },
                { "[features]\nignore = \"true\"", "line 2: the setting is neither" },
                { "[features]\nignore = trues", "line 2: a value was expected" },
                { "[features]\nignore = true\nignore = true", "line 3: the setting occurs twice" },
                { "[features]\nignore = true x", "line 2: text after a value" },
                { "[features]\nignore", "line 2: a key without '='" },
                { "[features\nignore = true", "line 1: a table name without its end" },
                { "[features]\n= true", "line 2: a key was expected" },
                { "x = ", "line 1: a value was expected" },
                { "x =", "line 1: a value was expected" },
                { "x = -", "line 1: a value was expected" },
                { "x = maybe", "line 1: a value was expected" },
                { "x = \"abc", "line 1: a string without its end" },
                { "x = \"a\nb\"", "line 1: a string without its end" },
                { "x = '''a\nb", "line 2: a string without its end" },
                { "x = \"\\q\"", "line 1: an escape that TOML does not have" },
                { "x = \"\\u12g4\"", "line 1: an escape without its digits" },
                { "x = \"\\ud800\"", "line 1: an escape of no character" },
                { "x = [1 2]", "line 1: a list without its end" },
                { "x = [1,\n2", "line 2: a list without its end" },
                { "x = { a = 1", "line 1: a table without its end" },
                { "# \x01", "line 1: a control character in a comment" },
                { "x = 1 # \x1f", "line 1: a control character in a comment" },
                { "x = [ # \x7f\n]", "line 1: a control character in a comment" },
                { "x = [ 1\n# \x01\n]", "line 2: a control character in a comment" },
                { "x = \"\x1f\"", "line 1: a string without its end" },
                { "x = '\x7f'", "line 1: a string without its end" },
                { "x = \"\"\"a\"\"\"\"\"\"", "line 1: text after a value" },
                { "x = { a }", "line 1: a key without '='" },
                { "x = [ maybe ]", "line 1: a value was expected" },
                { "[]", "line 1: a key was expected" },
                { "x = \"\\udfff\"", "line 1: an escape of no character" },
                { "x = \"\\U00110000\"", "line 1: an escape of no character" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                if (answer(cases[i].text) != BROKEN || !strstr(e.msg, cases[i].expected))
                        fail_msg("case %zu: %d '%s'", i, answer(cases[i].text), e.msg);
                assert_int_equal(e.kind, ERR_INVALID);
        }
}

static void values_of_all_kinds_are_skipped(void **state) {
        (void)state;
        static const char text[] =
                "title = \"a \\\"b\\\" \\t # no comment\"\n"
                "n = +1_000\nf = -6.626e-34\nh = 0xdead_beef\ni = -inf\nnot = nan\n"
                "when = 1979-05-27 07:32:00.5-07:00\nday = 1979-05-27\nat = 07:32:00\n"
                "z = 1979-05-27T07:32:00Z\n"
                "list = [ # of all\n  'a', [1, [2]],\n\n  { x = 1, y = { z = 'q' } }, true,\n]\n"
                "empty = []\nnone = {}\n"
                "long = \"\"\"\\\n   one \"quoted\" two\"\"\"\"\"\n"
                "raw = '''a'b''c'''\n"
                "[[points]]\nx = 1\n[[points]]\nx = 2\n"
                "[features]\nignore = true\n";
        assert_int_equal(answer(text), true);
}

static void find(const char *text, struct toml_value *ret) {
        static const char *const path[] = { "plugins", "io.x.cri", "containerd", "name", NULL };
        if (toml_find(str_from(text), path, ret, &e) < 0)
                fail_msg("%s", e.msg);
}

static void a_setting_at_a_longer_path(void **state) {
        (void)state;
        static const char *const there[] = {
                "[plugins.\"io.x.cri\".containerd]\nname = \"nvidia\"",
                "[plugins]\n[plugins.'io.x.cri']\ncontainerd.name = 'nvidia'",
                "plugins = { \"io.x.cri\" = { containerd = { name = \"nvid\\u0069a\" } } }",
        };
        static const char *const not_there[] = {
                "",
                "name = 'nvidia'",
                "[plugins.io.x.cri.containerd]\nname = 'nvidia'",
                "[plugins.'io.x.cri'.containerd.a]\nname = 'nvidia'",
                "[[plugins.'io.x.cri'.containerd]]\nname = 'nvidia'",
        };
        struct toml_value v;
        for (size_t i = 0; i < ARRAY_LEN(there); i++) {
                find(there[i], &v);
                assert_int_equal(v.kind, TOML_STRING);
                assert_string_equal(v.text, "nvidia");
        }
        for (size_t i = 0; i < ARRAY_LEN(not_there); i++) {
                find(not_there[i], &v);
                assert_int_equal(v.kind, TOML_ABSENT);
        }
        find("[plugins.'io.x.cri'.containerd]\nname = true", &v);
        assert_int_equal(v.kind, TOML_BOOL);
        assert_true(v.truth);
        find("[plugins.'io.x.cri'.containerd]\nname = 7", &v);
        assert_int_equal(v.kind, TOML_OTHER);
        assert_int_equal(v.raw.n, 0);
        find("[plugins.'io.x.cri'.containerd]\nname = [ 'a',\n\"b\" ] # c", &v);
        assert_int_equal(v.kind, TOML_OTHER);
        assert_true(str_eq(v.raw, STR("[ 'a',\n\"b\" ]")));
        find("[plugins.'io.x.cri'.containerd]\nname = 'nvidia\\u0000x'\nnext = \"a\\u0000b\"", &v);
        assert_int_equal(v.kind, TOML_STRING);
        char long_text[2 * TOML_TEXT_MAX + 64];
        snprintf(long_text, sizeof long_text, "[plugins.'io.x.cri'.containerd]\nname = '%*s'",
                 2 * TOML_TEXT_MAX, "");
        find(long_text, &v);
        assert_int_equal(v.kind, TOML_OTHER);
}

/* failure: a TOML file has escaped characters -> they are read as UTF-8 */
static void escapes_are_read_as_utf_8(void **state) {
        static const struct {
                const char *escape, *text;
        } cases[] = {
                { "\\u007f", "\x7f" },
                { "\\u0080", "\xc2\x80" },
                { "\\u07ff", "\xdf\xbf" },
                { "\\u0800", "\xe0\xa0\x80" },
                { "\\ud7ff", "\xed\x9f\xbf" },
                { "\\ue000", "\xee\x80\x80" },
                { "\\uffff", "\xef\xbf\xbf" },
                { "\\U00010000", "\xf0\x90\x80\x80" },
                { "\\U0010fFff", "\xf4\x8f\xbf\xbf" },
                { "\\b\\t\\n\\f\\r\\\"\\\\", "\b\t\n\f\r\"\\" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct toml_value v;
                char text[128];
                snprintf(text, sizeof text, "[plugins.'io.x.cri'.containerd]\nname = \"%s\"",
                         cases[i].escape);
                find(text, &v);
                assert_int_equal(v.kind, TOML_STRING);
                assert_string_equal(v.text, cases[i].text);
        }
}

static void a_key_has_at_most_1024_bytes(void **state) {
        char text[1100];
        for (int n = 1024; n <= 1025; n++) {
                memset(text, 'k', (size_t)n);
                strcpy(text + n, " = 1\n[features]\nignore = true");
                assert_int_equal(answer(text), n == 1024 ? true : BROKEN);
        }
        assert_non_null(strstr(e.msg, "line 1: a key that is too long"));
}

static void nesting_is_limited(void **state) {
        (void)state;
        char exact[200] = "x = ";
        for (size_t n = 64; n <= 65; n++) {
                memset(exact + 4, '[', n);
                memset(exact + 4 + n, ']', n);
                exact[4 + 2 * n] = '\0';
                assert_int_equal(answer(exact), n == 64 ? UNSET : BROKEN);
        }
        struct buf deep = BUF_INIT(4096);
        buf_adds(&deep, "x = ");
        for (int i = 0; i < 1000; i++)
                buf_adds(&deep, "[");
        assert_int_equal(answer(buf_str(&deep)), BROKEN);
        assert_non_null(strstr(e.msg, "nest too deep"));
        buf_done(&deep);
}

static void a_nul_does_not_end_the_text(void **state) {
        (void)state;
        static const char text[] = "x = 1\0\n[features]\nignore = true";
        bool there, value;
        assert_int_equal(
                toml_bool((struct str){ text, sizeof text - 1 }, "features", "ignore", &there, &value, &e),
                -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_setting_in_all_its_spellings),
                cmocka_unit_test(similar_text_is_not_the_setting),
                cmocka_unit_test(an_error_names_its_line),
                cmocka_unit_test(values_of_all_kinds_are_skipped),
                cmocka_unit_test(a_setting_at_a_longer_path),
                cmocka_unit_test(escapes_are_read_as_utf_8),
                cmocka_unit_test(a_key_has_at_most_1024_bytes),
                cmocka_unit_test(nesting_is_limited),
                cmocka_unit_test(a_nul_does_not_end_the_text),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
