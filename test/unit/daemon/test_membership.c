/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/membership.h"

static struct membership of(const char *annotations, const char *daemons, bool dns_names, int64_t held,
                            struct arena *a) {
        _cleanup_(freep) char *text = xasprintf("{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"1\","
                                                "\"annotations\":{%s}},\"daemons\":[%s]}",
                                                annotations, daemons);
        struct clique c = { 0 };
        struct membership m;
        struct err e;

        assert_int_equal(jd_decode_text(clique_fields, text, strlen(text), false, "", a, &c, &e), 0);
        membership_of(&c.imex, "n0", dns_names, held, a, &m);
        assert_true((m.members.own_index < 0) == (*m.why != '\0'));
        return m;
}

#define N0 "{\"nodeName\":\"n0\",\"ipAddress\":\"10.0.0.1\",\"index\":2,\"status\":\"NotReady\"}"
#define N0_WITHOUT_IP "{\"nodeName\":\"n0\",\"ipAddress\":\"\",\"index\":2}"
#define N1 "{\"nodeName\":\"n1\",\"ipAddress\":\"10.0.0.2\",\"index\":0,\"status\":\"Ready\"}"
#define N2 "{\"nodeName\":\"n2\",\"ipAddress\":\"\",\"index\":1}"
#define INFIX "\"resource.nvidia.com/imex-name-infix\":\"ab12\""
#define THREE "\"resource.nvidia.com/num-nodes\":\"3\""

static void test_names(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct membership m = of(INFIX, N1 "," N0 "," N2, true, -1, a);

        assert_int_equal(m.members.own_index, 2);
        assert_string_equal(m.members.infix, "ab12");
        assert_int_equal(m.members.n_peers, 2);
        assert_string_equal(m.members.peers[0].ip, "10.0.0.2");
        assert_true(m.members.peers[0].ready);
        assert_int_equal(m.members.peers[1].index, 1);
        assert_string_equal(m.members.peers[1].ip, "");
        assert_false(m.members.peers[1].ready);

        /* Our index counts before the controller knows our address. */
        m = of(INFIX, N0_WITHOUT_IP, true, -1, a);
        assert_int_equal(m.members.own_index, 2);
}

static void test_adopted_from_the_go_driver(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct membership m = of("", N0, true, -1, a);

        assert_int_equal(m.members.own_index, 2);
        assert_string_equal(m.members.infix, "");
}

static void test_not_listed(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);

        assert_non_null(strstr(of(INFIX, N1, true, -1, a).why, "no index"));
        assert_non_null(strstr(of(INFIX, "", true, -1, a).why, "no index"));
}

/* Absence is no statement, and somebody else's name is. */
static void test_held_index_is_given_up_to_somebody_only(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct membership m = of(INFIX, N1, true, 2, a);

        assert_int_equal(m.members.own_index, 2);
        assert_true(m.unlisted);
        assert_int_equal(m.members.n_peers, 1);
        assert_int_equal(of(INFIX, "", true, 2, a).members.own_index, 2);
        m = of(INFIX, N1, true, 0, a);
        assert_int_equal(m.members.own_index, -1);
        assert_false(m.unlisted);
        assert_non_null(strstr(m.why, "index 0 to node n1"));
        m = of(INFIX, N1 "," N0, true, 0, a);
        assert_int_equal(m.members.own_index, 2); /* we were moved */
        assert_false(m.unlisted);
}

static void test_bad_infix(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);

        assert_non_null(
                strstr(of("\"resource.nvidia.com/imex-name-infix\":\"a b\"", N0, true, -1, a).why, "'a b'"));
}

static void test_addresses_wait_for_all(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);

        assert_non_null(strstr(of(THREE, N0 "," N1 "," N2, false, -1, a).why, "2 of 3 are there"));
        assert_int_equal(of(THREE, N0 "," N1 "," N2, false, 2, a).members.own_index, 2); /* it runs already */
        assert_int_equal(
                of("\"resource.nvidia.com/num-nodes\":\"2\"", N0 "," N1, false, -1, a).members.own_index, 2);
        assert_non_null(strstr(of("\"resource.nvidia.com/num-nodes\":\"0\"", N0 "," N1, false, -1, a).why,
                               "spec.numNodes is 0"));
        assert_non_null(strstr(of("", N0 "," N1, false, -1, a).why, "spec.numNodes is 0"));
        assert_non_null(strstr(of("\"resource.nvidia.com/num-nodes\":\"x\"", N0, false, -1, a).why,
                               "spec.numNodes is 0"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_adopted_from_the_go_driver),
                cmocka_unit_test(test_not_listed),
                cmocka_unit_test(test_held_index_is_given_up_to_somebody_only),
                cmocka_unit_test(test_bad_infix),
                cmocka_unit_test(test_addresses_wait_for_all),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
