/* SPDX-License-Identifier: Apache-2.0 */
/* When nvidia-imex is ready, what is reported about it, and what happens to its process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "imex/imex_state.h"
#include "imex/imex_supervision.h"

static struct imex_answers x;
static struct imex_supervision_facts f;
static struct imex_supervision_verdict v;

/* A process that runs with index 2, and has not answered yet. */
static int begin(void **state) {
        imex_supervision_begin(&x);
        f = (struct imex_supervision_facts){ .member = true,
                                             .process = IMEX_PROCESS_RUNNING,
                                             .identity_current = true,
                                             .index = 2,
                                             .usable = true,
                                             .refused = "",
                                             .ended = "",
                                             .awaited = "",
                                             .answers = &x };
        return 0;
}

static void evaluate(void) {
        imex_supervision_evaluate(&f, &v);
}

static bool answers(enum imex_status status) {
        bool counts = imex_supervision_note_status(&x, status, status ? "" : "it hangs");

        evaluate();
        return counts;
}

static void answers_domain(const char *json) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct imex_ctl_domain d;
        struct err e;

        if (json)
                assert_int_equal(imex_ctl_parse_domain(str_from(json), a, &d, &e), 0);
        imex_supervision_note_domain(&x, json ? &d : NULL, "10.0.0.1", "name-2", "it hangs");
        evaluate();
}

static int begin_ready(void **state) {
        begin(state);
        x.node_id = 2;
        answers(IMEX_STATE_READY);
        assert_int_equal(v.phase, IMEX_READY);
        assert_int_equal(v.reaction, IMEX_REACTION_SLOW_DOWN);
        f.was_ready = true;
        return 0;
}

static void assert_reason(const char *part) {
        if (!strstr(v.reason, part))
                fail_msg("'%s' does not contain '%s'", v.reason, part);
}

static void ready_needs_the_status_and_the_id(void **state) {
        x.node_id = 2;
        evaluate();
        assert_int_equal(v.phase, IMEX_STARTING);
        assert_int_equal(v.status, IMEX_STATE_STARTING);
        assert_string_equal(v.reason, "nvidia-imex is starting");
        answers(IMEX_STATE_READY);
        assert_int_equal(v.phase, IMEX_READY);
        assert_int_equal(v.status, IMEX_STATE_READY);
        assert_string_equal(v.reason, "");
}

static void without_a_reported_id_the_domain_is_queried_first(void **state) {
        answers(IMEX_STATE_READY);
        assert_int_equal(v.phase, IMEX_STARTING);
        assert_int_equal(v.reaction, IMEX_REACTION_ASK_ID);
        answers_domain("{\"nodes\":{}}");
        assert_int_equal(v.phase, IMEX_READY);
        assert_int_equal(x.node_id, -1);
}

static void the_domain_shows_the_id_by_the_address_only(void **state) {
        answers(IMEX_STATE_READY);
        answers_domain("{\"nodes\":{\"3\":{\"host\":\"name-2\"}}}");
        assert_int_equal(x.node_id, -1);
        answers_domain("{\"nodes\":{\"2\":{\"host\":\"10.0.0.1\",\"version\":\"580\",\"connections\":{"
                       "\"1\":{\"status\":\"CONNECTED\"},\"2\":{\"status\":\"CONNECTED\"}}}}}");
        assert_int_equal(x.node_id, 2);
        assert_int_equal(x.connected, 1);
        assert_string_equal(x.version, "580");
        assert_int_equal(v.phase, IMEX_READY);
}

/* failure: the answer about the domain has a wrong ID -> nvidia-imex is restarted after a pause */
static void a_wrong_id_is_not_ready_and_restarts(void **state) {
        answers(IMEX_STATE_READY);
        answers_domain("{\"nodes\":{\"3\":{\"host\":\"10.0.0.1\"}}}");
        assert_int_equal(v.phase, IMEX_STARTING);
        assert_int_equal(v.reaction, IMEX_REACTION_RESTART);
        assert_string_equal(v.reason, "nvidia-imex took ID 3, but this node has index 2");
        f.identity_current = false; /* the index has changed, and another process will be started with it */
        evaluate();
        assert_int_not_equal(v.reaction, IMEX_REACTION_RESTART);
}

/* The first line of the list of nodes has the ID 0. */
static void the_id_0_is_an_id(void **state) {
        f.index = 0;
        x.node_id = 0;
        answers(IMEX_STATE_READY);
        assert_int_equal(v.phase, IMEX_READY);
        assert_int_equal(v.reaction, IMEX_REACTION_SLOW_DOWN);
        answers_domain("{\"nodes\":{\"1\":{\"host\":\"10.0.0.1\"}}}");
        assert_int_equal(x.node_id, 0); /* nvidia-imex itself reported it */
        f.index = 2;
        evaluate();
        assert_int_equal(v.phase, IMEX_STARTING);
        assert_int_equal(v.reaction, IMEX_REACTION_RESTART);
}

static void the_status_is_reported_with_its_meaning(void **state) {
        static const struct {
                enum imex_status status;
                const char *reason;
        } rows[] = {
                { IMEX_STATE_INITIALIZING, "nvidia-imex is INITIALIZING" },
                { IMEX_STATE_SHUTTING_DOWN, "nvidia-imex is SHUTTING_DOWN" },
                { IMEX_STATE_WAITING_FOR_PEERS, "WAITING_FOR_PEERS (it waits for the other nodes" },
                { IMEX_STATE_WAITING_FOR_RECOVERY, "WAITING_FOR_RECOVERY (it ended uncleanly before" },
                { IMEX_STATE_UNAVAILABLE, "UNAVAILABLE (its command service does not answer)" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                answers(rows[i].status);
                assert_int_equal(v.phase, IMEX_STARTING);
                assert_int_equal(v.status, rows[i].status);
                assert_reason(rows[i].reason);
        }
}

static void it_is_queried_often_when_it_is_no_longer_ready(void **state) {
        answers(IMEX_STATE_READY);
        assert_int_equal(v.reaction, IMEX_REACTION_NONE);
        answers(IMEX_STATE_SHUTTING_DOWN);
        assert_int_equal(v.reaction, IMEX_REACTION_SPEED_UP);
}

/* failure: one query of nvidia-imex fails -> it stays READY; after two it is not */
static void two_unanswered_queries_withdraw_readiness(void **state) {
        assert_false(answers(IMEX_STATE_NONE));
        assert_int_equal(v.phase, IMEX_READY);
        assert_true(answers(IMEX_STATE_READY));
        assert_false(answers(IMEX_STATE_NONE));
        assert_true(answers(IMEX_STATE_NONE));
        assert_int_equal(v.phase, IMEX_STARTING);
        assert_string_equal(v.reason, "nvidia-imex is starting");
        answers(IMEX_STATE_NONE);
        assert_string_equal(v.reason, "nvidia-imex is starting: it hangs");
}

static void signals_are_sent_when_the_command_service_answers(void **state) {
        assert_false(imex_supervision_takes_signals(IMEX_STATE_NONE));
        assert_false(imex_supervision_takes_signals(IMEX_STATE_INITIALIZING));
        assert_false(imex_supervision_takes_signals(IMEX_STATE_UNAVAILABLE));
        assert_true(imex_supervision_takes_signals(IMEX_STATE_WAITING_FOR_PEERS));
        assert_true(imex_supervision_takes_signals(IMEX_STATE_READY));
}

static void the_process_follows_the_members(void **state) {
        static const struct {
                enum imex_process_state process;
                bool stopping, no_member, changed, unusable, refused;
                enum imex_step step;
                enum imex_phase phase;
        } rows[] = {
                { IMEX_PROCESS_DOWN, .step = IMEX_STEP_START, .phase = IMEX_STARTING },
                { IMEX_PROCESS_WAITING, .step = IMEX_STEP_START, .phase = IMEX_STARTING },
                { IMEX_PROCESS_ENDING, .step = IMEX_STEP_START, .phase = IMEX_STARTING },
                { IMEX_PROCESS_RUNNING, .step = IMEX_STEP_UPDATE, .phase = IMEX_STARTING },
                { IMEX_PROCESS_RUNNING, .changed = true, .step = IMEX_STEP_RESTART, .phase = IMEX_STARTING },
                { IMEX_PROCESS_RUNNING, .unusable = true, .step = IMEX_STEP_NONE, .phase = IMEX_STARTING },
                { IMEX_PROCESS_DOWN, .refused = true, .step = IMEX_STEP_NONE, .phase = IMEX_STARTING },
                { IMEX_PROCESS_WAITING, .refused = true, .step = IMEX_STEP_STOP, .phase = IMEX_STARTING },
                { IMEX_PROCESS_RUNNING, .no_member = true, .step = IMEX_STEP_STOP, .phase = IMEX_STOPPING },
                { IMEX_PROCESS_ENDING, .no_member = true, .step = IMEX_STEP_NONE, .phase = IMEX_STOPPING },
                { IMEX_PROCESS_WAITING, .no_member = true, .step = IMEX_STEP_STOP, .phase = IMEX_IDLE },
                { IMEX_PROCESS_DOWN, .no_member = true, .step = IMEX_STEP_NONE, .phase = IMEX_IDLE },
                { IMEX_PROCESS_RUNNING, .stopping = true, .step = IMEX_STEP_STOP, .phase = IMEX_STOPPING },
                { IMEX_PROCESS_ENDING, .stopping = true, .step = IMEX_STEP_NONE, .phase = IMEX_STOPPING },
                { IMEX_PROCESS_DOWN, .stopping = true, .step = IMEX_STEP_NONE, .phase = IMEX_STOPPED },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                f.process = rows[i].process;
                f.stopping = rows[i].stopping;
                f.member = !rows[i].no_member;
                f.identity_current = f.member && !rows[i].changed;
                f.usable = !rows[i].unusable && !rows[i].refused;
                f.refused = rows[i].refused ? "only 4 slots" : "";
                evaluate();
                assert_int_equal(v.step, rows[i].step);
                assert_int_equal(v.phase, rows[i].phase);
                if (rows[i].refused)
                        assert_string_equal(v.reason, "only 4 slots");
        }
}

static void a_process_that_ended_is_in_back_off(void **state) {
        f.process = IMEX_PROCESS_WAITING;
        f.ended = "nvidia-imex ended with exit code 5";
        evaluate();
        assert_int_equal(v.phase, IMEX_BACKOFF);
        assert_int_equal(v.status, IMEX_STATE_BACKOFF);
        assert_string_equal(v.reason, f.ended);
        f.process = IMEX_PROCESS_RUNNING; /* until it answers, this is the reason why it is not ready */
        evaluate();
        assert_int_equal(v.phase, IMEX_STARTING);
        assert_string_equal(v.reason, f.ended);
}

static void the_best_explanation_of_an_end_is_given(void **state) {
        char s[IMEX_REASON_MAX];

        imex_supervision_explain_end(&f, IMEX_PROCESS_WANTED, "", s, sizeof s);
        assert_string_equal(s, "");
        imex_supervision_explain_end(&f, IMEX_PROCESS_EXITED, "ended with exit code 1", s, sizeof s);
        assert_string_equal(s, "nvidia-imex ended with exit code 1");
        imex_supervision_explain_end(&f, IMEX_PROCESS_NOT_EXECUTED, "could not be started", s, sizeof s);
        assert_non_null(strstr(s, "needs the nvidia-imex package"));
        x.node_id = 3;
        imex_supervision_explain_end(&f, IMEX_PROCESS_EXITED, "ended with exit code 1", s, sizeof s);
        assert_non_null(strstr(s, "took ID 3"));
        x.fault = "the session is taken";
        imex_supervision_explain_end(&f, IMEX_PROCESS_EXITED, "ended with exit code 1", s, sizeof s);
        assert_string_equal(s, "the session is taken");
}

static void a_fault_is_the_reason_until_it_is_ready(void **state) {
        x.node_id = 2;
        x.fault = "the session is taken";
        evaluate();
        assert_string_equal(v.reason, "the session is taken");
        answers(IMEX_STATE_READY);
        assert_null(x.fault);
        assert_int_equal(v.phase, IMEX_READY);
}

/* No answer does not mean "not connected". */
/* failure: nvidia-imex-ctl does not answer during a recovery -> no peer is named */
static void a_recovery_without_an_answer_names_no_peer(void **state) {
        answers(IMEX_STATE_WAITING_FOR_RECOVERY);
        answers_domain(NULL);
        assert_true(imex_supervision_connections_unknown(&x));
        assert_reason("it is not known which nodes it has connected to since");
        assert_reason("(nvidia-imex-ctl -N: it hangs)");
        answers_domain("{\"nodes\":{}}");
        assert_reason("its answer does not contain this node");
        answers_domain("{\"nodes\":{\"2\":{\"host\":\"10.0.0.1\"}}}");
        assert_false(imex_supervision_connections_unknown(&x));
        f.awaited = "n1, n2";
        answers_domain(NULL); /* from then on the connected nodes are known */
        assert_false(imex_supervision_connections_unknown(&x));
        assert_reason("waits for n1, n2: bring it back");
}

/* The state file has room for 199 bytes. */
/* failure: a recovery waits for nodes with long names -> the names are cut, and the remedy is kept */
static void the_remedy_of_a_recovery_fits_into_the_state_file(void **state) {
        answers(IMEX_STATE_WAITING_FOR_RECOVERY);
        imex_supervision_note_domain(
                &x, NULL, "10.0.0.1", "name-2",
                "the command '/usr/bin/nvidia-imex-ctl' has not ended after 10 s, and was "
                "killed; its output was empty");
        evaluate();
        assert_true(strlen(v.reason) < IMEX_STATE_REASON_MAX);
        assert_reason("it is not known which nodes it has connected to since");
        assert_reason("...): see the daemon's log and the node's load");
        answers_domain("{\"nodes\":{\"2\":{\"host\":\"10.0.0.1\"}}}");
        f.awaited = "ip-10-0-12-34.us-west-2.compute.internal, ip-10-0-12-35.us-west-2.compute.internal";
        evaluate();
        assert_true(strlen(v.reason) < IMEX_STATE_REASON_MAX);
        assert_reason("12-35.us-west-2.compute.internal: bring it back, reboot it");
        assert_reason("delete its Node");
        f.awaited = "ip-10-0-12-34.us-west-2.compute.internal, ip-10-0-12-35.us-west-2.compute.internal, "
                    "ip-10-0-12-36.us-west-2.compute.internal and 12 more";
        evaluate();
        assert_int_equal(strlen(v.reason), IMEX_STATE_REASON_MAX - 1);
        assert_reason("...: bring it back, reboot it");
        assert_reason("delete its Node");
}

int main(void) {
#define T(t) cmocka_unit_test_setup(t, begin)
#define READY(t) cmocka_unit_test_setup(t, begin_ready)
        const struct CMUnitTest tests[] = {
                T(ready_needs_the_status_and_the_id),
                T(without_a_reported_id_the_domain_is_queried_first),
                T(the_domain_shows_the_id_by_the_address_only),
                T(a_wrong_id_is_not_ready_and_restarts),
                T(the_id_0_is_an_id),
                T(the_status_is_reported_with_its_meaning),
                READY(it_is_queried_often_when_it_is_no_longer_ready),
                READY(two_unanswered_queries_withdraw_readiness),
                T(signals_are_sent_when_the_command_service_answers),
                T(the_process_follows_the_members),
                T(a_process_that_ended_is_in_back_off),
                T(the_best_explanation_of_an_end_is_given),
                T(a_fault_is_the_reason_until_it_is_ready),
                T(a_recovery_without_an_answer_names_no_peer),
                T(the_remedy_of_a_recovery_fits_into_the_state_file),
        };

        return cmocka_run_group_tests_name("supervision", tests, NULL, NULL);
}
