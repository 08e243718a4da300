/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/agent_seat.h"

#define CLIQUE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2"
#define DOMAIN "aaaaaaaa-0000-4000-8000-000000000001"

static void a_seat_is_read_as_it_was_written(void **state) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(AGENT_SEAT_MAX);
        struct agent_seat s;
        agent_seat_render(CLIQUE, DOMAIN, 17, INT64_MAX, &b);
        assert_true(agent_seat_parse(buf_str(&b), &s));
        assert_string_equal(s.clique_id, CLIQUE);
        assert_string_equal(s.domain_uid, DOMAIN);
        assert_int_equal(s.index, 17);
        assert_true(s.epoch == INT64_MAX);
}

static void what_is_no_seat_says_nothing(void **state) {
        static const char *const wrong[] = {
                NULL,
                "",
                "/",
                CLIQUE,
                CLIQUE "/" DOMAIN,
                CLIQUE "/" DOMAIN "/1",
                CLIQUE "/" DOMAIN "/1/",
                CLIQUE "/" DOMAIN "/1/2/3",
                CLIQUE "/" DOMAIN "/-1/2",
                CLIQUE "/" DOMAIN "/1/x",
                CLIQUE "/../" DOMAIN "/1/2",
                "/" DOMAIN "/1/2",
                CLIQUE "/no-uid/1/2",
                CLIQUE CLIQUE "/" DOMAIN "/1/2",
        };
        struct agent_seat s;
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                if (agent_seat_parse(wrong[i], &s))
                        fail_msg("'%s'", wrong[i]);
}

static void epochs_are_read_as_they_were_written(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        _cleanup_(buf_done) struct buf b = BUF_INIT(100);
        const int64_t epochs[] = { 3, 70, 5 };
        int64_t *got;
        agent_epochs_render(epochs, 3, &b);
        assert_string_equal(buf_str(&b), "3,70,5");
        assert_int_equal(agent_epochs_parse(buf_str(&b), a, &got), 3);
        assert_memory_equal(got, epochs, sizeof epochs);
        assert_int_equal(agent_epochs_parse(NULL, a, &got), 0);
        assert_int_equal(agent_epochs_parse("x,,7", a, &got), 1);
        assert_int_equal(got[0], 7);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_seat_is_read_as_it_was_written),
                cmocka_unit_test(what_is_no_seat_says_nothing),
                cmocka_unit_test(epochs_are_read_as_they_were_written),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
