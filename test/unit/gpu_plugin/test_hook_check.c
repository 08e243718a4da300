/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "gpu_plugin/gpu_hook.h"
#include "world/fake_server.h"
#include "tree.h"

static char *dir, *program;
static char problem[4096];
static bool done, without_profiles;
static uv_loop_t loop;

static int setup(void **state) {
        (void)state;
        dir = tree_new();
        program = file_join(dir, "hook");
        done = without_profiles = false;
        return uv_loop_init(&loop);
}

static int teardown(void **state) {
        (void)state;
        free(program);
        tree_remove(dir);
        loop_end(&loop);
        return 0;
}

static void on_checked(void *u, const char *text, bool no_profiles) {
        (void)u;
        without_profiles = no_profiles;
        snprintf(problem, sizeof problem, "%s", text);
        done = true;
}

/* Returns the problem of the hook. `root`: NULL for our hook. */
static const char *check(const char *path, const char *root) {
        struct hook_check *c = gpu_hook_check(
                &loop, &(struct hook_check_options){ .program = path, .root = root, .done = on_checked });
        RUN_UNTIL(&loop, done);
        gpu_hook_check_free(c);
        return problem;
}

static void a_hook_that_passes_its_self_test_is_used(void **state) {
        (void)state;
        tree_put(dir, "hook", "#!/bin/sh\n[ \"$*\" = self-test ]\n");
        assert_string_equal(check(program, NULL), "");
}

/* failure: the kernel refuses a call of the hook -> the self-test reports the call */
static void the_call_that_fails_in_the_self_test_is_reported(void **state) {
        (void)state;
        tree_put(dir, "hook",
                 "#!/bin/sh\necho 'cdi-hook: fsopen of tmpfs: Function not implemented' >&2\nexit 1\n");
        assert_string_equal(check(program, NULL), "cdi-hook: fsopen of tmpfs: Function not implemented");
}

static void a_self_test_that_prints_nothing_is_reported_by_its_status(void **state) {
        (void)state;
        tree_put(dir, "hook", "#!/bin/sh\nkill -SYS $$\n");
        assert_non_null(strstr(check(program, NULL), "its self-test ended with status -1, signal 31"));
}

/* failure: the configured hook does not exist -> the error names it */
static void a_missing_hook_is_named(void **state) {
        (void)state;
        assert_non_null(strstr(check("/nowhere/hook", NULL), "'/nowhere/hook' cannot be run"));
}

/* nvidia-cdi-hook lists its commands in its help. */
/* failure: an old nvidia-cdi-hook lacks a command -> the error names the command and the version */
static void nvidias_hook_must_have_the_other_commands(void **state) {
        (void)state;
        tree_put(
                dir, "hook",
                "#!/bin/sh\n[ \"$*\" = --help ] && echo create-symlinks update-ldcache enable-cuda-compat\n");
        const char *text = check(program, "/");
        assert_non_null(strstr(text, "(nvidiaCDIHookPath) has no command disable-device-node-modification"));
        assert_non_null(strstr(text, "1.17.8 or newer"));
        done = false;
        tree_put(dir, "hook",
                 "#!/bin/sh\necho create-symlinks update-ldcache enable-cuda-compat "
                 "disable-device-node-modification update-application-profile\n");
        assert_string_equal(check(program, "/"), "");
        assert_false(without_profiles);
        done = false;
        assert_non_null(
                strstr(check("/nowhere/nvidia-cdi-hook", "/"), "'/nowhere/nvidia-cdi-hook' cannot be run"));
}

/* failure: nvidia-cdi-hook is older than 1.20.0 -> it is used without update-application-profile */
static void nvidias_hook_may_lack_the_application_profile(void **state) {
        (void)state;
        tree_put(dir, "hook",
                 "#!/bin/sh\necho create-symlinks update-ldcache enable-cuda-compat "
                 "disable-device-node-modification\n");
        assert_string_equal(check(program, "/"), "");
        assert_true(without_profiles);
}

/* The CDI files name the commands of nvidia-ctk below its command "hook". */
/* failure: nvidia-ctk is configured as the hook -> the check runs it as the CDI files do */
static void the_check_runs_nvidia_ctk_as_the_cdi_files_do(void **state) {
        _cleanup_(freep) char *ctk = file_join(dir, "nvidia-ctk");
        (void)state;
        tree_put(dir, "nvidia-ctk",
                 "#!/bin/sh\n[ \"$*\" = 'hook --help' ] && echo create-symlinks update-ldcache "
                 "enable-cuda-compat disable-device-node-modification update-application-profile\n");
        assert_string_equal(check(ctk, "/"), "");
        done = false;
        tree_put(dir, "nvidia-ctk", "#!/bin/sh\n[ \"$*\" = 'hook --help' ] && echo update-ldcache\n");
        assert_non_null(strstr(check(ctk, "/"), "has no command create-symlinks"));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_hook_that_passes_its_self_test_is_used),
                T(the_call_that_fails_in_the_self_test_is_reported),
                T(a_self_test_that_prints_nothing_is_reported_by_its_status),
                T(a_missing_hook_is_named),
                T(nvidias_hook_must_have_the_other_commands),
                T(nvidias_hook_may_lack_the_application_profile),
                T(the_check_runs_nvidia_ctk_as_the_cdi_files_do),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
