/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/backoff.h"

static void test_grows_and_stops(void **state) {
        for (int i = 0; i < 1000; i++) {
                assert_in_range(backoff_ms(100, 1000, 0), 75, 125);
                assert_in_range(backoff_ms(100, 1000, 1), 75, 125);
                assert_in_range(backoff_ms(100, 1000, 3), 300, 500);
                assert_in_range(backoff_ms(100, 1000, 5), 750, 1250);
                assert_in_range(backoff_ms(100, 1000, UINT32_MAX), 750, 1250);
        }
        assert_int_equal(backoff_ms(0, 0, 7), 0);
        assert_int_equal(backoff_spread(1), 1);
}

/* failure: many nodes retry at once -> their delays are spread */
static void test_spreads(void **state) {
        unsigned low = 0, high = 0;
        for (int i = 0; i < 1000; i++) {
                unsigned ms = backoff_spread(1000);
                assert_in_range(ms, 750, 1250);
                low += ms < 850;
                high += ms > 1150;
        }
        assert_true(low > 100 && high > 100);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_grows_and_stops),
                                            cmocka_unit_test(test_spreads) };
        return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
