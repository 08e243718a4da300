/* SPDX-License-Identifier: Apache-2.0 */
#include "model/fabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "base/str.h"

#define CLIQUE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2"

/* Daemons of two versions must use the same UID for one IMEX domain, so the value must not change. */
/* failure: the driver is upgraded -> the standing domain of a partition keeps its name [standing] */
static void the_standing_domain_has_a_constant_uid(void **state) {
        char uid[37], other[37];
        (void)state;
        fabric_standing_uid(CLIQUE, uid);
        assert_true(str_is_uuid(uid));
        assert_int_equal(uid[14], '8');
        assert_non_null(strchr("89ab", uid[19]));
        assert_string_equal(uid, "704a998b-ca1a-87ca-87b5-154e8476193d");
        fabric_standing_uid("2df84740-d3cb-b5ce-4e7e-98352b5a71b5.3", other);
        assert_string_not_equal(uid, other);
}

static void a_domain_belongs_to_a_computedomain_or_to_the_partition(void **state) {
        (void)state;
        assert_true(fabric_domain_is_standing(&(struct fabric_domain){ .owner.kind = CD_FABRIC_KIND }));
        assert_false(fabric_domain_is_standing(&(struct fabric_domain){ .owner.kind = CD_KIND }));
        assert_false(fabric_domain_is_standing(&(struct fabric_domain){ .owner.kind = NULL }));
}

static void an_assignment_is_active_unless_it_has_a_state(void **state) {
        static const struct {
                const char *state;
                bool active, reserved, leaving;
        } rows[] = {
                { NULL, true, false, false },
                { "", true, false, false },
                { "Reserved", false, true, false },
                { "Leaving", false, false, true },
                { "Ending", false, false, true },
                { "Unknown", false, false, false }, /* from a later version: no daemon runs IMEX for it */
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const struct fabric_assignment a = { .node = "n", .state = rows[i].state };
                assert_true(fabric_is_active(&a) == rows[i].active);
                assert_true(fabric_is_reserved(&a) == rows[i].reserved);
                assert_true(fabric_is_leaving(&a) == rows[i].leaving);
        }
}

static void the_assignment_of_a_node_is_found_in_any_state(void **state) {
        struct fabric_assignment list[] = { { .node = "n1" }, { .node = "n2", .state = "Leaving" } };
        const struct fabric_domain d = { .assignments = list, .n_assignments = 2 };
        (void)state;
        assert_ptr_equal(fabric_assignment_of(&d, "n2"), &list[1]);
        assert_null(fabric_assignment_of(&d, "n3"));
}

/* The sanitizer sees a read behind the end of the lists. */
static void the_last_domain_and_channel_are_found_and_nothing_behind_them(void **state) {
        struct fabric_domain *domains = xnew_n(struct fabric_domain, 2);
        struct fabric_channel *channels = xnew_n(struct fabric_channel, 2);
        const struct compute_domain_fabric f = { .o.meta.uid = "o",
                                                 .table_of = "o",
                                                 .domains = domains,
                                                 .n_domains = 2,
                                                 .channels = channels,
                                                 .n_channels = 2 };
        (void)state;
        domains[0].owner.uid = channels[0].owner.uid = "a";
        domains[1].owner.uid = channels[1].owner.uid = "b";
        assert_ptr_equal(fabric_domain_at(&f, "b"), &domains[1]);
        assert_null(fabric_domain_at(&f, "c"));
        assert_ptr_equal(fabric_channel_of(&f, "b"), &channels[1]);
        assert_null(fabric_channel_of(&f, "c"));
        free(domains);
        free(channels);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_standing_domain_has_a_constant_uid),
                cmocka_unit_test(a_domain_belongs_to_a_computedomain_or_to_the_partition),
                cmocka_unit_test(an_assignment_is_active_unless_it_has_a_state),
                cmocka_unit_test(the_assignment_of_a_node_is_found_in_any_state),
                cmocka_unit_test(the_last_domain_and_channel_are_found_and_nothing_behind_them),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
