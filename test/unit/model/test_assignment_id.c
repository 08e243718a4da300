/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/assignment_id.h"

#define CLIQUE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2"
#define DOMAIN "aaaaaaaa-0000-4000-8000-000000000001"

static void an_assignment_id_is_parsed_as_it_was_rendered(void **state) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(ASSIGNMENT_ID_MAX);
        struct assignment_id id;
        assignment_id_render(CLIQUE, DOMAIN, 17, INT64_MAX, &b);
        assert_true(assignment_id_parse(buf_str(&b), &id));
        assert_string_equal(id.clique_id, CLIQUE);
        assert_string_equal(id.domain_uid, DOMAIN);
        assert_int_equal(id.index, 17);
        assert_true(id.epoch == INT64_MAX);
}

static void the_longest_assignment_id_fits(void **state) {
        static const char longest[] = "123456789012345678901234567890123456789012345678901234567890123";
        _cleanup_(buf_done) struct buf b = BUF_INIT(ASSIGNMENT_ID_MAX);
        struct assignment_id id;
        assignment_id_render(longest, DOMAIN, INT64_MAX, INT64_MAX, &b);
        assert_false(b.failed);
        assert_true(assignment_id_parse(buf_str(&b), &id));
        assert_string_equal(id.clique_id, longest);
        assert_true(id.index == INT64_MAX);
        assert_false(assignment_id_parse(
                "1234567890123456789012345678901234567890123456789012345678901234/" DOMAIN "/1/2", &id));
        assert_true(assignment_id_parse(CLIQUE "/" DOMAIN "/0/0", &id));
}

static void an_invalid_assignment_id_is_refused(void **state) {
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
                CLIQUE "/" DOMAIN "/1/-2",
                CLIQUE "/" DOMAIN "/1/x",
                CLIQUE "/" DOMAIN "/1/9223372036854775808",
                CLIQUE "/../" DOMAIN "/1/2",
                "/" DOMAIN "/1/2",
                CLIQUE "/no-uid/1/2",
                CLIQUE CLIQUE "/" DOMAIN "/1/2",
        };
        struct assignment_id id;
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                if (assignment_id_parse(wrong[i], &id))
                        fail_msg("'%s'", wrong[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_assignment_id_is_parsed_as_it_was_rendered),
                cmocka_unit_test(the_longest_assignment_id_fits),
                cmocka_unit_test(an_invalid_assignment_id_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
