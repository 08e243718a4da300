/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "imex/imex_grants.h"
#include "imex/imex_state.h"
#include "base/mem.h"

#define ONE "c0000000-0000-4000-8000-000000000001"
#define TWO "c0000000-0000-4000-8000-000000000002"

static char dir[] = "/tmp/test_imex_grants.XXXXXX";

static int setup(void **state) {
        return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state) {
        return rmdir(dir);
}

static bool any(void) {
        bool ret;
        struct err e;

        assert_int_equal(imex_grants_any(dir, &ret, &e), 0);
        return ret;
}

static void put(const char *claim) {
        struct err e;

        assert_int_equal(imex_grants_put(dir, claim, &e), 0);
}

static void take(const char *claim) {
        struct err e;

        assert_int_equal(imex_grants_remove(dir, claim, false, &e), 0);
}

static void there_is_a_grant_from_the_first_to_the_last(void **state) {
        _cleanup_(freep) char *folder = file_join(dir, IMEX_GRANTS_DIR);
        struct stat st;

        assert_false(any());
        put(ONE);
        put(ONE);
        put(TWO);
        assert_true(any());
        take(ONE);
        assert_true(any());
        take(TWO);
        take(TWO);
        assert_false(any());
        assert_int_equal(stat(folder, &st), -1);
}

static void what_is_no_claim_is_no_grant(void **state) {
        _cleanup_(freep) char *folder = file_join(dir, IMEX_GRANTS_DIR);
        _cleanup_(freep) char *path = file_join(folder, ".c0000000.tmp");
        struct err e;

        assert_int_equal(file_mkdirs(path, 0755, &e), 0);
        assert_false(any());
        rmdir(path);
        rmdir(folder);
}

static void grant_that_cannot_be_made_says_so(void **state) {
        _cleanup_(freep) char *folder = file_join(dir, IMEX_GRANTS_DIR);
        struct err e;

        assert_int_equal(file_replace_volatile(folder, "", 0, 0644, &e), 0);
        assert_int_equal(imex_grants_put(dir, ONE, &e), -1);
        unlink(folder);
}

/* The two sides of the interlock, in each order in which their steps may come: the plugin makes its file and
 * then looks whether IMEX is ready; whoever runs IMEX withdraws that and then looks for files. */
static void no_order_of_the_steps_gives_out_a_channel_on_an_imex_that_ends(void **state) {
        for (unsigned order = 0; order < 16; order++) {
                struct imex_state s = { .ready = true, .status = "READY" }, seen;
                unsigned plugin = 0, runner = 0;
                bool given = false, ends = false, held;
                struct err e;
                int lock = -1;

                assert_int_equal(imex_state_write(dir, &s, &lock, &e), 0);
                for (unsigned step = 0; step < 4; step++) {
                        bool plugins = plugin < 2 && (runner == 2 || order >> step & 1);

                        if (plugins && plugin++ == 0) {
                                put(ONE);
                        } else if (plugins) {
                                assert_int_equal(imex_state_read(dir, &seen, &held, &e), 0);
                                given = seen.ready;
                        } else if (runner++ == 0) {
                                s.ready = false;
                                assert_int_equal(imex_state_write(dir, &s, &lock, &e), 0);
                        } else {
                                ends = !any();
                        }
                }
                assert_false(given && ends);
                close(lock);
                take(ONE);
                _cleanup_(freep) char *path = file_join(dir, IMEX_STATE_FILE);
                unlink(path);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(there_is_a_grant_from_the_first_to_the_last),
                cmocka_unit_test(what_is_no_claim_is_no_grant),
                cmocka_unit_test(grant_that_cannot_be_made_says_so),
                cmocka_unit_test(no_order_of_the_steps_gives_out_a_channel_on_an_imex_that_ends),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
