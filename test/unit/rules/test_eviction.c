/* SPDX-License-Identifier: Apache-2.0 */
/* Whether pods are evicted from a node whose IMEX has failed. */
#include "rules/eviction.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"

#define BOOT "bbbbbbbb-0000-4000-8000-000000000000"

static struct condition ready = { .type = "Ready", .status = "True" };
static struct condition not_ready = { .type = "Ready", .status = "Unknown" };

static struct node a_node(bool is_ready) {
        return (struct node){ .boot_id = BOOT,
                              .conditions = is_ready ? &ready : &not_ready,
                              .n_conditions = 1 };
}

static void only_a_present_report_of_the_host_counts(void **state) {
        static const struct {
                const char *state;
                enum eviction_imex is;
        } rows[] = { { "DOWN", EVICTION_IMEX_FAILS },
                     { "DEGRADED", EVICTION_IMEX_WORKS },
                     { "UP", EVICTION_IMEX_WORKS },
                     { "UNKNOWN", EVICTION_IMEX_UNKNOWN },
                     { "a state of a later version", EVICTION_IMEX_UNKNOWN },
                     { NULL, EVICTION_IMEX_UNKNOWN } };
        const struct node n = a_node(true), silent = a_node(false);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct plugin_pod p = { .host_state = rows[i].state,
                                        .conditions = &ready,
                                        .n_conditions = 1 };
                assert_int_equal(eviction_of_host(&n, &p), rows[i].is);
                assert_int_equal(eviction_of_host(&silent, &p), EVICTION_IMEX_UNKNOWN);
                assert_int_equal(eviction_of_host(NULL, &p), EVICTION_IMEX_UNKNOWN);
                p.conditions = &not_ready;
                assert_int_equal(eviction_of_host(&n, &p), EVICTION_IMEX_UNKNOWN);
        }
        assert_int_equal(eviction_of_host(&n, NULL), EVICTION_IMEX_UNKNOWN);
}

static void only_a_present_report_of_the_daemon_counts(void **state) {
        static const struct {
                const char *state, *ready;
                enum eviction_imex is;
        } rows[] = { { "READY", "true", EVICTION_IMEX_WORKS },
                     { "READY", "false", EVICTION_IMEX_UNKNOWN },
                     { "BACKOFF", "false", EVICTION_IMEX_FAILS },
                     { "STARTING", "false", EVICTION_IMEX_FAILS },
                     { "INITIALIZING", "false", EVICTION_IMEX_FAILS },
                     { "STARTING_AUTH_SERVER", "false", EVICTION_IMEX_FAILS },
                     { "WAITING_FOR_PEERS", "false", EVICTION_IMEX_FAILS },
                     { "WAITING_FOR_RECOVERY", "false", EVICTION_IMEX_FAILS },
                     { "INIT_GPU", "false", EVICTION_IMEX_FAILS },
                     { "UNAVAILABLE", "false", EVICTION_IMEX_UNKNOWN },
                     { "IDLE", "false", EVICTION_IMEX_UNKNOWN },
                     { "STOPPED", "false", EVICTION_IMEX_UNKNOWN },
                     { "SHUTTING_DOWN", NULL, EVICTION_IMEX_UNKNOWN },
                     { "a state of a later version", "false", EVICTION_IMEX_UNKNOWN },
                     { NULL, NULL, EVICTION_IMEX_UNKNOWN } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const struct node n = a_node(true);
                const struct daemon_report r = { .boot_id = BOOT, .has_assignment = true };
                const struct daemon_pod p = { .pod = { .state = rows[i].state,
                                                       .ready = rows[i].ready,
                                                       .conditions = &ready,
                                                       .n_conditions = 1 } };
                assert_int_equal(eviction_of_daemon(&n, &p, &r), rows[i].is);
        }
        for (int gap = 0; gap < 9; gap++) {
                const struct node n = a_node(gap != 0);
                struct daemon_report r = { .boot_id = gap == 1 ? "another boot" : BOOT,
                                           .has_assignment = gap != 2 };
                struct daemon_pod p = { .pod = { .state = "BACKOFF",
                                                 .conditions = gap == 3 ? &not_ready : &ready,
                                                 .n_conditions = 1 } };
                p.pod.o.meta.deleted = gap == 4;
                p.pod.phase = gap == 5 ? "Failed" : "Running";
                enum eviction_imex is =
                        eviction_of_daemon(gap == 6 ? NULL : &n, gap == 7 ? NULL : &p, gap == 8 ? NULL : &r);
                assert_int_equal(is, EVICTION_IMEX_UNKNOWN);
        }
}

/* failure: IMEX fails on most nodes at once -> no pod is evicted, because the cause is no node */
static void nothing_is_evicted_if_most_nodes_fail(void **state) {
        assert_int_equal(eviction_step(599, 600, 1, 10), EVICTION_WAIT);
        assert_int_equal(eviction_step(600, 600, 1, 10), EVICTION_DUE);
        assert_int_equal(eviction_step(600, 600, 5, 10), EVICTION_DUE);
        assert_int_equal(eviction_step(600, 600, 6, 10), EVICTION_TOO_MANY);
        assert_int_equal(eviction_step(600, 600, 1, 2), EVICTION_DUE);
        assert_int_equal(eviction_step(600, 600, 1, 1), EVICTION_TOO_MANY);
}

static void a_pod_is_refused_for_each_reason(void **state) {
        const struct eviction_pod good = { "u", "n", "Running", false, false, 1 };
        struct eviction_pod p[] = { good, good, good, good, good, good, good, good };
        p[0].uid = "another";
        p[1].uid = NULL;
        p[2].node = "another";
        p[3].deleted = true;
        p[4].phase = "Succeeded";
        p[5].phase = "Failed";
        p[6].n_claims = 0;
        p[7].of_daemon_set = true;
        for (size_t i = 0; i < ARRAY_LEN(p); i++)
                assert_non_null(eviction_refusal(&p[i], "u", "n"));
        assert_null(eviction_refusal(&good, "u", "n"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_a_present_report_of_the_host_counts),
                cmocka_unit_test(only_a_present_report_of_the_daemon_counts),
                cmocka_unit_test(nothing_is_evicted_if_most_nodes_fail),
                cmocka_unit_test(a_pod_is_refused_for_each_reason),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
