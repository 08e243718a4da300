/* SPDX-License-Identifier: Apache-2.0 */
/* The options that all programs have, when a person starts them: test_programs CONTROLLER PLUGIN DAEMON
 * GPU-PLUGIN */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <uv.h>

#include "base/mem.h"
#include "base/flags.h"
#include "outcome.h"

static char **program;
static const char *const name[] = { "compute-domain-controller", "compute-domain-kubelet-plugin",
                                    "compute-domain-daemon", "gpu-kubelet-plugin" };

static void version_prints_only_the_version(void **state) {
        for (size_t i = 0; i < ARRAY_LEN(name); i++) {
                _cleanup_(freep) char *want = xasprintf("%s %s\n", name[i], program_version);
                struct outcome o = outcome_of((const char *const[]){ program[i], "--version", NULL },
                                              (const char *const[]){ "V=0", NULL });
                assert_string_equal(o.out, want);
                assert_int_equal(o.status, 0);
        }
}

/* failure: the path of a folder in the environment is empty -> the program refuses to start */
static void an_empty_folder_is_refused_with_a_reason(void **state) {
        static const char *const env[] = { "CDI_ROOT", "KUBELET_REGISTRAR_DIRECTORY_PATH",
                                           "KUBELET_PLUGINS_DIRECTORY_PATH" };
        for (size_t i = 0; i < ARRAY_LEN(env); i++) {
                _cleanup_(freep) char *set = xasprintf("%s=", env[i]),
                                      *want = xasprintf("(%s) is empty: give a folder, or leave it out",
                                                        env[i]);
                struct outcome o = outcome_of((const char *const[]){ program[1], NULL },
                                              (const char *const[]){ "NODE_NAME=n", set, NULL });
                assert_non_null(strstr(o.out, want));
                assert_int_equal(o.status, 2);
        }
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(version_prints_only_the_version),
                cmocka_unit_test(an_empty_folder_is_refused_with_a_reason),
        };
        if (argc != 5)
                return 2;
        program = argv + 1;
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        uv_loop_close(uv_default_loop());
        return r;
}
