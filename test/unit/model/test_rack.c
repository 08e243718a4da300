/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rack.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/mem.h"

#define UUID "3F7c1b2a-1111-2222-3333-444455556666"
#define LONG "a123456789b123456789c123456789d123456789e123456789f123456789g12"

static void a_rack_is_identified_by_a_label_or_its_clique_id(void **state) {
        static const struct {
                const char *label, *clique, *id, *name, *whole;
        } cases[] = {
                { "S0-011-US-WEST-01A", UUID ".1", "s0-011-us-west-01a", "s0-011-us-west-01a",
                  "s0-011-us-west-01a" },
                { "a", NULL, "a", "a", "a" },
                { NULL, "123456789.1", "123456789.1", "rack-12345678-1", "rack-123456789-1" },
                { "Rack_7.b", NULL, "rack-7-b", "rack-7-b", "rack-7-b" },
                { LONG, "", LONG, LONG, LONG },
                { NULL, UUID ".1", "3f7c1b2a-1111-2222-3333-444455556666.1", "rack-3f7c1b2a-1",
                  "rack-3f7c1b2a-1111-2222-3333-444455556666-1" },
                { "", UUID ".32766", "3f7c1b2a-1111-2222-3333-444455556666.32766", "rack-3f7c1b2a-32766",
                  "rack-3f7c1b2a-1111-2222-3333-444455556666-32766" },
                { "---", UUID ".0", "3f7c1b2a-1111-2222-3333-444455556666.0", "rack-3f7c1b2a-0",
                  "rack-3f7c1b2a-1111-2222-3333-444455556666-0" },
                { "", "", NULL, NULL, NULL },
                { NULL, NULL, NULL, NULL, NULL },
                { NULL, "no-number", NULL, NULL, NULL },
                { NULL, LONG LONG ".1", NULL, NULL, NULL },
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                char id[RACK_MAX + 1];
                struct buf b = BUF_INIT(256);
                bool is = rack_id(cases[i].label, cases[i].clique, id);
                assert_int_equal(is, cases[i].id != NULL);
                if (is) {
                        assert_string_equal(id, cases[i].id);
                        rack_domain_name(id, false, &b);
                        assert_string_equal(buf_str(&b), cases[i].name);
                        buf_clear(&b);
                        rack_domain_name(id, true, &b);
                        assert_string_equal(buf_str(&b), cases[i].whole);
                }
                buf_done(&b);
        }
}

/* failure: the label that names the rack has an empty value -> it counts as missing */
static void an_empty_label_is_no_label(void **state) {
        (void)state;
        assert_true(rack_is_labelled("S0-011"));
        assert_false(rack_is_labelled(""));
        assert_false(rack_is_labelled(NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_rack_is_identified_by_a_label_or_its_clique_id),
                cmocka_unit_test(an_empty_label_is_no_label),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
