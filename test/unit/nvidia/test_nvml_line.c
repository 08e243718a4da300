/* SPDX-License-Identifier: Apache-2.0 */
/* Lines between the plugin and its NVML process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "nvidia/nvml_line.h"

static void lines_are_cut_and_read(void **state) {
        struct err e;
        struct nvml_question q;
        struct nvml_answer a;
        assert_int_equal(nvml_question_parse(STR("7 fabric"), &q, &e), 0);
        assert_int_equal(q.id, 7);
        assert_true(str_eq(q.verb, STR("fabric")));
        assert_int_equal(nvml_answer_parse(STR("7 ok {\"a\": 1}"), &a, &e), 0);
        assert_true(a.kind == NVML_YES && a.id == 7 && str_eq(a.text, STR("{\"a\": 1}")));
        assert_int_equal(nvml_answer_parse(STR("8 no -1 cannot load it"), &a, &e), 0);
        assert_true(a.kind == NVML_NO && a.code == -1 && str_eq(a.text, STR("cannot load it")));
        assert_int_equal(nvml_answer_parse(STR("9 at GPU 3"), &a, &e), 0);
        assert_true(a.kind == NVML_AT && a.id == 9 && str_eq(a.text, STR("GPU 3")));
        assert_int_equal(nvml_answer_parse(STR("1 no 2147483647 x"), &a, &e), 0);
        assert_int_equal(a.code, INT32_MAX);
        assert_int_equal(nvml_answer_parse(STR("1 no -2147483648 x"), &a, &e), 0);
        assert_int_equal(a.code, INT32_MIN);
        assert_int_equal(nvml_question_parse(STR("1 x"), &q, &e), 0);
        static const char *const none[] = { "",
                                            " ",
                                            "x ok {}",
                                            "0 ok {}",
                                            "1 at",
                                            "1 at ",
                                            "1",
                                            "1 ok",
                                            "1 ok ",
                                            "1 maybe 1",
                                            "1 no",
                                            "1 no x",
                                            "-1 ok {}",
                                            "1 no 99999999999 x",
                                            "1 no 2147483648 x",
                                            "1 no -2147483649 x" };
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                assert_int_equal(nvml_answer_parse(str_from(none[i]), &a, &e), -1);
        static const char *const no_question[] = { "", "fabric", "1", "1 ", "1 a b", "0 fabric" };
        for (size_t i = 0; i < ARRAY_LEN(no_question); i++)
                assert_int_equal(nvml_question_parse(str_from(no_question[i]), &q, &e), -1);
}

static void an_answer_is_one_line(void **state) {
        struct buf b = BUF_INIT(1024);
        struct str line, rest;
        bool whole;
        struct err e;
        nvml_answer_write(&(struct nvml_answer){ .id = 3, .code = 9, .text = STR("two\nlines") }, &b);
        assert_string_equal(buf_str(&b), "3 no 9 two lines\n");
        rest = (struct str){ b.p, b.n };
        assert_int_equal(nvml_line_next(&rest, &line, &whole, &e), 0);
        assert_true(whole && rest.n == 0 && line.n == b.n - 1);
        buf_done(&b);
        rest = STR("3 ok {\"half");
        assert_int_equal(nvml_line_next(&rest, &line, &whole, &e), 0);
        assert_false(whole);
}

static void a_line_has_at_most_4_mib(void **state) {
        char *big = xmalloc(NVML_LINE_MAX + 2);
        struct str line, rest = { big, NVML_LINE_MAX + 1 };
        bool whole;
        struct err e;
        memset(big, 'x', NVML_LINE_MAX + 2);
        big[NVML_LINE_MAX] = '\n';
        assert_int_equal(nvml_line_next(&rest, &line, &whole, &e), 0);
        assert_true(whole && line.n == NVML_LINE_MAX && rest.n == 0);
        rest = (struct str){ big + 1, NVML_LINE_MAX - 1 };
        big[NVML_LINE_MAX] = 'x';
        assert_int_equal(nvml_line_next(&rest, &line, &whole, &e), 0);
        assert_false(whole);
        rest = (struct str){ big, NVML_LINE_MAX + 1 };
        assert_int_equal(nvml_line_next(&rest, &line, &whole, &e), -1);
        big[NVML_LINE_MAX + 1] = '\n';
        rest = (struct str){ big, NVML_LINE_MAX + 2 };
        assert_int_equal(nvml_line_next(&rest, &line, &whole, &e), -1);
        free(big);
}

/* ---- events ---- */

static void malformed_event_lines_are_refused(void **state) {
        static const char *const bad[] = { "! ",
                                           "! beat x",
                                           "! xid",
                                           "! xid GPU-1",
                                           "! xid GPU-1 79 1",
                                           "! xid GPU-1 -3 1 1",
                                           "! xid GPU-1 -1 1 1",
                                           "! xid GPU-1 79 -2 1",
                                           "! xid GPU-1 79 1 -2",
                                           "! xid GPU-1 79 4294967295 1",
                                           "! xid GPU-1 79 1 4294967295",
                                           "! xid  79 1 1",
                                           "! xid GPU-1 79 1 1 1",
                                           "! end",
                                           "! end x",
                                           "! end 2147483648 a",
                                           "! end -2147483649 a",
                                           "!",
                                           "!beat",
                                           "! other",
                                           "1 ok {}",
                                           "" };
        struct nvml_event ev;
        struct err e;
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_int_equal(nvml_event_parse(str_from(bad[i]), &ev, &e), -1);
        assert_int_equal(nvml_event_parse(STR("! beat"), &ev, &e), 0);
        assert_int_equal(nvml_event_parse(STR("! end 999 a b"), &ev, &e), 0);
        assert_true(ev.kind == NVML_END && ev.code == 999 && str_eq(ev.text, STR("a b")));
}

static void events_of_a_gpu_have_numbers_up_to_their_limits(void **state) {
        char uuid[NVML_UUID_MAX + 2], text[256];
        struct nvml_event ev;
        struct err e;
        assert_int_equal(nvml_event_parse(STR("! xid GPU-1 0 -1 -1"), &ev, &e), 0);
        assert_true(ev.kind == NVML_XID && ev.xid == 0 && ev.gpu_instance == -1 && ev.compute_instance == -1);
        assert_int_equal(
                nvml_event_parse(STR("! xid GPU-1 9223372036854775807 4294967294 4294967294"), &ev, &e), 0);
        assert_true(ev.xid == INT64_MAX && ev.gpu_instance == UINT32_MAX - INT64_C(1) &&
                    ev.compute_instance == UINT32_MAX - INT64_C(1));
        assert_int_equal(nvml_event_parse(STR("! end 2147483647 a"), &ev, &e), 0);
        assert_int_equal(ev.code, INT32_MAX);
        assert_int_equal(nvml_event_parse(STR("! end -2147483648 a"), &ev, &e), 0);
        assert_int_equal(ev.code, INT32_MIN);
        for (size_t n = NVML_UUID_MAX; n <= NVML_UUID_MAX + 1; n++) {
                memset(uuid, 'a', n);
                uuid[n] = '\0';
                snprintf(text, sizeof text, "! xid %s 79 0 0", uuid);
                assert_int_equal(nvml_event_parse(str_from(text), &ev, &e), n > NVML_UUID_MAX ? -1 : 0);
        }
}

static void an_event_begins_with_an_exclamation_mark(void **state) {
        assert_true(nvml_event_is(STR("! ")) && nvml_event_is(STR("! beat")));
        assert_false(nvml_event_is(STR("!")) || nvml_event_is(STR("")) || nvml_event_is(STR("1 ok {}")) ||
                     nvml_event_is(STR("!x")) || nvml_event_is((struct str){ "! ", 1 }));
}

/* Decodes the result of a watch of n GPUs, of which the last has a UUID of this length. */
static int watched(size_t n, size_t uuid_n, struct nvml_watched *ret, struct arena *a) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        struct err e;
        buf_adds(&b, "{\"gpus\":[");
        for (size_t i = 0; i + 1 < n; i++)
                buf_adds(&b, "{\"uuid\":\"GPU-1\",\"error\":0},");
        buf_adds(&b, "{\"error\":15,\"call\":\"f\",\"uuid\":\"");
        for (size_t i = 0; i < uuid_n; i++)
                buf_addc(&b, 'a');
        buf_adds(&b, "\"}]}");
        return nvml_watched_decode((struct str){ buf_str(&b), b.n }, a, ret, &e);
}

static void at_most_64_gpus_are_watched(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct nvml_watched w;
        assert_int_equal(watched(64, NVML_UUID_MAX, &w, a), 0);
        assert_int_equal(w.n_gpus, 64);
        assert_string_equal(w.gpus[0].call, "");
        assert_string_equal(w.gpus[62].call, "");
        assert_int_equal(w.gpus[63].error, 15);
        assert_string_equal(w.gpus[63].call, "f");
        assert_int_equal(watched(65, NVML_UUID_MAX, &w, a), -1);
        assert_int_equal(watched(1, NVML_UUID_MAX + 1, &w, a), -1);
        static const char *const bad[] = { "", "{}", "[]", "{\"gpus\":[{}]}",
                                           "{\"gpus\":[{\"uuid\":\"\"}]}" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_int_equal(nvml_watched_decode(str_from(bad[i]), a, &w, &(struct err){ 0 }), -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_are_cut_and_read),
                cmocka_unit_test(an_answer_is_one_line),
                cmocka_unit_test(a_line_has_at_most_4_mib),
                cmocka_unit_test(malformed_event_lines_are_refused),
                cmocka_unit_test(events_of_a_gpu_have_numbers_up_to_their_limits),
                cmocka_unit_test(an_event_begins_with_an_exclamation_mark),
                cmocka_unit_test(at_most_64_gpus_are_watched),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
