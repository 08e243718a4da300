/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the kubelet to retry a failed Prepare, when its cause is gone. */
#include "world/cd_retries.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "node/retry.h"

#define READY_IN_B CLIQUE "/" DOMAIN_B "/3/1"

/* ---- claims ---- */

static void facts_usable(bool usable) {
        w.facts.usable = usable;
        snprintf(w.facts.message, sizeof w.facts.message, "the driver is not ready");
        world_facts();
        world_turn();
}

static void unprepare(const char *name, const char *uid) {
        struct dra_op op = { 0 };
        kubelet_unprepare(w.claims, &op, "user", name, uid);
        world_wait(&op, UNPREPARED);
}

/* A claim for these consumers, as the members of status.reservedFor. */
static void claim_of(const char *consumers) {
        _cleanup_(freep) char *json = NULL;
        const struct object *o;
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        o = store_find(&api.store, &kube_resource_claims, "user", "c1");
        const char *from = strstr(o->json, "\"reservedFor\":[");
        json = xasprintf("%.*s\"reservedFor\":[%s]}}", (int)(from - o->json), o->json, consumers);
        api_claim_json("user", "c1", json);
}

/* IMEX is READY, but the claim c1 cannot be prepared until facts_usable(true). */
static void fails_without_driver(void) {
        daemon_ready();
        facts_usable(false);
        fails("c1", CLAIM_1);
}

/* ---- tests ---- */

/* failure: IMEX becomes READY after a Prepare has failed -> the plugin asks the kubelet to retry at once */
static void the_kubelet_is_asked_to_retry_when_imex_is_ready(void **state) {
        (void)state;
        fails("c1", CLAIM_1);
        pass(5000);
        assert_false(is_asked("pod-c1"));
        imex_is_ready();
        assert_true(take_request("pod-c1"));
        /* It has changed nothing. */
        assert_null(world_cdi(CLAIM_1));
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_STARTED);
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "waiting");
        prepares("c1", CLAIM_1);
        pass(RETRY_PAUSE_MAX_MS);
        assert_false(is_asked("pod-c1"));
}

/* failure: a device becomes free after a Prepare has failed -> the plugin asks the kubelet to retry at once
 */
static void the_kubelet_is_asked_to_retry_when_the_device_is_free(void **state) {
        (void)state;
        daemon_ready();
        prepares("c1", CLAIM_1);
        fails("c2", CLAIM_2);
        assert_false(is_asked("pod-c2"));
        unprepare("c1", CLAIM_1);
        world_turn();
        assert_true(is_asked("pod-c2"));
        assert_false(is_asked("pod-c1"));
        /* It does not hold the device. */
        prepares("c1", CLAIM_1);
}

/* failure: a device becomes free before IMEX is READY -> the plugin asks the kubelet to retry when it is */
static void a_prepare_that_failed_before_it_asked_for_imex_is_retried(void **state) {
        (void)state;
        api_domain("user", "other", DOMAIN_B, false);
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_B, "");
        daemon_ready();
        prepares("c1", CLAIM_1);
        fails("c2", CLAIM_2);
        unprepare("c1", CLAIM_1);
        api_assigned(DOMAIN_B);
        world_turn();
        assert_false(is_asked("pod-c2"));
        daemon_state(DAEMON_1, DOMAIN_B, true, "READY", READY_IN_B);
        world_turn();
        assert_true(is_asked("pod-c2"));
        unprepare("c2", CLAIM_2);
        assert_string_equal(world_note(DOMAIN_B, CLAIM_2), "");
}

/* failure: the node leaves its partition while a Prepare reads the fabric object -> the Prepare does not wait
 * for it */
static void a_prepare_does_not_wait_for_the_object_of_an_earlier_partition(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = RETRIES_TIMEOUT_MS };
        daemon_ready();
        api.holds = &kube_fabrics;
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(TAILQ_LAST(&w.claims->ops, op_list)->phase, OP_FETCHING);
        facts_usable(false);
        api.holds = NULL;
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "the driver is not ready"));
        facts_usable(true);
        assert_true(is_asked("pod-c1"));
}

/* failure: the API server answers again after a Prepare has failed -> the plugin asks the kubelet to retry
 * [api-server] */
static void the_kubelet_is_asked_to_retry_when_the_api_server_answers(void **state) {
        (void)state;
        api.down = true;
        fails("c1", CLAIM_1);
        pass(60000);
        api.down = false;
        world_turn();
        assert_true(is_asked("pod-c1")); /* although IMEX is not READY: the next Prepare waits for that */
        assert_null(world_entry(w.claims, CLAIM_1));
}

/* failure: the kubelet breaks off a Prepare that waits -> the plugin asks it to retry when the cause is gone
 */
static void a_prepare_that_the_kubelet_breaks_off_is_retried(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        claims_cancelled(w.claims, &op, TAILQ_FIRST(&w.claims->ops));
        world_turn();
        assert_false(is_asked("pod-c1"));
        imex_is_ready();
        assert_true(is_asked("pod-c1"));
}

/* failure: the disk stores the record of a claim after the Prepare has failed -> the plugin asks the kubelet
 * to retry [host] */
static void the_kubelet_is_asked_to_retry_when_the_disk_has_stored_the_claim(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = RETRIES_TIMEOUT_MS };
        daemon_ready();
        w.disk_hangs = true;
        faults_hold("fsync");
        prepare(&op, "c1", CLAIM_1);
        while (!faults_held())
                world_turn();
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "has not stored the record of this claim in time"));
        assert_false(is_asked("pod-c1"));
        faults_release();
        w.disk_hangs = false;
        world_turn();
        assert_true(is_asked("pod-c1"));
        api.down = true;
        prepares("c1", CLAIM_1);
        api.down = false;
}

/* The disk hangs while it stores the record of the claim. */
static void hangs(struct dra_op *op, const char *name, const char *uid) {
        w.disk_hangs = true;
        faults_hold("fsync");
        prepare(op, name, uid);
        while (!faults_held())
                world_turn();
}

static void disk_continues(void) {
        faults_release();
        w.disk_hangs = false;
        world_turn();
}

/* failure: the kubelet breaks off a Prepare while the disk stores its record -> the plugin asks the kubelet to
 * retry [host] */
static void a_prepare_that_succeeds_after_it_was_broken_off_is_retried(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready();
        hangs(&op, "c1", CLAIM_1);
        claims_cancelled(w.claims, &op, TAILQ_FIRST(&w.claims->ops));
        assert_false(is_asked("pod-c1"));
        disk_continues();
        assert_true(is_asked("pod-c1"));
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_COMPLETED);
}

static void a_late_prepare_is_retried_after_the_pause(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = RETRIES_TIMEOUT_MS };
        fails_without_driver();
        facts_usable(true);
        assert_true(take_request("pod-c1"));
        hangs(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        disk_continues();
        assert_false(is_asked("pod-c1"));
        pass(RETRY_PAUSE_MS);
        assert_true(is_asked("pod-c1"));
}

/* failure: the disk is slow, and then IMEX is not READY -> the Prepare is retried when IMEX is READY [host] */
static void a_late_prepare_that_would_wait_is_kept(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = RETRIES_TIMEOUT_MS };
        hangs(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        disk_continues();
        assert_false(TAILQ_EMPTY(&w.claims->failed));
        assert_false(is_asked("pod-c1"));
        imex_is_ready();
        assert_true(is_asked("pod-c1"));
}

/* failure: a Prepare cannot begin in time because the disk is slow -> it is retried when it can be carried out
 * [host] */
static void a_prepare_that_never_got_into_a_batch_is_kept(void **state) {
        (void)state;
        struct dra_op first = { 0 }, second = { .timeout_ms = RETRIES_TIMEOUT_MS };
        daemon_ready();
        hangs(&first, "c2", CLAIM_2);
        prepare(&second, "c1", CLAIM_1);
        world_wait(&second, FAILED);
        disk_continues();
        world_wait(&first, PREPARED);
        assert_false(is_asked("pod-c1"));
        unprepare("c2", CLAIM_2);
        world_turn();
        assert_true(is_asked("pod-c1"));
}

/* The claim is prepared, so it is read only for the request. */
static void a_repeated_prepare_that_never_got_into_a_batch_is_kept(void **state) {
        (void)state;
        struct dra_op first = { 0 }, second = { .timeout_ms = RETRIES_TIMEOUT_MS };
        daemon_ready();
        prepares("c1", CLAIM_1);
        hangs(&first, "c2", CLAIM_2);
        prepare(&second, "c1", CLAIM_1);
        world_wait(&second, FAILED);
        assert_false(is_asked("pod-c1"));
        disk_continues();
        assert_true(is_asked("pod-c1"));
        world_turn();
        assert_true(TAILQ_EMPTY(&w.claims->failed));
}

/* failure: a claim names a ComputeDomain of another namespace -> its kept Prepare creates no folder [tenants] */
static void a_kept_prepare_follows_no_domain_of_another_namespace(void **state) {
        (void)state;
        _cleanup_(freep) char *folder = xasprintf("%s/domains/" DOMAIN_B, w.plugin_dir);
        daemon_ready();
        api_domain("tenant", "theirs", DOMAIN_B, false);
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_B, "");
        prepares("c1", CLAIM_1); /* it holds the device */
        fails("c2", CLAIM_2);
        assert_false(TAILQ_EMPTY(&w.claims->failed));
        assert_int_equal(access(folder, F_OK), -1);
}

static void the_pause_between_two_requests_grows(void **state) {
        (void)state;
        fails_without_driver();
        static const unsigned pauses_ms[] = { 0, 2000, 4000, 8000, 16000, 32000, 60000, 60000 };
        uint64_t asked_ms = 0;
        for (size_t i = 0; i < ARRAY_LEN(pauses_ms); i++) {
                facts_usable(true);
                while (!is_asked("pod-c1"))
                        pass(100);
                uint64_t now = loop_now_ms(&w.loop), pause = i ? now - asked_ms : 0;
                assert_in_range(pause, pauses_ms[i] > 200 ? pauses_ms[i] - 200 : 0, pauses_ms[i] + 200);
                asked_ms = now;
                assert_true(take_request("pod-c1"));
                facts_usable(false);
                fails("c1", CLAIM_1);
        }
        /* A pod without requests for a while begins again. */
        pass(RETRY_CALM_MS + RETRY_PAUSE_MAX_MS);
        fails("c1", CLAIM_1);
        facts_usable(true);
        assert_true(is_asked("pod-c1"));
}

static void a_cause_that_returns_during_the_pause_sends_no_request(void **state) {
        (void)state;
        fails_without_driver();
        facts_usable(true);
        assert_true(take_request("pod-c1"));
        facts_usable(false);
        facts_usable(true);
        facts_usable(false);
        pass(RETRY_PAUSE_MAX_MS);
        assert_false(is_asked("pod-c1"));
}

static void a_longer_pause_of_one_pod_does_not_delay_another(void **state) {
        (void)state;
        claim_of("{\"resource\":\"pods\",\"name\":\"pod-d\",\"uid\":\"q\"}");
        daemon_ready();
        facts_usable(false);
        for (unsigned i = 0; i < 4; i++) { /* a pause of 16 s for pod-d */
                fails("c1", CLAIM_1);
                put_pod("pod-d", "q");
                facts_usable(true);
                while (!is_asked("pod-d"))
                        pass(100);
                facts_usable(false);
        }
        put_pod("pod-d", "q");
        fails("c2", CLAIM_2);
        facts_usable(true);
        assert_true(take_request("pod-c2"));
        facts_usable(false);
        fails("c2", CLAIM_2); /* a pause of 2 s for pod-c2 */
        fails("c1", CLAIM_1);
        facts_usable(true);
        pass(3000);
        assert_true(is_asked("pod-c2"));
        assert_false(is_asked("pod-d"));
        pass(16000);
        assert_true(is_asked("pod-d"));
}

static void a_prepare_is_kept_for_a_limited_time(void **state) {
        (void)state;
        fails("c1", CLAIM_1);
        pass(RETRY_KEEP_MS + 1000);
        assert_true(TAILQ_EMPTY(&w.claims->failed));
        imex_is_ready();
        assert_false(is_asked("pod-c1"));
}

static void an_unprepared_claim_is_not_retried(void **state) {
        (void)state;
        fails("c1", CLAIM_1);
        unprepare("c1", CLAIM_1);
        assert_true(TAILQ_EMPTY(&w.claims->failed));
        imex_is_ready();
        assert_false(is_asked("pod-c1"));
}

static void a_claim_of_a_deleted_domain_is_not_retried(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 8000 };
        prepare(&op, "c1", CLAIM_1);
        pass(6000); /* it is worth a watch now */
        world_wait(&op, FAILED);
        api_domain("user", "cd", DOMAIN_A, true);
        pass(2000);
        imex_is_ready();
        assert_false(is_asked("pod-c1"));
        assert_true(TAILQ_EMPTY(&w.claims->failed));
}

static void a_retry_of_the_kubelet_ends_the_wait(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        fails("c1", CLAIM_1);
        prepare(&op, "c1", CLAIM_1);
        assert_true(TAILQ_EMPTY(&w.claims->failed));
        daemon_ready();
        world_wait(&op, PREPARED);
        world_turn();
        assert_false(is_asked("pod-c1"));
}

#define TWO_PODS                                                                                             \
        "{\"resource\":\"pods\",\"name\":\"pod-c1\",\"uid\":\"p\"},"                                         \
        "{\"resource\":\"pods\",\"name\":\"pod-d\",\"uid\":\"q\"}"

static void each_pod_of_a_claim_is_retried(void **state) {
        (void)state;
        claim_of(TWO_PODS);
        fails("c1", CLAIM_1);
        imex_is_ready();
        assert_true(is_asked("pod-c1") && is_asked("pod-d"));
}

/* failure: a claim of several pods is prepared after its call has failed -> the pods are asked again [host] */
static void each_pod_of_a_claim_is_retried_after_a_late_prepare(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = RETRIES_TIMEOUT_MS };
        claim_of(TWO_PODS);
        fails_without_driver();
        facts_usable(true);
        assert_true(take_request("pod-c1"));
        hangs(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        pass(RETRY_PAUSE_MAX_MS);
        assert_false(is_asked("pod-c1"));
        disk_continues();
        assert_true(is_asked("pod-c1"));
}

/* The kubelet syncs each pod by itself. */
static void a_prepare_for_one_pod_does_not_end_the_wait_of_another(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        claim_of(TWO_PODS);
        facts_usable(false);
        fails("c1", CLAIM_1);
        prepare(&op, "c1", CLAIM_1);
        facts_usable(true);
        daemon_ready();
        world_wait(&op, PREPARED);
        world_turn();
        assert_true(is_asked("pod-d"));
        world_turn();
        assert_true(TAILQ_EMPTY(&w.claims->failed));
}

/* failure: a pod was recreated under its name -> the new pod is not annotated for the old one */
static void a_pod_with_another_uid_is_left_alone(void **state) {
        (void)state;
        fails("c1", CLAIM_1);
        put_pod("pod-c1", "another");
        imex_is_ready();
        assert_false(is_asked("pod-c1"));
}

static void other_consumers_are_left_alone(void **state) {
        (void)state;
        unsigned requests;
        claim_of("{\"apiGroup\":\"example.com\",\"resource\":\"podgroups\",\"name\":\"pod-c1\",\"uid\":"
                 "\"p\"}");
        fails("c1", CLAIM_1);
        imex_is_ready();
        requests = api.requests;
        pass(5000);
        assert_false(is_asked("pod-c1"));
        assert_int_equal(api.requests, requests);
}

/* ---- PodGroups ---- */

#define GROUP                                                                                                \
        "{\"apiGroup\":\"scheduling.k8s.io\",\"resource\":\"podgroups\",\"name\":\"gang\",\"uid\":\"g\"}"

static void put_member(const char *name, const char *group, const char *node, const char *phase,
                       const char *more) {
        char json[400];
        snprintf(json, sizeof json,
                 "{\"metadata\":{\"namespace\":\"user\",\"name\":\"%s\",\"uid\":\"u-%s\","
                 "\"resourceVersion\":\"1\"%s},\"spec\":{\"nodeName\":\"%s\",\"schedulingGroup\":{"
                 "\"podGroupName\":\"%s\"},\"resourceClaims\":[{\"name\":\"c\"}]},\"status\":{\"phase\":"
                 "\"%s\"}}",
                 name, name, more, node, group, phase);
        store_set(&api.store, &kube_pods, "user", name, json);
}

static void put_waiting(const char *name) {
        put_member(name, "gang", "n0", "Pending", "");
}

/* The PodGroup has the claim c1, and this pod of it waits on the node. */
static void group_waits(const char *pod) {
        claim_of(GROUP);
        put_waiting(pod);
}

/* failure: a Prepare for the pods of a PodGroup has failed -> its pods that wait on the node are retried */
static void the_waiting_pods_of_a_group_are_retried(void **state) {
        (void)state;
        group_waits("one");
        put_waiting("two");
        put_member("running", "gang", "n0", "Running", "");
        put_member("elsewhere", "gang", "another-node", "Pending", "");
        put_member("stranger", "another", "n0", "Pending", "");
        put_member("deleted", "gang", "n0", "Pending", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
        fails("c1", CLAIM_1);
        imex_is_ready();
        assert_true(is_asked("one") && is_asked("two"));
        assert_false(is_asked("running"));
        assert_false(is_asked("elsewhere"));
        assert_false(is_asked("stranger"));
        assert_false(is_asked("deleted"));
        assert_false(is_asked("pod-c1")); /* it has no group */
}

/* The kubelet syncs each pod by itself. */
static void a_prepare_for_one_pod_of_a_group_does_not_end_the_wait_of_another(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        group_waits("two");
        facts_usable(false);
        fails("c1", CLAIM_1);
        prepare(&op, "c1", CLAIM_1);
        facts_usable(true);
        daemon_ready();
        world_wait(&op, PREPARED);
        world_turn();
        assert_true(is_asked("two"));
}

static void the_pause_of_a_group_grows(void **state) {
        (void)state;
        group_waits("one");
        fails_without_driver();
        facts_usable(true);
        assert_true(is_asked("one"));
        put_waiting("one");
        facts_usable(false);
        fails("c1", CLAIM_1);
        facts_usable(true);
        pass(RETRY_PAUSE_MS / 2);
        assert_false(is_asked("one"));
        pass(RETRY_PAUSE_MS);
        assert_true(is_asked("one"));
}

static void put_sharer(const char *name, const char *node, const char *claim) {
        char json[400];
        snprintf(json, sizeof json,
                 "{\"metadata\":{\"namespace\":\"user\",\"name\":\"%s\",\"uid\":\"u-%s\","
                 "\"resourceVersion\":\"1\"},\"spec\":{\"nodeName\":\"%s\",\"resourceClaims\":[{"
                 "\"name\":\"c\",\"resourceClaimName\":\"%s\"}]},\"status\":{\"phase\":\"Pending\"}}",
                 name, name, node, claim);
        store_set(&api.store, &kube_pods, "user", name, json);
}

/* failure: a claim has many pods on other nodes -> the plugin writes only to those that wait on its node */
static void only_the_pods_of_the_node_are_retried_when_a_claim_has_many(void **state) {
        (void)state;
        _cleanup_(buf_done) struct buf pods = BUF_INIT(8192);
        for (int i = 0; i <= RETRY_PODS_MAX; i++) {
                char name[16];
                snprintf(name, sizeof name, "s%d", i);
                put_sharer(name, i ? "another-node" : "n0", "c1");
                buf_addf(&pods, "%s{\"resource\":\"pods\",\"name\":\"%s\",\"uid\":\"u-%s\"}", i ? "," : "",
                         name, name);
        }
        put_sharer("stranger", "n0", "c2");
        claim_of(buf_str(&pods));
        fails("c1", CLAIM_1);
        unsigned requests = api.requests;
        imex_is_ready();
        assert_true(is_asked("s0"));
        assert_false(is_asked("s1"));
        assert_false(is_asked("stranger"));
        assert_in_range(api.requests - requests, 2, 6);
}

/* failure: the plugin may not list pods -> the kubelet retries the pods of a PodGroup by itself */
static void a_denied_list_of_pods_changes_nothing_else(void **state) {
        (void)state;
        group_waits("one");
        fails("c1", CLAIM_1);
        api.fails_for = ""; /* lists */
        api.fails_with = ERR_DENIED;
        imex_is_ready();
        api.fails_for = NULL;
        assert_false(is_asked("one"));
        prepares("c1", CLAIM_1);
}

static void a_process_can_end_while_it_lists_pods(void **state) {
        (void)state;
        group_waits("one");
        fails_without_driver();
        api.down = true;
        facts_usable(true);
        world_stop(w.claims);
        api.down = false;
        world_start(BOOT);
        world_turn();
        assert_false(is_asked("one"));
}

/* failure: the API server denies the annotation -> the kubelet retries by itself, and the log has the reason
 */
static void a_denied_request_changes_nothing_else(void **state) {
        (void)state;
        fails("c1", CLAIM_1);
        api.fails_for = "pod-c1";
        api.fails_with = ERR_DENIED;
        imex_is_ready();
        api.fails_for = NULL;
        assert_false(is_asked("pod-c1"));
        prepares("c1", CLAIM_1);
}

static void without_the_flag_nothing_is_kept(void **state) {
        (void)state;
        world_stop(w.claims);
        w.retries = false;
        world_start(BOOT);
        claims_registered(w.claims);
        fails("c1", CLAIM_1);
        assert_true(TAILQ_EMPTY(&w.claims->failed));
        imex_is_ready();
        assert_false(is_asked("pod-c1"));
}

static void a_process_can_end_with_kept_prepares_and_requests(void **state) {
        (void)state;
        fails_without_driver();
        fails("c2", CLAIM_2);
        api.down = true;
        facts_usable(true);
        world_stop(w.claims);
        api.down = false;
        world_start(BOOT);
        world_turn();
        assert_false(is_asked("pod-c1"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, retries_setup, world_teardown)
        const struct CMUnitTest tests[] = {
                T(the_kubelet_is_asked_to_retry_when_imex_is_ready),
                T(the_kubelet_is_asked_to_retry_when_the_device_is_free),
                T(a_prepare_that_failed_before_it_asked_for_imex_is_retried),
                T(a_prepare_does_not_wait_for_the_object_of_an_earlier_partition),
                T(the_kubelet_is_asked_to_retry_when_the_api_server_answers),
                T(a_prepare_that_the_kubelet_breaks_off_is_retried),
                T(the_kubelet_is_asked_to_retry_when_the_disk_has_stored_the_claim),
                T(a_prepare_that_succeeds_after_it_was_broken_off_is_retried),
                T(a_late_prepare_is_retried_after_the_pause),
                T(a_late_prepare_that_would_wait_is_kept),
                T(a_prepare_that_never_got_into_a_batch_is_kept),
                T(a_repeated_prepare_that_never_got_into_a_batch_is_kept),
                T(a_kept_prepare_follows_no_domain_of_another_namespace),
                T(the_pause_between_two_requests_grows),
                T(a_cause_that_returns_during_the_pause_sends_no_request),
                T(a_longer_pause_of_one_pod_does_not_delay_another),
                T(a_prepare_is_kept_for_a_limited_time),
                T(an_unprepared_claim_is_not_retried),
                T(a_claim_of_a_deleted_domain_is_not_retried),
                T(a_retry_of_the_kubelet_ends_the_wait),
                T(each_pod_of_a_claim_is_retried),
                T(each_pod_of_a_claim_is_retried_after_a_late_prepare),
                T(a_prepare_for_one_pod_does_not_end_the_wait_of_another),
                T(a_pod_with_another_uid_is_left_alone),
                T(other_consumers_are_left_alone),
                T(the_waiting_pods_of_a_group_are_retried),
                T(a_prepare_for_one_pod_of_a_group_does_not_end_the_wait_of_another),
                T(the_pause_of_a_group_grows),
                T(only_the_pods_of_the_node_are_retried_when_a_claim_has_many),
                T(a_denied_list_of_pods_changes_nothing_else),
                T(a_process_can_end_while_it_lists_pods),
                T(a_denied_request_changes_nothing_else),
                T(without_the_flag_nothing_is_kept),
                T(a_process_can_end_with_kept_prepares_and_requests),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
