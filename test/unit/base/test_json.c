/* SPDX-License-Identifier: Apache-2.0 */
/* Field tables, strict mode and the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka needs the four headers above */
#include <cmocka.h>

#include "base/json.h"

struct item {
        const char *request;
        bool admin;
        int64_t n;
};
static const struct jd_field f_item[] = {
        JD_STR(struct item, "request", request, .required = true),
        JD_BOOL(struct item, "admin", admin),
        JD_INT(struct item, "n", n),
        JD_END,
};
struct doc {
        const char *name;
        struct item *items;
        size_t n_items;
        const char **tags;
        size_t n_tags;
        struct jd_pair *labels;
        size_t n_labels;
        struct str raw;
        struct item inner, *opt;
        int64_t when;
};
static const struct jd_field f_meta[] = { JD_STR(struct doc, "name", name), JD_TIME(struct doc, "when", when),
                                          JD_END };
static const struct jd_field f_doc[] = {
        { .name = "metadata", .type = JD_T_OBJ, .sub = f_meta },
        JD_LIST(struct doc, "items", items, struct item, f_item),
        JD_STRS(struct doc, "tags", tags),
        JD_MAP(struct doc, "labels", labels),
        JD_RAW(struct doc, "raw", raw),
        JD_OBJ(struct doc, "inner", inner, f_item),
        JD_OPTOBJ(struct doc, "opt", opt, struct item, f_item),
        JD_END,
};

static int decode(const char *text, bool strict, struct arena *a, struct doc *d, struct err *e) {
        memset(d, 0, sizeof *d);
        return strict ? jd_decode_strict(f_doc, str_from(text), a, d, e)
                      : jd_decode_text(f_doc, str_from(text), "", a, d, e);
}

static void assert_fails(const char *text, bool strict, const char *message) {
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        struct doc d;
        struct err e = { 0 };
        assert_int_equal(decode(text, strict, a, &d, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_string_equal(e.msg, message);
}

static void decodes_every_type(void **state) {
        (void)state;
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        struct doc d;
        struct err e;
        assert_int_equal(decode("{\"metadata\":{\"name\":\"x\",\"when\":\"2026-01-02T03:04:05.25+01:00\"},"
                                "\"items\":[{\"request\":\"a\",\"n\":-3},"
                                "{\"request\":\"b\",\"admin\":true}],\"tags\":[\"p\",\"q\"],\"labels\":{"
                                "\"k\":\"v\"},\"raw\":{\"z\":1,\"a\":[null]},"
                                "\"inner\":{\"request\":\"in\"},\"opt\":{\"request\":\"op\"},\"unknown\":7}",
                                false, a, &d, &e),
                         0);
        assert_string_equal(d.name, "x");
        assert_int_equal(d.when, 1767319445);
        assert_int_equal(d.n_items, 2);
        assert_int_equal(d.items[0].n, -3);
        assert_true(d.items[1].admin);
        assert_string_equal(d.tags[1], "q");
        assert_null(d.tags[2]);
        assert_string_equal(jd_pair_get(d.labels, d.n_labels, "k"), "v");
        assert_true(str_eq(d.raw, STR("{\"z\":1,\"a\":[null]}")));
        assert_string_equal(d.inner.request, "in");
        assert_string_equal(d.opt->request, "op");
}

static void a_copy_is_independent_of_its_source(void **state) {
        (void)state;
        struct arena *a = arena_new(0);
        _cleanup_(arena_freep) struct arena *kept = arena_new(0);
        struct doc d, copy = { 0 };
        struct err e;
        assert_int_equal(
                decode("{\"metadata\":{\"name\":\"x\",\"when\":\"2026-01-02T03:04:05Z\"},"
                       "\"items\":[{\"request\":\"a\",\"n\":-3},{\"request\":\"a\",\"admin\":true},"
                       "{\"request\":\"b\"}],\"tags\":[\"p\",\"q\"],\"labels\":{\"k\":\"v\"},"
                       "\"raw\":{\"z\":1},\"inner\":{\"request\":\"in\"},\"opt\":{\"request\":\"op\"}}",
                       false, a, &d, &e),
                0);
        int64_t when = d.when;
        jd_copy(f_doc, &d, kept, &copy);
        arena_free(a);
        assert_string_equal(copy.name, "x");
        assert_int_equal(copy.when, when);
        assert_int_equal(copy.n_items, 3);
        assert_int_equal(copy.items[0].n, -3);
        assert_true(copy.items[1].admin);
        assert_ptr_equal(copy.items[1].request, copy.items[0].request); /* stored once */
        assert_string_equal(copy.items[2].request, "b");
        assert_string_equal(copy.tags[1], "q");
        assert_null(copy.tags[2]);
        assert_string_equal(jd_pair_get(copy.labels, copy.n_labels, "k"), "v");
        assert_true(str_eq(copy.raw, STR("{\"z\":1}")));
        assert_string_equal(copy.inner.request, "in");
        assert_string_equal(copy.opt->request, "op");
}

/* Decodes two texts, in which ' stands for ", and compares them in both directions. */
static bool equals(const struct jd_field *fields, const char *x, const char *y) {
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        const char *texts[] = { x, y };
        struct doc d[2] = { 0 };
        struct err e;
        for (size_t i = 0; i < 2; i++) {
                _cleanup_(freep) char *text = xstrdup(texts[i]);
                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                if (jd_decode_text(fields, str_from(text), "", a, &d[i], &e) < 0)
                        fail_msg("%s: %s", texts[i], e.msg);
        }
        bool equal = jd_equal(fields, &d[0], &d[1]);
        assert_int_equal(jd_equal(fields, &d[1], &d[0]), equal);
        return equal;
}

static void equality_compares_every_kind_of_field(void **state) {
        /* `same` is an equal text, `other` differs. */
        static const struct {
                const char *text, *same, *other;
        } cases[] = {
                /* strings */
                { "{'metadata':{'name':'x'}}", "{'metadata':{'name':'x'}}", "{'metadata':{'name':'y'}}" },
                { "{'metadata':{'name':'x'}}", "{'unknown':1,'metadata':{'name':'x'}}", "{}" },
                { "{}", "{'metadata':{'name':null}}", "{'metadata':{'name':''}}" },
                /* times */
                { "{'metadata':{'when':'2026-01-02T03:04:05Z'}}",
                  "{'metadata':{'when':'2026-01-02T04:04:05+01:00'}}",
                  "{'metadata':{'when':'2026-01-02T03:04:06Z'}}" },
                { "{'metadata':{'when':'2026-01-02T03:04:05Z'}}",
                  "{'metadata':{'when':'2026-01-02T03:04:05Z'}}", "{'metadata':{}}" },
                /* embedded objects, booleans and integers */
                { "{'inner':{'request':'a'}}", "{'inner':{'request':'a','n':0,'admin':false}}",
                  "{'inner':{'request':'b'}}" },
                { "{'inner':{'request':'a'}}", "{'inner':{'request':'a'}}", "{}" },
                { "{'inner':{'request':'a','admin':true}}", "{'inner':{'request':'a','admin':true}}",
                  "{'inner':{'request':'a'}}" },
                { "{'inner':{'request':'a','n':4294967297}}", "{'inner':{'request':'a','n':4294967297}}",
                  "{'inner':{'request':'a','n':1}}" },
                /* optional objects */
                { "{'opt':{'request':'a'}}", "{'opt':{'request':'a'}}", "{'opt':{'request':'b'}}" },
                { "{}", "{'opt':null}", "{'opt':{'request':''}}" },
                /* lists */
                { "{'items':[{'request':'a'},{'request':'b'}]}",
                  "{'items':[{'request':'a'},{'request':'b'}]}",
                  "{'items':[{'request':'a'},{'request':'c'}]}" },
                { "{'items':[{'request':'a'}]}", "{'items':[{'request':'a'}]}",
                  "{'items':[{'request':'a'},{'request':'b'}]}" },
                { "{}", "{'items':[]}", "{'items':[{'request':''}]}" },
                { "{'tags':['p','q']}", "{'tags':['p','q']}", "{'tags':['q','p']}" },
                { "{'tags':['p','q']}", "{'tags':['p','q']}", "{'tags':['p']}" },
                { "{}", "{'tags':[]}", "{'tags':['']}" },
                /* maps */
                { "{'labels':{'k':'v','l':'w'}}", "{'labels':{'k':'v','l':'w'}}",
                  "{'labels':{'k':'v','l':'x'}}" },
                { "{'labels':{'k':'v'}}", "{'labels':{'k':'v'}}", "{'labels':{'l':'v'}}" },
                { "{'labels':{'k':'v'}}", "{'labels':{'k':'v'}}", "{'labels':{'k':'v','l':'w'}}" },
                { "{}", "{'labels':{}}", "{'labels':{'':''}}" },
                /* raw JSON */
                { "{'raw':{'z':1}}", "{'raw':{ 'z' : 1 }}", "{'raw':{'z':2}}" },
                { "{}", "{'raw':null}", "{'raw':''}" },
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                if (!equals(f_doc, cases[i].text, cases[i].same))
                        fail_msg("%s differs from %s", cases[i].text, cases[i].same);
                if (equals(f_doc, cases[i].text, cases[i].other))
                        fail_msg("%s equals %s", cases[i].text, cases[i].other);
        }
}

static void equality_ignores_fields_that_the_table_excludes(void **state) {
        static const struct jd_field f_part[] = { JD_STR(struct item, "request", request),
                                                  JD_INT(struct item, "n", n, .not_compared = true), JD_END };
        static const struct jd_field fields[] = {
                JD_STR(struct doc, "name", name),
                JD_STRS(struct doc, "tags", tags, .not_compared = true),
                JD_LIST(struct doc, "items", items, struct item, f_part),
                JD_END,
        };
        (void)state;
        assert_true(equals(fields, "{'name':'x','tags':['p']}", "{'name':'x'}"));
        assert_false(equals(fields, "{'name':'x','tags':['p']}", "{'name':'y','tags':['p']}"));
        assert_true(equals(fields, "{'items':[{'request':'a','n':1}]}", "{'items':[{'request':'a','n':2}]}"));
        assert_false(
                equals(fields, "{'items':[{'request':'a','n':1}]}", "{'items':[{'request':'b','n':1}]}"));
        /* fields without an entry in the table */
        assert_true(equals(fields, "{'name':'x','raw':1}", "{'name':'x','raw':2}"));
}

static void names_the_place_of_an_error(void **state) {
        (void)state;
        assert_fails("{\"items\":[{\"request\":\"a\"},{\"request\":5}]}", false,
                     "items[1].request: not a string");
        assert_fails("{\"items\":[{}]}", false, "items[0].request: missing");
        assert_fails("{\"labels\":{\"k\":1}}", false, "labels.k: not a string");
        assert_fails("{\"inner\":{\"request\":\"a\",\"n\":1.5}}", false, "inner.n: not an integer");
        assert_fails("{\"inner\":{\"request\":\"a\",\"n\":18446744073709551615}}", false,
                     "inner.n: not an integer");
        assert_fails("[]", false, "not an object");
        assert_fails("{\"metadata\":{\"when\":\"yesterday\"}}", false, "metadata.when: not a time");
}

static void a_path_skips_missing_members(void **state) {
        static const struct jd_field fields[] = {
                JD_STR(struct doc, "metadata>labels>a.b/c", name),
                JD_LIST(struct doc, "spec>items", items, struct item, f_item),
                JD_STR(struct doc, "metadata>uid", inner.request, .required = true), JD_END
        };
        static const struct {
                const char *text, *name, *error;
        } cases[] = {
                { "{}", NULL, NULL },
                { "{'metadata':null,'spec':{}}", NULL, NULL },
                { "{'metadata':{'labels':{'a.b/c':'x','a':'y'},'uid':'u'},'labels':1}", "x", NULL },
                { "{'metadata':{'uid':'u','labels':{}},'spec':{'items':[]}}", NULL, NULL },
                { "{'metadata':{}}", NULL, "metadata.uid: missing" },
                { "{'metadata':7}", NULL, "metadata: not an object" },
                { "{'metadata':{'labels':'a'}}", NULL, "metadata.labels: not an object" },
                { "{'metadata':{'labels':{'a.b/c':1}}}", NULL, "metadata.labels.a.b/c: not a string" },
                { "{'spec':{'items':[{'request':1}]}}", NULL, "spec.items[0].request: not a string" },
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(0);
                _cleanup_(freep) char *text = xstrdup(cases[i].text);
                struct doc d = { 0 };
                struct err e;
                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                int r = jd_decode_text(fields, str_from(text), "", a, &d, &e);
                assert_int_equal(r, cases[i].error ? -1 : 0);
                if (r < 0)
                        assert_string_equal(e.msg, cases[i].error);
                else
                        assert_true(streq(d.name, cases[i].name));
        }
}

static void strict_refuses_unknown_and_duplicate_fields(void **state) {
        (void)state;
        assert_fails("{\"foo\":1}", true, "strict decoding error: unknown field \"foo\"");
        assert_fails("{\"inner\":{\"request\":\"a\",\"Request\":\"b\"}}", true,
                     "strict decoding error: unknown field \"inner.Request\"");
        assert_fails("{\"tags\":[],\"tags\":[]}", true, "strict decoding error: duplicate field \"tags\"");
        assert_fails("{\"tags\\u0000x\":[]}", true, "strict decoding error: unknown field \"tags\"");
        assert_fails("{\"inner\":{\"request\":\"a\\u0000b\"}}", true,
                     "inner.request: a string with a NUL character");
}

/* RFC 3339, as Kubernetes and its clients write it. */
static void times_follow_rfc_3339(void **state) {
        static const struct {
                const char *text;
                int64_t s;
        } good[] = {
                { "1970-01-01T00:00:00Z", 0 },
                { "2026-01-02t02:04:05z", 1767319445 },
                { "2026-01-02T02:04:05.0123456789Z", 1767319445 },
                { "2026-01-02T03:04:05.9+01:00", 1767319445 },
                { "2026-01-01T23:34:05-02:30", 1767319445 },
                { "1969-12-31T23:59:59Z", -1 },
                { "2009-09-19T19:09:09Z", 1253387349 },
        };
        static const char *const bad[] = {
                "",
                "2026-01-02T02:04:05",
                "2026-01-02T02:04:05Zx",
                "2026-01-02T02:04:05.12/Z",
                "2026-01-02T02:04:05.12:Z",
                "202/-01-02T02:04:05Z",
                "202:-01-02T02:04:05Z",
                "2026:01-02T02:04:05Z",
                "2026-01:02T02:04:05Z",
                "2026-01-02 02:04:05Z",
                "2026-01-02T02-04:05Z",
                "2026-01-02T02:04-05Z",
                "2026-01-02T02:04:05+0100",
                "2026-01-02T02:04:05+01:0",
                "2026-01-02T02:04:05+01:000",
                "2026-01-02T02:04:05+01-00",
                "2026-01-02T02:04:05*01:00",
        };
        int64_t s;
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                if (!jd_time(good[i].text, &s) || s != good[i].s)
                        fail_msg("%s", good[i].text);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                if (jd_time(bad[i], &s))
                        fail_msg("%s", bad[i]);
}

static void the_largest_integer_is_read(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        struct doc d;
        struct err e;
        assert_int_equal(
                decode("{\"inner\":{\"request\":\"a\",\"n\":9223372036854775807}}", false, a, &d, &e), 0);
        assert_int_equal(d.inner.n, INT64_MAX);
        assert_fails("{\"inner\":{\"request\":\"a\",\"n\":9223372036854775808}}", false,
                     "inner.n: not an integer");
}

static void a_missing_key_has_no_value(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        struct doc d;
        struct err e;
        assert_int_equal(decode("{\"labels\":{\"b\":\"1\",\"d\":\"2\"}}", false, a, &d, &e), 0);
        assert_string_equal(jd_pair_get(d.labels, d.n_labels, "d"), "2");
        static const char *const missing[] = { "", "a", "c", "e" };
        for (size_t i = 0; i < ARRAY_LEN(missing); i++)
                assert_null(jd_pair_get(d.labels, d.n_labels, missing[i]));
}

/* Decodes a text behind which no byte follows. */
static int decode_exact(const char *text, struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        size_t n = strlen(text);
        _cleanup_(freep) char *exact = memcpy(xmalloc(n), text, n);
        struct doc d = { 0 };
        return jd_decode_text(f_doc, (struct str){ exact, n }, "", a, &d, e);
}

/* failure: JSON nests deeply -> it is read up to 64 levels, and refused beyond them */
static void nesting_is_counted_outside_of_texts(void **state) {
        char text[1024];
        struct err e;
        for (size_t n = 63; n <= 64; n++) { /* and the object around them */
                strcpy(text, "{\"raw\":");
                size_t at = strlen(text);
                memset(text + at, '[', n);
                memset(text + at + n, ']', n);
                strcpy(text + at + 2 * n, "}");
                assert_int_equal(decode_exact(text, &e), n == 63 ? 0 : -1);
                *text = '\0';
                for (size_t i = 0; i <= n; i++)
                        strcat(text, "{\"raw\":");
                strcat(text, "1");
                for (size_t i = 0; i <= n; i++)
                        strcat(text, "}");
                assert_int_equal(decode_exact(text, &e), n == 63 ? 0 : -1);
                assert_true(n == 63 || strstr(e.msg, "deeper"));
        }
        memset(text, '[', 65); /* The last byte counts. */
        text[65] = '\0';
        assert_int_equal(decode_exact(text, &e), -1);
        assert_non_null(strstr(e.msg, "deeper"));
        /* Levels that end, and brackets in texts, do not count. */
        strcpy(text, "{\"raw\":[");
        for (size_t i = 0; i < 70; i++)
                strcat(text, "[],{},");
        strcat(text, "\"\\\""); /* an escaped quote does not end a text */
        for (size_t i = 0; i < 35; i++)
                strcat(text, "[{");
        strcat(text, "\\\\\"]}");
        assert_int_equal(decode_exact(text, &e), 0);
}

static void refuses_absurd_nesting(void **state) {
        (void)state;
        char deep[400];
        memset(deep, '[', 200);
        memset(deep + 200, ']', 199);
        deep[399] = '\0';
        assert_fails(deep, false, "JSON nests deeper than 64");
}

static void writes_the_same_text_as_go(void **state) {
        (void)state;
        struct buf b = BUF_INIT(4096);
        struct jw w = { .out = &b, .go_escape = true };
        jw_obj(&w, NULL);
        jw_str(&w, "a", "<&>\"\\\n\x01\xe2\x80\xa8");
        jw_arr(&w, "l");
        jw_int(&w, NULL, -1);
        jw_obj(&w, NULL);
        jw_end_obj(&w);
        jw_null(&w, NULL);
        jw_end_arr(&w);
        jw_bool(&w, "b", true);
        jw_raw(&w, "r", STR("{\"x\":1}"));
        jw_time(&w, "t", 1767319445);
        jw_time_micro(&w, "m", 1767319445000042);
        jw_end_obj(&w);
        assert_string_equal(buf_str(&b),
                            "{\"a\":\"\\u003c\\u0026\\u003e\\\"\\\\\\n\\u0001\\u2028\",\"l\":[-1,{},null],"
                            "\"b\":true,\"r\":{\"x\":1},"
                            "\"t\":\"2026-01-02T02:04:05Z\",\"m\":\"2026-01-02T02:04:05.000042Z\"}");
        buf_done(&b);
}

static void the_ends_of_texts_and_numbers_are_written(void **state) {
        const struct {
                struct str in;
                const char *out, *go; /* NULL: the same */
        } c[] = {
                { STR(""), "\"\"", NULL },
                { STR("a"), "\"a\"", NULL },
                { { "abc", 2 }, "\"ab\"", NULL },
                { STR("a\""), "\"a\\\"\"", NULL },
                { STR("\x7f"), "\"\x7f\"", NULL },
                { STR("\x80"), "\"\xef\xbf\xbd\"", NULL },
                { STR("\b\f"), "\"\\u0008\\u000c\"", "\"\\b\\f\"" },
                { STR("\xe2\x80\xa9"), "\"\xe2\x80\xa9\"", "\"\\u2029\"" },
                { STR("\xe2\x80\xaa"), "\"\xe2\x80\xaa\"", NULL },
                { STR("\xe2\x81\xa8"), "\"\xe2\x81\xa8\"", NULL },
                { { "\xe2\x80\xa8", 2 }, "\"\xef\xbf\xbd\xef\xbf\xbd\"", NULL },
        };
        for (size_t i = 0; i < ARRAY_LEN(c); i++)
                for (int go = 0; go < 2; go++) {
                        _cleanup_(buf_done) struct buf b = BUF_INIT(1000);
                        struct jw w = { .out = &b, .go_escape = go };
                        jw_strn(&w, NULL, c[i].in);
                        assert_string_equal(buf_str(&b), go && c[i].go ? c[i].go : c[i].out);
                }
        static const struct {
                int64_t in;
                const char *out;
        } n[] = { { 0, "0" }, { 1, "1" }, { -1, "-1" }, { INT64_MIN, "-9223372036854775808" } };
        for (size_t i = 0; i < ARRAY_LEN(n); i++) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(1000);
                struct jw w = JW(&b);
                jw_int(&w, NULL, n[i].in);
                assert_string_equal(buf_str(&b), n[i].out);
        }
}

static void years_beyond_four_digits_are_written_in_full(void **state) {
        static const struct {
                int64_t s;
                const char *out, *micro; /* micro: with microseconds; NULL: not checked */
        } c[] = {
                { -62167219200, "\"0000-01-01T00:00:00Z\"", "\"0000-01-01T00:00:00.000000Z\"" },
                { -62167219201, "\"-001-12-31T23:59:59Z\"", NULL },
                { 253402300799, "\"9999-12-31T23:59:59Z\"", "\"9999-12-31T23:59:59.000000Z\"" },
                { 253402300800, "\"10000-01-01T00:00:00Z\"", NULL },
        };
        for (size_t i = 0; i < ARRAY_LEN(c); i++) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(1000);
                struct jw w = JW(&b);
                jw_time(&w, NULL, c[i].s);
                assert_string_equal(buf_str(&b), c[i].out);
                buf_clear(&b);
                w = JW(&b);
                jw_time_micro(&w, NULL, c[i].s * 1000000);
                if (c[i].micro)
                        assert_string_equal(buf_str(&b), c[i].micro);
        }
}

/* A text that was cut inside a character, or came from a program that does not write UTF-8. */
/* failure: a text is cut inside a character or is not UTF-8 -> the JSON that is written stays valid */
static void writes_only_valid_utf8(void **state) {
        static const struct {
                const char *in, *out;
        } c[] = {
                { "caf\xc3\xa9", "caf\xc3\xa9" },
                { "caf\xc3", "caf\xef\xbf\xbd" },
                { "a\xff\xfe"
                  "b",
                  "a\xef\xbf\xbd\xef\xbf\xbd"
                  "b" },
                { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
        };
        for (size_t i = 0; i < ARRAY_LEN(c); i++) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(1000);
                struct jw w = JW(&b);
                jw_obj(&w, NULL);
                jw_str(&w, c[i].in, c[i].in);
                jw_end_obj(&w);
                struct err e;
                yyjson_doc *doc = json_parse((struct str){ b.p, b.n }, YYJSON_READ_NOFLAG, &e);
                if (!doc)
                        fail_msg("%s: %s", b.p, e.msg);
                assert_string_equal(yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), c[i].out)),
                                    c[i].out);
                yyjson_doc_free(doc);
        }
}

struct written {
        char text[4];
        struct item in;
        struct doc doc;
        bool flag;
};
static const struct jd_field f_content[] = {
        JD_STR(struct doc, "name", name, .required = true),
        JD_TIME(struct doc, "when", when),
        JD_LIST(struct doc, "items", items, struct item, f_item),
        JD_STRS(struct doc, "tags", tags, .omit_empty = true),
        JD_MAP(struct doc, "labels", labels),
        JD_RAW(struct doc, "raw", raw),
        JD_OPTOBJ(struct doc, "opt", opt, struct item, f_item),
        JD_END,
};
static const struct jd_field f_written[] = {
        JD_TEXT(struct written, "text", text),
        JD_INLINE(struct written, in, f_item),
        JD_OBJ(struct written, "doc", doc, f_content),
        JD_BOOL(struct written, "flag", flag, .omit_empty = true),
        JD_END,
};

static void encodes_what_it_decodes(void **state) {
        static const char *const texts[] = {
                /* the members that are always written */
                "{\"text\":\"\",\"request\":\"\",\"admin\":false,\"n\":0,\"doc\":{\"name\":\"\",\"items\":[],"
                "\"labels\":{}}}",
                "{\"text\":\"abc\",\"request\":\"r\",\"admin\":true,\"n\":-3,\"doc\":{\"name\":\"x\","
                "\"when\":\"2026-01-02T03:04:05Z\",\"items\":[{\"request\":\"a\",\"admin\":false,\"n\":1},"
                "{\"request\":\"b\",\"admin\":true,\"n\":2}],\"tags\":[\"p\",\"q\"],\"labels\":{\"k\":\"v\"},"
                "\"raw\":{\"z\":1},\"opt\":{\"request\":\"op\",\"admin\":false,\"n\":0}},\"flag\":true}",
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(0);
                _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
                struct written d = { 0 }, copy = { 0 };
                struct jw w = JW(&b);
                struct err e;
                assert_int_equal(jd_decode_strict(f_written, str_from(texts[i]), a, &d, &e), 0);
                jd_copy(f_written, &d, a, &copy);
                assert_true(jd_equal(f_written, &d, &copy));
                jd_encode(f_written, &copy, &w, NULL);
                assert_string_equal(buf_str(&b), texts[i]);
        }
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        struct jw w = JW(&b);
        jd_encode(f_written, &(struct written){ 0 }, &w, NULL);
        assert_string_equal(buf_str(&b), texts[0]);
}

static void a_text_that_does_not_fit_is_an_error(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        struct written d = { 0 };
        struct err e;
        assert_int_equal(jd_decode_text(f_written, STR("{\"text\":\"abcd\"}"), "", a, &d, &e), -1);
        assert_string_equal(e.msg, "text: too long");
        assert_int_equal(jd_decode_text(f_written, STR("{\"text\":7}"), "", a, &d, &e), -1);
        assert_string_equal(e.msg, "text: not a string");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(decodes_every_type),
                cmocka_unit_test(a_copy_is_independent_of_its_source),
                cmocka_unit_test(equality_compares_every_kind_of_field),
                cmocka_unit_test(equality_ignores_fields_that_the_table_excludes),
                cmocka_unit_test(names_the_place_of_an_error),
                cmocka_unit_test(a_path_skips_missing_members),
                cmocka_unit_test(strict_refuses_unknown_and_duplicate_fields),
                cmocka_unit_test(times_follow_rfc_3339),
                cmocka_unit_test(the_largest_integer_is_read),
                cmocka_unit_test(a_missing_key_has_no_value),
                cmocka_unit_test(nesting_is_counted_outside_of_texts),
                cmocka_unit_test(refuses_absurd_nesting),
                cmocka_unit_test(writes_the_same_text_as_go),
                cmocka_unit_test(the_ends_of_texts_and_numbers_are_written),
                cmocka_unit_test(years_beyond_four_digits_are_written_in_full),
                cmocka_unit_test(writes_only_valid_utf8),
                cmocka_unit_test(encodes_what_it_decodes),
                cmocka_unit_test(a_text_that_does_not_fit_is_an_error),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
