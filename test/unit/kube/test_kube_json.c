/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "kube/kube_json.h"

/* Reads a text from memory of its exact size, so that the sanitizer notices reads beyond it. */
static yyjson_doc *document(const char *text, size_t n, struct err *e) {
        _cleanup_(freep) char *copy = xmalloc(n ? n : 1);
        memcpy(copy, text, n);
        return kube_json_read((struct str){ copy, n }, e);
}

/* Reads ["TEXT"] and compares the string. */
static void reads(const char *text, const char *expected) {
        _cleanup_(buf_done) struct buf json = BUF_INIT(1024);
        struct err e;
        buf_addf(&json, "[\"%s\"]", text);
        yyjson_doc *doc = document(buf_str(&json), json.n, &e);
        assert_non_null(doc);
        assert_string_equal(yyjson_get_str(yyjson_arr_get_first(yyjson_doc_get_root(doc))), expected);
        yyjson_doc_free(doc);
}

static void valid_text_is_not_changed(void **state) {
        reads("a\\n\\\\ud800", "a\n\\ud800");
        reads("\\ud83d\\ude00 \\u00e9 \xc3\xa9 \\uFFFD", "\xf0\x9f\x98\x80 \xc3\xa9 \xc3\xa9 \xef\xbf\xbd");
}

static void half_a_surrogate_pair_is_replaced(void **state) {
        static const char *const halves[] = { "\\ud800", "\\uDBFF", "\\udc00", "\\udfff" };
        for (size_t i = 0; i < ARRAY_LEN(halves); i++)
                reads(halves[i], "\xef\xbf\xbd");
        reads("\\ud800\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80");
        reads("\\ud800x\\udc00", "\xef\xbf\xbdx\xef\xbf\xbd");
        reads("\\ud800\\\\\\ud83d\\ude00\\udc00", "\xef\xbf\xbd\\\xf0\x9f\x98\x80\xef\xbf\xbd");
        reads("\\ud7ff\\ud800", "\xed\x9f\xbf\xef\xbf\xbd");
        reads("\\ud800\\ue000", "\xef\xbf\xbd\xee\x80\x80");
}

static void bytes_that_are_not_utf8_are_replaced(void **state) {
        reads("\xff", "?");
        reads("a\xc3", "a?");
        reads("\xed\xa0\x80", "???"); /* a surrogate in three bytes */
        reads("\xc3\xa9\x80\xc3\xa9", "\xc3\xa9?\xc3\xa9");
        reads("\xff\\\"\xff", "?\"?");
}

static void other_text_is_invalid(void **state) {
        static const char *const bad[] = { "",          "\xff",         "{\"a\":\xff}", "[\"\\ud800]",    "[\"\xff",
                                           "[\"\\ud8",  "[\"\\",        "[\"\\u",       "[\"\\ud800\\u",  "[\"\\ux000\"]",
                                           "[\"\\x\"]", "[\"\n\xff\"]", "[\"\xff\"]x",  "{\"\\ud800\":}", "[\"\\ud800\\" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct err e;
                assert_null(document(bad[i], strlen(bad[i]), &e));
                assert_int_equal(e.kind, ERR_INVALID);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(valid_text_is_not_changed),
                cmocka_unit_test(half_a_surrogate_pair_is_replaced),
                cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
                cmocka_unit_test(other_text_is_invalid),
        };
        return cmocka_run_group_tests_name("kube_json", tests, NULL, NULL);
}
