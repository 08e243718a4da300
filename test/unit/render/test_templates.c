/* SPDX-License-Identifier: Apache-2.0 */
/* The output of scripts/templates.py for sample.yaml. The inputs that it refuses are in test_templates.py. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

struct sample_item {
        const char *name;
        int64_t size;
        const struct jd_pair *parts;
        size_t n_parts;
};

struct sample {
        struct {
                const char *text;
        } inner;
        struct str raw;
        int64_t since;
        const struct jd_pair *pairs;
        const struct sample_item *items;
        size_t n_pairs, n_items;
};

void objects_public(const char *name, struct buf *out);
#include "sample.inc"

static const char start[] =
        "{\"plain\":\"a \\\"quoted\\\" word\\\\\",\"quoted\":\"1\",\"number\":-7,\"yes\":true,"
        "\"nothing\":null,\"of it\":[{},[]],";

static void all_given_values_are_rendered_in_their_places(void **state) {
        const struct jd_pair pairs[] = { { "theirs", "too" }, { "none", NULL } };
        const struct sample_item items[] = { { "a", 2, pairs, 2 }, { "b\"", 0, NULL, 0 } };
        const char *const words[] = { "x", "y" };
        const struct sample s = { .inner.text = "in",
                                  .raw = STR("[1]"),
                                  .since = 60,
                                  .pairs = pairs,
                                  .items = items,
                                  .n_pairs = 2,
                                  .n_items = 2 };
        struct buf b = BUF_INIT(4096);
        sample(&s, "n%s", "o", words, 2, true, 5, &b);
        assert_memory_equal(buf_str(&b), start, sizeof start - 1);
        assert_string_equal(
                buf_str(&b) + sizeof start - 1,
                "\"string\":\"n%s\",\"part\":\"o-5%\",\"int\":5,\"text\":\"5\",\"member\":\"in\","
                "\"json\":[1],"
                "\"time\":\"1970-01-01T00:01:00Z\",\"labels\":{\"ours\":\"here\",\"theirs\":"
                "\"too\",\"none\":null},"
                "\"words\":[\"first\",\"x\",\"y\",\"last\"],\"items\":[{\"name\":\"a\",\"size\":"
                "2,\"of\":[\"all\","
                "\"n%s\"]},{\"name\":\"b\\\"\",\"of\":[\"all\",\"n%s\",\"unsized\"]}],"
                "\"nested\":[{\"name\":\"a\",\"parts\":[\"first\",{\"of\":\"theirs\",\"in\":\"a\"},"
                "{\"of\":\"none\",\"in\":\"a\"}],\"labels\":{\"theirs\":\"too\",\"none\":null}},"
                "{\"name\":\"b\\\"\",\"parts\":[\"first\"],\"labels\":{}}],\"if\":{"
                "\"string\":\"in\"},"
                "\"list\":[\"a\",\"b\\\"\"],\"outer\":[{\"inner\":[{\"name\":\"x\"},{\"name\":\"y\"}]}],"
                "\"same\":{\"deep\":[1]},\"again\":{\"deep\":[1]}}");
        buf_done(&b);
}

static void missing_values_are_null_empty_or_omitted(void **state) {
        static const char end[] =
                "\"list\":null,\"outer\":[{\"inner\":[]}],\"same\":{\"deep\":[1]},\"again\":{\"deep\":[1]}}";
        struct sample s = { .raw = STR("0") };
        struct buf b = BUF_INIT(4096);
        sample(&s, NULL, "", NULL, 0, false, 0, &b);
        assert_string_equal(buf_str(&b) + sizeof start - 1,
                            "\"string\":null,\"part\":\"-0%\",\"int\":0,\"text\":\"0\",\"member\":null,"
                            "\"json\":0,\"time\":\"1970-01-01T00:00:00Z\",\"labels\":{\"ours\":\"here\"},"
                            "\"words\":[\"first\",\"last\"],\"items\":[],\"nested\":[],\"unless\":\"here\","
                            "\"outer\":[{\"inner\":[]}],\"same\":{\"deep\":[1]},\"again\":{\"deep\":[1]}}");
        for (int i = 0; i < 2; i++) {
                s.inner.text = i ? "" : NULL;
                buf_clear(&b);
                sample(&s, "", "", NULL, 0, true, 0, &b);
                assert_non_null(strstr(buf_str(&b), "\"if\":{},"));
                assert_string_equal(buf_str(&b) + b.n - (sizeof end - 1), end);
        }
        buf_clear(&b);
        objects_public("p", &b);
        assert_string_equal(buf_str(&b), "{\"name\":\"p\"}");
        buf_done(&b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_given_values_are_rendered_in_their_places),
                cmocka_unit_test(missing_values_are_null_empty_or_omitted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
