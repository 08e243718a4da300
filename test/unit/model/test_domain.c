/* SPDX-License-Identifier: Apache-2.0 */
#include "model/domain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "api/names.h"

static void a_deleted_domain_ends_when_only_finalizers_of_kubernetes_and_the_driver_are_left(void **state) {
        const char *finalizers[] = { CD_FINALIZER, "orphan", "foregroundDeletion", "other/finalizer" };
        struct compute_domain cd = { .o.meta.uid = "u", .finalizers = finalizers, .n_finalizers = 3 };
        assert_false(domain_ends(&cd));
        cd.o.meta.deleted = 1;
        assert_true(domain_ends(&cd));
        cd.n_finalizers = 4;
        assert_false(domain_ends(&cd));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(
                a_deleted_domain_ends_when_only_finalizers_of_kubernetes_and_the_driver_are_left) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
