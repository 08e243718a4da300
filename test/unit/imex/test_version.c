/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "imex/imex_version.h"
#include "programs.h"

static char version[IMEX_VERSION_MAX], why[400];
static unsigned answers;

static void on_answer(void *u, const char *v, const char *w) {
        snprintf(version, sizeof version, "%s", v);
        snprintf(why, sizeof why, "%s", w);
        answers++;
}

static void ask(unsigned n) {
        _cleanup_(freep) char *path = in_dir("nvidia-imex");
        answers = 0;
        struct imex_version *v = imex_version_new(TEST_LOOP, path, on_answer, NULL);
        while (answers < n)
                uv_run(TEST_LOOP, UV_RUN_ONCE);
        imex_version_free(v);
        uv_run(TEST_LOOP, UV_RUN_DEFAULT);
}

static void the_version_is_read_from_the_output(void **state) {
        put_script("nvidia-imex", "[ \"$1\" = --version ] && echo 'IMEX version is: 580.95.05'");
        ask(1);
        assert_string_equal(version, "580.95.05");
        assert_string_equal(why, "");
}

static void a_program_that_fails_is_run_again(void **state) {
        put_script("nvidia-imex", "[ -e asked ] && echo 'IMEX version is: 1' && exit 0; touch asked; "
                                  "echo 'error while loading shared libraries'; exit 127");
        ask(2);
        assert_string_equal(version, "1");
        put_script("nvidia-imex", "echo 'error while loading shared libraries'; exit 127");
        ask(1);
        assert_string_equal(version, "");
        assert_string_equal(why, "nvidia-imex --version ended with exit code 127: error while loading shared "
                                 "libraries");
#define X33 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        put_script("nvidia-imex", "echo " X33 X33 X33 "; echo y; exit 1");
        ask(1);
        assert_string_equal(why, "nvidia-imex --version ended with exit code 1: " X33 X33 X33);
}

static void a_missing_or_crashing_program_is_reported(void **state) {
        put_script("nvidia-imex", "kill -SEGV $$");
        ask(1);
        assert_string_equal(why, "nvidia-imex --version was ended by signal 11");
        put_script("nvidia-imex", "exit 0");
        ask(1);
        assert_string_equal(why, "nvidia-imex --version ended with exit code 0");
        _cleanup_(freep) char *path = in_dir("nvidia-imex");
        assert_int_equal(unlink(path), 0);
        ask(1);
        assert_non_null(strstr(why, "nvidia-imex cannot be started: "));
}

static bool parse(const char *text) {
        return imex_version_parse(str_from(text), version);
}

static void only_a_version_is_accepted(void **state) {
        assert_true(parse("warning\nIMEX version is: 590.1-rc_2+b \n"));
        assert_string_equal(version, "590.1-rc_2+b");
        assert_true(parse("IMEX version is:5"));
        assert_string_equal(version, "5");
        assert_true(parse("IMEX version is:\nIMEX version is: 6"));
        assert_string_equal(version, "6");
        assert_false(parse("IMEX version is: 1\""));
        assert_false(parse(""));
        assert_false(parse("580.95.05"));
        assert_false(parse("IMEX version is:"));
        assert_false(parse("IMEX version is: 1 \"2\""));
        assert_false(parse("IMEX version is: 1234567890123456789012345678901234567890"));
        assert_true(parse("IMEX version is: 123456789012345678901234567890123456789"));
}

static int begin(void **state) {
        snprintf(dir, sizeof dir, "/tmp/version.XXXXXX");
        return mkdtemp(dir) ? 0 : -1;
}

static int end(void **state) {
        _cleanup_(freep) char *command = xasprintf("rm -rf %s", dir);
        return system(command);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_version_is_read_from_the_output),
                cmocka_unit_test(a_program_that_fails_is_run_again),
                cmocka_unit_test(a_missing_or_crashing_program_is_reported),
                cmocka_unit_test(only_a_version_is_accepted),
        };
        return cmocka_run_group_tests(tests, begin, end);
}
