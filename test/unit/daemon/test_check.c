/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "daemon/check.h"
#include "imex/imex_state.h"

#define CLAIM "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"

static char dir[] = "/tmp/test_check.XXXXXX";

static int setup(void **state) {
        return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state) {
        _cleanup_(freep) char *path = file_join(dir, IMEX_STATE_FILE);

        unlink(path);
        return rmdir(dir);
}

static void test_without_fabric(void **state) {
        struct err e;

        assert_int_equal(check("/no/such/folder", "", CLAIM, &e), 0);
}

static void test_states(void **state) {
        struct imex_state s = { .boot_id = "boot",
                                .claim_uid = CLAIM,
                                .pod_uid = "pod",
                                .index = 1,
                                .ready = true,
                                .status = "READY" };
        int lock = -1;
        struct err e;

        assert_int_equal(check(dir, "uuid.1", CLAIM, &e), -1);
        assert_non_null(strstr(e.msg, "no state of the IMEX daemon"));

        assert_int_equal(imex_state_write(dir, &s, &lock, &e), 0);
        assert_int_equal(check(dir, "uuid.1", CLAIM, &e), 0);
        assert_int_equal(check(dir, "uuid.1", "", &e), 0);
        assert_int_equal(check(dir, "uuid.1", "another", &e), -1);

        s.ready = false;
        strcpy(s.status, "WAITING_FOR_RECOVERY");
        strcpy(s.reason, "nvidia-imex is WAITING_FOR_RECOVERY");
        assert_int_equal(imex_state_write(dir, &s, &lock, &e), 0);
        assert_int_equal(check(dir, "uuid.1", CLAIM, &e), -1);
        assert_string_equal(e.msg, "nvidia-imex is WAITING_FOR_RECOVERY (IMEX: WAITING_FOR_RECOVERY)");

        s.ready = true;
        assert_int_equal(imex_state_write(dir, &s, &lock, &e), 0);
        close(lock);
        assert_int_equal(check(dir, "uuid.1", CLAIM, &e), -1);
        assert_non_null(strstr(e.msg, "not running any more"));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_without_fabric),
                                            cmocka_unit_test(test_states) };

        return cmocka_run_group_tests(tests, setup, teardown);
}
