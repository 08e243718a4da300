/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for a terminal, options, and views. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/resources.h"
#include "base/mem.h"
#include "cli/options.h"
#include "cli/term.h"
#include "cli/view.h"
#include "world/cluster.h"

/* ---- terminal ---- */

static void texts_of_objects_cannot_control_the_terminal(void **state) {
        (void)state;
        struct term t = { .out = BUF_INIT(4096) };
        term_line(&t, "%s",
                  "a\033[31mb\x07\nc\xc2\x9b"
                  "d\xe2\x80\xae"
                  "e\xff"
                  "f\xc3\xa9");
        assert_string_equal(buf_str(&t.out), "a?[31mb? c?d?e?f\xc3\xa9\n");
        buf_done(&t.out);
        t.ascii = true;
        term_line(&t, "%s", "\xc3\xa9");
        assert_string_equal(buf_str(&t.out), "?\n");
        buf_done(&t.out);
}

static void json_contains_no_control_character(void **state) {
        (void)state;
        struct arena *a = arena_new(256);
        struct buf b = BUF_INIT(4096);
        struct jw w = JW(&b);
        jw_obj(&w, NULL);
        term_json(&w, "x", "a\033b\xc2\x9b", a);
        jw_end_obj(&w);
        assert_string_equal(buf_str(&b), "{\"x\":\"a?b?\"}");
        buf_done(&b);
        arena_free(a);
}

static void a_word_of_a_command_is_one_word(void **state) {
        (void)state;
        struct arena *a = arena_new(256);
        assert_string_equal(term_shell_word(a, "gb200-a15.example"), "gb200-a15.example");
        assert_string_equal(term_shell_word(a, "a;b"), "'a;b'");
        assert_string_equal(term_shell_word(a, "it's"), "'it'\\''s'");
        assert_string_equal(term_shell_word(a, "-n"), "'-n'");
        assert_string_equal(term_shell_word(a, ""), "''");
        arena_free(a);
}

static void images_can_be_in_a_manifest(void **state) {
        (void)state;
        static const char *const good[] = { "busybox", "nvcr.io/nvidia/pytorch:25.06-py3",
                                            "r:5000/x@sha256:00" };
        static const char *const bad[] = { "", "-x", "x:", ":x", "@x", "x y", "x\"", "x#", "../x", "x/" };
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                assert_true(options_is_image(good[i]));
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_false(options_is_image(bad[i]));
}

static void long_texts_are_broken_between_words_but_not_in_commands(void **state) {
        (void)state;
        struct term t = { .out = BUF_INIT(4096) };
        term_paragraph(
                &t, "FIX",
                "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
                "`kubectl label namespace x`");
        assert_string_equal(buf_str(&t.out), "FIX    one two three four five six seven eight nine ten eleven "
                                             "twelve thirteen fourteen fifteen\n"
                                             "       `kubectl label namespace x`\n");
        buf_done(&t.out);
}

static void ages_are_short(void **state) {
        (void)state;
        struct arena *a = arena_new(256);
        assert_string_equal(term_age(a, -5), "0s");
        assert_string_equal(term_age(a, 119), "119s");
        assert_string_equal(term_age(a, 130), "2m10s");
        assert_string_equal(term_age(a, 3600), "60m");
        assert_string_equal(term_age(a, 3 * 3600), "3h");
        assert_string_equal(term_age(a, 5 * 86400), "5d");
        arena_free(a);
}

/* ---- options ---- */

static void options_of_kubectl_are_passed_on(void **state) {
        (void)state;
        static char line[] = "why\0-n\0team-b\0--context=prod\0pod-1\0--as\0jane\0--ascii\0--\0-x";
        char *argv[10];
        size_t n = 0;
        for (char *p = line; n < ARRAY_LEN(argv); p += strlen(p) + 1)
                argv[n++] = p;
        struct options_parsed parsed;
        struct err e;
        options = (struct options){ .output = "table" };
        assert_int_equal(options_parse(NULL, ARRAY_LEN(argv), argv, &parsed, &e), 0);
        assert_int_equal(parsed.n_args, 3);
        assert_string_equal(parsed.args[2], "-x");
        assert_int_equal(parsed.n_kubectl, 5);
        assert_string_equal(parsed.kubectl[2], "--context=prod");
        assert_string_equal(parsed.kubectl[4], "jane");
        assert_string_equal(options.ns, "team-b");
        assert_true(options.ascii);
        free(parsed.args);
        free(parsed.kubectl);
        options = (struct options){ .output = "table" };
}

static void wrong_options_are_errors(void **state) {
        (void)state;
        static const char *const cases[][2] = { { "--nonsense", NULL },
                                                { "-z", NULL },
                                                { "--context", NULL },
                                                { "-o", "yaml" },
                                                { "--ascii=maybe", NULL } };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                char first[32], second[32], *argv[] = { first, second };
                struct options_parsed p;
                struct err e;
                snprintf(first, sizeof first, "%s", cases[i][0]);
                snprintf(second, sizeof second, "%s", cases[i][1] ? cases[i][1] : "");
                assert_int_equal(options_parse(NULL, cases[i][1] ? 2 : 1, argv, &p, &e), -1);
                free(p.args);
                free(p.kubectl);
                options = (struct options){ .output = "table" };
        }
}

/* ---- views ---- */

static void an_object_that_cannot_be_decoded_makes_its_list_partial(void **state) {
        (void)state;
        struct cluster *c = cluster_new();
        struct view v;
        cluster_put(c, &kube_nodes, "{'metadata':{'name':'odd'},'spec':{'unschedulable':'maybe'}}");
        view_init(&v, cluster_source(c));
        view_read(&v, VIEW_NODES, NULL);
        assert_int_equal(view_state(&v, VIEW_NODES, NULL), VIEW_PARTIAL);
        assert_non_null(strstr(view_why(&v, VIEW_NODES, NULL), "odd"));
        assert_int_equal(v.kinds[VIEW_NODES].n, 6);
        view_done(&v);
        cluster_free(c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(texts_of_objects_cannot_control_the_terminal),
                cmocka_unit_test(json_contains_no_control_character),
                cmocka_unit_test(a_word_of_a_command_is_one_word),
                cmocka_unit_test(images_can_be_in_a_manifest),
                cmocka_unit_test(long_texts_are_broken_between_words_but_not_in_commands),
                cmocka_unit_test(ages_are_short),
                cmocka_unit_test(options_of_kubectl_are_passed_on),
                cmocka_unit_test(wrong_options_are_errors),
                cmocka_unit_test(an_object_that_cannot_be_decoded_makes_its_list_partial),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
