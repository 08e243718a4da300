/* SPDX-License-Identifier: Apache-2.0 */
/* The output of check-node, which a container may forge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/check_report.h"

#define HEAD "{\"version\":1,\"program\":\"p\",\"programVersion\":\"1\",\"node\":\"n\",\"items\":["

static struct arena *a;
static struct check_report r;
static struct err e;

static int setup(void **state) {
        a = arena_new(1024);
        return 0;
}

static int teardown(void **state) {
        arena_free(a);
        return 0;
}

/* Decodes a report with these items, and `tail` behind the report. */
static int decode(const char *items, const char *tail) {
        _cleanup_(freep) char *text = xasprintf(HEAD "%s]}%s", items, tail);
        return check_report_decode(str_from(text), a, &r, &e);
}

static void each_state_is_decoded(void **state) {
        assert_int_equal(decode("{\"name\":\"a\",\"state\":\"ok\",\"text\":\"\"},{\"name\":\"b\",\"state\":"
                                "\"problem\","
                                "\"text\":\"t\",\"remedy\":\"m\"},{\"name\":\"c\",\"state\":\"skipped\","
                                "\"text\":\"\"}",
                                ""),
                         0);
        assert_int_equal(r.n_items, 3);
        assert_int_equal(r.items[0].state, CHECK_REPORT_OK);
        assert_string_equal(r.items[0].text, "");
        assert_string_equal(r.items[0].remedy, "");
        assert_int_equal(r.items[1].state, CHECK_REPORT_PROBLEM);
        assert_string_equal(r.items[1].remedy, "m");
        assert_int_equal(r.items[2].state, CHECK_REPORT_SKIPPED);
        assert_int_equal(decode("{\"name\":\"b\",\"state\":\"bad\",\"text\":\"\"}", ""), -1);
        assert_string_equal(e.msg, "an item has the unknown state 'bad'");
}

static void long_texts_are_cut(void **state) {
        _cleanup_(freep) char *items = xasprintf(
                "{\"name\":\"%0*d\",\"state\":\"ok\",\"text\":\"%0*d\",\"remedy\":\"%0*d\"}",
                CHECK_REPORT_NAME_MAX + 1, 0, CHECK_REPORT_TEXT_MAX, 0, CHECK_REPORT_TEXT_MAX + 1, 0);
        assert_int_equal(decode(items, ""), 0);
        assert_int_equal(strlen(r.items[0].name), CHECK_REPORT_NAME_MAX);
        assert_int_equal(strlen(r.items[0].text), CHECK_REPORT_TEXT_MAX);
        assert_int_equal(strlen(r.items[0].remedy), CHECK_REPORT_TEXT_MAX);
}

static void a_report_has_at_most_a_thousand_items(void **state) {
        static const char item[] = ",{\"name\":\"a\",\"state\":\"ok\",\"text\":\"\"}";
        struct buf items = BUF_INIT(1 << 16);
        for (int i = 0; i < CHECK_REPORT_ITEMS_MAX; i++)
                buf_adds(&items, item + !i);
        assert_int_equal(decode(buf_str(&items), ""), 0);
        buf_adds(&items, item);
        assert_int_equal(decode(buf_str(&items), ""), -1);
        assert_string_equal(e.msg, "the output has 1001 items");
        buf_done(&items);
}

static void a_report_has_at_most_a_mebibyte(void **state) {
        int most = CHECK_REPORT_MAX - (int)strlen(HEAD "]}");
        _cleanup_(freep) char *fits = xasprintf("%*s", most, ""), *large = xasprintf("%*s", most + 1, "");
        assert_int_equal(decode("", fits), 0);
        assert_int_equal(decode("", large), -1);
        assert_string_equal(e.msg, "the output has more than 1048576 bytes");
}

static void another_version_is_rejected(void **state) {
        assert_int_equal(check_report_decode(STR("{\"version\":2,\"items\":[]}"), a, &r, &e), -1);
        assert_int_equal(check_report_decode(STR("no report"), a, &r, &e), -1);
        assert_ptr_equal(strstr(e.msg, "not the output of check-node"), e.msg);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_state_is_decoded),
                cmocka_unit_test(long_texts_are_cut),
                cmocka_unit_test(a_report_has_at_most_a_thousand_items),
                cmocka_unit_test(a_report_has_at_most_a_mebibyte),
                cmocka_unit_test(another_version_is_rejected),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
