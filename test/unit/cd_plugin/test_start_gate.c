/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of a ComputeDomain with a start gate wait until the controller has opened it. */
#include "world/cd_node.h"

#include <string.h>

#include "api/names.h"

#define WAITS "n0: the pod waits for the start gate of ComputeDomain 'user/cd': "
#define PROGRESS "3 of 4 nodes are connected"

static int setup(void **state) {
        return world_setup_claims(state);
}

static void closed(void) {
        api_domain_gate(DOMAIN_A, "true", "False", PROGRESS);
}

static void opened(void) {
        api_domain_gate(DOMAIN_A, "true", "True", "4 nodes were connected");
        world_turn();
}

/* failure: a node behind a start gate is not connected -> the Event of a waiting pod has the numbers */
static void a_pod_waits_while_the_gate_is_closed(void **state) {
        (void)state;
        daemon_ready();
        closed();
        waits_with("c1", CLAIM_1, WAITS PROGRESS);
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "waiting");
}

static void begin_to_wait(struct dra_op *op) {
        daemon_ready();
        closed();
        prepare(op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op->answer, PENDING);
}

static void a_waiting_pod_gets_its_channel_when_the_gate_opens(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        begin_to_wait(&op);
        opened();
        world_wait(&op, PREPARED);
}

/* failure: the annotation of a start gate is removed -> the waiting pods start at once */
static void a_waiting_pod_gets_its_channel_when_the_annotation_is_removed(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        begin_to_wait(&op);
        api_domain_gate(DOMAIN_A, NULL, NULL, NULL);
        world_wait(&op, PREPARED);
}

/* failure: a start gate opens after a Prepare has failed -> the plugin asks the kubelet to retry */
static void the_kubelet_is_asked_to_retry_when_the_gate_opens(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 400 }, again = { 0 };
        world_stop(w.claims);
        w.retries = true;
        world_start(BOOT);
        store_set(&api.store, &kube_pods, "user", "pod-c1",
                  "{\"metadata\":{\"namespace\":\"user\",\"name\":\"pod-c1\",\"uid\":\"p\","
                  "\"resourceVersion\":\"1\"}}");
        daemon_ready();
        closed();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        world_turn();
        assert_null(strstr(store_find(&api.store, &kube_pods, "user", "pod-c1")->json, CD_ANNOTATION_RETRY));
        opened();
        world_turn();
        assert_non_null(
                strstr(store_find(&api.store, &kube_pods, "user", "pod-c1")->json, CD_ANNOTATION_RETRY));
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

/* failure: the controller knows no start gate -> the Event of a waiting pod names the controller */
static void without_the_condition_the_message_names_the_controller(void **state) {
        (void)state;
        daemon_ready();
        api_domain_gate(DOMAIN_A, "true", NULL, NULL);
        waits_with("c1", CLAIM_1,
                   WAITS "the controller has not written the condition StartGateOpen yet. If this lasts, "
                         "check that a compute-domain-controller of this version leads");
}

static void a_prepared_claim_keeps_its_channel_behind_a_closed_gate(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        daemon_ready();
        closed();
        opened();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        closed();
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

static void a_ComputeDomain_without_a_gate_is_not_watched(void **state) {
        (void)state;
        static const char *const without[] = { "false", NULL };
        for (size_t i = 0; i < ARRAY_LEN(without); i++) {
                struct dra_op op = { 0 }, gone = { 0 };
                daemon_ready();
                api_domain_gate(DOMAIN_A, without[i], "False", PROGRESS);
                prepare(&op, "c1", CLAIM_1);
                world_wait(&op, PREPARED);
                kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
                world_wait(&gone, UNPREPARED);
        }
}

static void the_local_IMEX_is_reported_before_the_gate(void **state) {
        (void)state;
        closed();
        waits_with("c1", CLAIM_1, "n0: no IMEX daemon runs on this node yet");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_pod_waits_while_the_gate_is_closed),
                T(a_waiting_pod_gets_its_channel_when_the_gate_opens),
                T(a_waiting_pod_gets_its_channel_when_the_annotation_is_removed),
                T(the_kubelet_is_asked_to_retry_when_the_gate_opens),
                T(without_the_condition_the_message_names_the_controller),
                T(a_prepared_claim_keeps_its_channel_behind_a_closed_gate),
                T(a_ComputeDomain_without_a_gate_is_not_watched),
                T(the_local_IMEX_is_reported_before_the_gate),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
