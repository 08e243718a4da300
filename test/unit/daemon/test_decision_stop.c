/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/decision: what stops IMEX, SIGTERM, and the end of IMEX. */
#include "decision_world.h"

/* A reason to leave: whether the daemon may leave, and how. */
struct unwanted {
        const char *name;
        bool leaves; /* when no claim uses it; false: nothing stops it */
};
static const struct unwanted reasons[] = {
        { "no object", false },
        { "an object that does not list it", false },
        { "an object that lists its epoch for another claim", false },
        { "an object that reserves its index", false },
        { "Leaving", true },
        { "another index", true },
        { "other names", true },
        { "another epoch in the same domain", true },
        { "another partition", true },
};

static void set_reason(struct world *w, size_t i) {
        serve(w);
        w->in.fabric = &w->fabric;
        w->in.moved = false;
        w->in_a[0] = assignment("n0", 2, 5);
        w->domains[0].n_assignments = 1;
        w->domains[0].imex.infix = "aa";
        if (i == 0)
                w->in.fabric = NULL;
        if (i == 1)
                w->domains[0].n_assignments = 0;
        if (i == 2)
                w->in_a[0].claim = "another";
        if (i == 3)
                w->in_a[0].state = "Reserved";
        if (i == 4)
                w->in_a[0].state = "Leaving";
        if (i == 5)
                w->in_a[0].index = 3;
        if (i == 6)
                w->domains[0].imex.infix = "zz";
        if (i == 7)
                w->in_a[0].epoch = 7;
        if (i == 8)
                w->in.moved = true;
}

#define assert_step(w, i, wanted)                                                                            \
        do {                                                                                                 \
                enum decision_step step = decide(w);                                                         \
                if (step != (wanted))                                                                        \
                        fail_msg("%s: step %d", reasons[i].name, step);                                      \
        } while (0)

/* failure: any reason to leave appears under a prepared claim -> IMEX continues, except after a deletion */
static void only_a_deletion_stops_imex_in_use(void **state) {
        static const enum imex_use uses[] = { IMEX_USE_GRANTING, IMEX_USE_PREPARED, IMEX_USE_UNKNOWN };
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                for (size_t j = 0; j < ARRAY_LEN(uses); j++) {
                        set_reason(w, i);
                        w->in.use = uses[j];
                        assert_step(w, i, DECISION_STAY);
                        assert_int_equal(w->d.memory.n_left, 0);
                        assert_int_equal(*w->d.waits_for != '\0', reasons[i].leaves);
                }
}

static void unused_imex_stops_when_its_readiness_is_withdrawn(void **state) {
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
                set_reason(w, i);
                w->in.use = IMEX_USE_NONE;
                assert_step(w, i, reasons[i].leaves ? DECISION_WITHDRAW : DECISION_STAY);
                if (!reasons[i].leaves)
                        continue;
                w->in.withdrawn = true;
                assert_step(w, i, DECISION_LEAVE);
        }
}

/* In between the plugin was about to prepare a claim. */
static void a_claim_prepared_in_the_meantime_restores_readiness(void **state) {
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
                set_reason(w, i);
                if (!reasons[i].leaves)
                        continue;
                w->in.withdrawn = true;
                w->in.use = IMEX_USE_GRANTING; /* did it find IMEX ready, or does it wait? */
                assert_step(w, i, DECISION_WITHDRAW);
                w->in.use = IMEX_USE_PREPARED;
                assert_step(w, i, DECISION_STAY);
                w->in.use = IMEX_USE_UNKNOWN;
                assert_step(w, i, DECISION_STAY);
        }
}

static void readiness_is_shown_again_when_the_node_is_needed_again(void **state) {
        struct world *w = *state;

        serve(w);
        w->in.use = IMEX_USE_NONE;
        w->in.withdrawn = true;
        assert_int_equal(decide(w), DECISION_STAY);
}

static void a_stop_is_final(void **state) {
        struct world *w = *state;

        serve(w);
        w->in.imex = DECISION_IMEX_STOPS;
        assert_int_equal(decide(w), DECISION_STAY);
        w->in.terminating = true;
        assert_int_equal(decide(w), DECISION_STAY);
}

/* failure: a ComputeDomain is deleted under its pods -> its daemons leave although claims are prepared */
static void a_deleted_domain_stops_imex_in_use(void **state) {
        struct world *w = *state;

        serve(w);
        w->in_a[0].state = "Ending";
        assert_int_equal(decide(w), DECISION_LEAVE);
        w->in.terminating = true;
        assert_int_equal(decide(w), DECISION_PAUSE);
        proceed(w, DECISION_IMEX_ENDED);
        assert_int_equal(decide(w), DECISION_EXIT);
}

/* failure: IMEX ended uncleanly -> the node leaves only after its peers have recovered */
static void peers_recover_from_an_unclean_end_before_the_domain_is_left(void **state) {
        struct world *w = *state;

        serve(w);
        w->in_a[0].state = "Ending";
        w->in_a[1] = assignment("n1", 0, 6);
        w->domains[0].n_assignments = 2;
        w->in.imex = DECISION_IMEX_RUNS; /* it was killed, and recovers */
        assert_int_equal(decide(w), DECISION_STAY);
        assert_non_null(strstr(w->d.waits_for, "imported its memory"));
        w->in_a[1].state = "Reserved"; /* processes on that node may still map the memory */
        assert_int_equal(decide(w), DECISION_STAY);
        w->domains[0].n_assignments = 1; /* no other node is in the domain */
        assert_int_equal(decide(w), DECISION_LEAVE);
        w->in.current = false; /* according to old information */
        assert_int_equal(decide(w), DECISION_STAY);
        w->in.current = true;
        w->in_a[1].state = NULL;
        w->domains[0].n_assignments = 2;
        w->memory.ready = false; /* no node has imported memory */
        assert_int_equal(decide(w), DECISION_LEAVE);
        w->memory.ready = true;
        w->domains[0].n_assignments = 1;
        w->in_a[0].state = "Leaving";
        w->in.use = IMEX_USE_NONE;
        assert_int_equal(decide(w), DECISION_WITHDRAW);
}

/* ---- SIGTERM ---- */

static void a_terminated_daemon_serves_until_no_claim_is_prepared(void **state) {
        struct world *w = *state;

        serve(w);
        w->in.terminating = true;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_string_equal(w->d.waits_for, "a claim of it is prepared on this node");
        w->in_a[0].state = "Leaving";
        assert_int_equal(decide(w), DECISION_STAY);
        w->in.outdated = true; /* there would be no new container */
        w->in.imex = DECISION_IMEX_FAILS;
        assert_int_equal(decide(w), DECISION_STAY);
        w->in.imex = DECISION_IMEX_RUNS; /* no node waits for its recovery */
        w->in.use = IMEX_USE_NONE;
        assert_int_equal(decide(w), DECISION_WITHDRAW);
        w->in.withdrawn = true;
        assert_int_equal(decide(w), DECISION_PAUSE);
        w->in.imex = DECISION_IMEX_KILLED;
        assert_int_equal(decide(w), DECISION_EXIT);
}

static void a_terminated_daemon_restarts_imex_in_use(void **state) {
        struct world *w = *state;

        serve(w);
        w->in.terminating = true;
        w->in.imex = DECISION_IMEX_NONE;
        assert_int_equal(decide(w), DECISION_START);
        w->in.imex = DECISION_IMEX_ENDED; /* it was stopped for a new container, before SIGTERM */
        w->in.paused = true;
        assert_int_equal(decide(w), DECISION_START);
        w->in.use = IMEX_USE_GRANTING; /* did it find IMEX ready, or does it wait? */
        assert_int_equal(decide(w), DECISION_STAY);
        w->in.use = IMEX_USE_NONE;
        assert_int_equal(decide(w), DECISION_EXIT);
        w->in.imex = DECISION_IMEX_NONE;
        assert_int_equal(decide(w), DECISION_EXIT);
}

static void a_terminated_daemon_without_claims_ends_at_once(void **state) {
        struct world *w = *state;

        w->in.terminating = true;
        assert_int_equal(decide(w), DECISION_EXIT); /* and does not accept the assignment */
        serve(w);
        w->memory.ready = false;
        w->in.imex = DECISION_IMEX_RUNS;
        assert_int_equal(decide(w), DECISION_PAUSE);
        w->in.imex = DECISION_IMEX_NONE;
        assert_int_equal(decide(w), DECISION_EXIT);
        w->in.imex = DECISION_IMEX_ENDED;
        assert_int_equal(decide(w), DECISION_EXIT);
}

/* ---- the end of IMEX, and a new container ---- */

static void an_ended_imex_is_forgotten_unless_it_was_killed_after_it_was_ready(void **state) {
        struct world *w = *state;

        serve(w);
        w->in_a[1] = assignment("n1", 0, 6);
        w->domains[0].n_assignments = 2;
        w->in.imex = DECISION_IMEX_ENDED;
        assert_int_equal(decide(w), DECISION_FORGET);
        w->in.imex = DECISION_IMEX_KILLED;
        assert_int_equal(decide(w), DECISION_START);
        w->domains[0].n_assignments = 1; /* no other node maps its memory */
        assert_int_equal(decide(w), DECISION_FORGET);
        w->in_a[0].node = "n1"; /* or another one does */
        assert_int_equal(decide(w), DECISION_START);
        w->in.fabric = NULL; /* or that is not known */
        assert_int_equal(decide(w), DECISION_START);
        w->in.fabric = &w->fabric;
        w->in_a[0].node = "n0";
        w->domains[0].n_assignments = 2;
        w->memory.ready = false;
        assert_int_equal(decide(w), DECISION_FORGET);
        w->in.paused = true;
        assert_int_equal(decide(w), DECISION_EXIT);
}

/* failure: a daemon inherits an assignment of an earlier Pod -> it does not start IMEX with it */
static void the_assignment_of_an_earlier_pod_is_forgotten(void **state) {
        struct world *w = *state;

        serve(w);
        w->in.imex = DECISION_IMEX_NONE;
        assert_int_equal(decide(w), DECISION_START);
        w->in.inherited = true;
        assert_int_equal(decide(w), DECISION_FORGET);
        w->in.terminating = w->in.outdated = true;
        assert_int_equal(decide(w), DECISION_FORGET);
        proceed(w, DECISION_IMEX_NONE);
        assert_null(w->memory.now.domain);
        assert_false(w->memory.ready);
        assert_int_equal(w->memory.n_left, 1);
        assert_int_equal(w->memory.left[0], 5);
        w->in.terminating = w->in.outdated = w->in.inherited = false;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_left(w, 5);
}

static void a_container_restarts_where_no_claim_is_harmed(void **state) {
        struct world *w = *state;

        w->in.outdated = true;
        w->domains[0].n_assignments = 0;
        assert_int_equal(decide(w), DECISION_EXIT);
        w->domains[0].n_assignments = 1;
        serve(w);
        w->in.imex = DECISION_IMEX_NONE; /* it is about to start */
        assert_int_equal(decide(w), DECISION_START);
        w->in.use = IMEX_USE_NONE;
        assert_int_equal(decide(w), DECISION_EXIT);
        w->in.use = IMEX_USE_PREPARED;
        w->memory.ready = false;
        assert_int_equal(decide(w), DECISION_EXIT);
        serve(w);
        w->in.imex = DECISION_IMEX_READY;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_string_equal(w->d.waits_for, "");
        w->in.imex = DECISION_IMEX_FAILS;
        assert_int_equal(decide(w), DECISION_PAUSE);
        w->in.imex = DECISION_IMEX_RUNS;
        assert_int_equal(decide(w), DECISION_STAY);
        w->memory.ready = false;
        assert_int_equal(decide(w), DECISION_PAUSE);
        serve(w);
        w->in.use = IMEX_USE_NONE;
        assert_int_equal(decide(w), DECISION_WITHDRAW);
        w->in.withdrawn = true;
        assert_int_equal(decide(w), DECISION_PAUSE);
        proceed(w, DECISION_IMEX_ENDED);
        w->in.paused = true;
        assert_int_equal(decide(w), DECISION_EXIT);
        assert_string_equal(w->d.memory.now.domain, UID_A);
}

static void an_idle_daemon_of_another_partition_ends(void **state) {
        struct world *w = *state;

        w->in.moved = true;
        assert_int_equal(decide(w), DECISION_EXIT); /* and does not accept the assignment */
}

/* IMEX cannot recover in this container. */
static void a_container_restarts_if_imex_fails_in_a_domain_that_it_cannot_leave(void **state) {
        struct world *w = *state;

        serve(w);
        w->in_a[0].state = "Leaving";
        w->in_a[1] = assignment("n1", 0, 6);
        w->domains[0].n_assignments = 2;
        w->in.imex = DECISION_IMEX_FAILS;
        assert_int_equal(decide(w), DECISION_STAY);
        w->in.outdated = true;
        assert_int_equal(decide(w), DECISION_PAUSE);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(only_a_deletion_stops_imex_in_use),
                T(unused_imex_stops_when_its_readiness_is_withdrawn),
                T(a_claim_prepared_in_the_meantime_restores_readiness),
                T(readiness_is_shown_again_when_the_node_is_needed_again),
                T(a_stop_is_final),
                T(a_deleted_domain_stops_imex_in_use),
                T(peers_recover_from_an_unclean_end_before_the_domain_is_left),
                T(a_terminated_daemon_serves_until_no_claim_is_prepared),
                T(a_terminated_daemon_restarts_imex_in_use),
                T(a_terminated_daemon_without_claims_ends_at_once),
                T(an_ended_imex_is_forgotten_unless_it_was_killed_after_it_was_ready),
                T(the_assignment_of_an_earlier_pod_is_forgotten),
                T(a_container_restarts_where_no_claim_is_harmed),
                T(an_idle_daemon_of_another_partition_ends),
                T(a_container_restarts_if_imex_fails_in_a_domain_that_it_cannot_leave),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
