/* SPDX-License-Identifier: Apache-2.0 */
/* The program as a container runtime starts it: if its environment lacks something, it ends at once with an
 * error that helps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "../programs/outcome.h"
#include "base/mem.h"

#define UID "aaaaaaaa-0000-4000-8000-000000000001"

static const char *program;

static struct outcome run(const char *const *env) {
        struct outcome o = outcome_of((const char *const[]){ program, NULL }, env);
        assert_int_equal(o.status, 1);
        return o;
}

/* failure: CDI is disabled in the container runtime -> the daemon's error names it and the remedy */
static void a_runtime_without_cdi_is_reported(void **state) {
        struct outcome o = run(
                (const char *const[]){ "NODE_NAME=n0", "POD_NAME=p", "POD_NAMESPACE=ns", "POD_UID=u", NULL });
        assert_non_null(strstr(
                o.out,
                "COMPUTE_DOMAIN_CLAIM_UID is not set: the container runtime has not applied the CDI edits"));
        assert_non_null(strstr(o.out, "Enable CDI"));
}

static void an_invalid_or_missing_environment_variable_is_named(void **state) {
        static const struct {
                const char *const env[8];
                const char *expected;
        } cases[] = {
                { { "COMPUTE_DOMAIN_CLAIM_UID=../../etc" }, "COMPUTE_DOMAIN_CLAIM_UID" },
                { { "COMPUTE_DOMAIN_CLAIM_UID=" UID }, "NODE_NAME" },
                { { "COMPUTE_DOMAIN_CLAIM_UID=" UID, "NODE_NAME=n0", "POD_NAME=p", "POD_NAMESPACE=ns",
                    "POD_UID=u" },
                  "POD_IP" },
                { { "COMPUTE_DOMAIN_CLAIM_UID=" UID, "FEATURE_GATES=NoSuchGate=true" }, "NoSuchGate" },
                { { "COMPUTE_DOMAIN_CLAIM_UID=" UID, "IMEX_CONFIG=[]" }, "IMEX_CONFIG" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct outcome o = run(cases[i].env);
                if (!strstr(o.out, cases[i].expected))
                        fail_msg("'%s' is not in: %s", cases[i].expected, o.out);
        }
}

static void a_command_is_refused(void **state) {
        struct outcome o =
                outcome_of((const char *const[]){ program, "run", NULL }, (const char *const[]){ NULL });
        assert_int_equal(o.status, 1);
        assert_non_null(strstr(o.out, "unexpected argument 'run'"));
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_runtime_without_cdi_is_reported),
                cmocka_unit_test(an_invalid_or_missing_environment_variable_is_named),
                cmocka_unit_test(a_command_is_refused),
        };
        program = argc > 1 ? argv[1] : "compute-domain-daemon";
        return cmocka_run_group_tests(tests, NULL, NULL);
}
