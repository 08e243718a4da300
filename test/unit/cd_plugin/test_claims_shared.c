/* SPDX-License-Identifier: Apache-2.0 */
/* One device, several claims; one node, two plugin processes during an update. */
#include "world/cd_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* failure: two claims have the same channel device -> the second one waits */
static void second_claim_for_the_channel_waits_for_the_first(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 }, gone = { 0 };
        daemon_ready();
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        claims_dump(w.claims);
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        world_wait(&two, PREPARED);
}

/* failure: a channel stays in use until the deadline -> the error names the claim that holds it */
static void at_the_deadline_the_holder_is_named(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { .timeout_ms = 200 };
        daemon_ready();
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        prepare(&two, "c2", CLAIM_2);
        world_wait(&two, FAILED);
        assert_non_null(strstr(two.msg, "n0: device 'channel-0' is still held by claim 'user/c1'"));
}

/* failure: another tenant holds the channel -> the error does not name its claim [tenants] */
static void holder_of_another_namespace_is_not_named(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { .timeout_ms = 200 };
        daemon_ready();
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        api_domain("tenant", "theirs", DOMAIN_B, false);
        api_claim("tenant", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_B, "");
        kubelet_prepare(w.claims, &two, "tenant", "c2", CLAIM_2);
        world_wait(&two, FAILED);
        assert_non_null(strstr(two.msg, "is still held by a claim of another namespace"));
        assert_null(strstr(two.msg, "user"));
        assert_null(strstr(two.msg, "c1"));
        assert_null(strstr(two.msg, CLAIM_1));
}

static void two_claims_in_one_call_do_not_share_the_channel(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { .timeout_ms = 600 };
        prepare(&one, "c1", CLAIM_1);
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        daemon_ready();
        world_wait(&one, PREPARED);
        world_wait(&two, FAILED);
        assert_null(world_cdi(CLAIM_2));
}

#define WITH_ADMIN_ACCESS(domain)                                                                            \
        "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1                           \
        "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":["               \
        "{\"request\":\"r\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":\"channel-"  \
        "0\","                                                                                               \
        "\"adminAccess\":true}],\"config\":[{\"source\":\"FromClaim\",\"opaque\":{\"driver\":"               \
        "\"compute-domain.nvidia.com\",\"parameters\":{\"apiVersion\":\"resource.nvidia.com/v1beta1\","      \
        "\"kind\":\"" CHANNEL "\",\"domainID\":\"" domain "\"}}}]}}}}"

/* failure: a claim has admin access -> it does not take the channel */
static void admin_access_does_not_take_the_channel(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 };
        api_claim_json("user", "c1", WITH_ADMIN_ACCESS(DOMAIN_A));
        daemon_ready();
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        prepare(&two, "c2", CLAIM_2);
        world_wait(&two, PREPARED);
        struct dra_op again = { 0 };
        kubelet_unprepare(w.claims, &again, "user", "c1", CLAIM_1);
        world_wait(&again, UNPREPARED);
        struct dra_op third = { 0 };
        prepare(&third, "c1", CLAIM_1); /* together with the holder */
        world_wait(&third, PREPARED);
}

/* failure: a node's only claim of a ComputeDomain has admin access -> the error states why it waits */
static void admin_access_brings_no_node_into_a_domain(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 200 };
        daemon_ready();
        api_domain("user", "second", DOMAIN_B, false);
        api_claim_json("user", "c1", WITH_ADMIN_ACCESS(DOMAIN_B));
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "n0: this claim has admin access, which brings no node into "
                                       "ComputeDomain 'user/second'"));
}

/* failure: the daemon is in another ComputeDomain -> a claim waits, and does not name that ComputeDomain
 * [tenants] */
static void a_claim_waits_for_a_daemon_in_another_domain(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 200 };
        daemon_ready();
        api_domain("user", "second", DOMAIN_B, false);
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_B, "");
        prepare(&op, "c2", CLAIM_2);
        world_wait(&op, FAILED);
        assert_non_null(strstr(
                op.msg, "n0: this node has no assignment in the IMEX domain of ComputeDomain 'user/second'"));
        /* A user of this namespace need not know which ComputeDomain that is. */
        assert_null(strstr(op.msg, "daemon-claim"));
        assert_null(strstr(op.msg, DOMAIN_A));
}

/* ---- two plugin processes during an update ---- */

/* failure: another plugin process unprepares a claim that this one prepares -> this Prepare fails */
static void a_prepare_fails_when_another_process_unprepares_its_claim(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 };
        struct claims *other = world_process(BOOT);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        kubelet_unprepare(other, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        daemon_ready();
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "unprepared while"));
        assert_null(world_cdi(CLAIM_1));
        world_stop(other);
}

/* failure: another plugin process frees the channel -> a Prepare that waits for it succeeds */
static void a_channel_freed_by_another_process_is_prepared(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 }, gone = { 0 };
        daemon_ready();
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        struct claims *other = world_process(BOOT);
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        kubelet_unprepare(other, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        world_wait(&two, PREPARED);
        world_stop(other);
}

static double attempts_took_s(void) {
        static const char series[] =
                "nvidia_dra_request_duration_seconds_sum{driver=\"" CD_DRIVER "\",operation=\"prepare\"} ";
        struct buf out = BUF_INIT(1 << 20);
        metrics_render(w.metrics.node.registry, &out);
        const char *p = strstr(buf_str(&out), series);
        assert_non_null(p);
        double seconds = strtod(p + strlen(series), NULL);
        buf_done(&out);
        return seconds;
}

/* Begins a Prepare while another process has the node lock, which the caller releases and frees. */
static struct node_lock *prepares_without_the_lock(struct dra_op *op) {
        struct node_lock *other;
        struct err e;
        daemon_ready();
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "pu.lock");
        assert_int_equal(node_lock_new(&w.loop, path, &other, &e), 0);
        assert_true(node_lock_try(other));
        prepare(op, "c1", CLAIM_1);
        world_turn();
        return other;
}

/* failure: another plugin process holds the node lock -> Prepare waits, and everything else continues */
static void a_lock_held_by_another_process_delays_only_prepare(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct node_lock *other = prepares_without_the_lock(&op);
        assert_int_equal(op.answer, PENDING);
        assert_true(claims_stuck(w.claims));
        uint64_t later = uv_now(&w.loop) + 2000;
        while (uv_now(&w.loop) < later)
                uv_run(&w.loop, UV_RUN_ONCE);
        node_lock_release(other);
        world_wait(&op, PREPARED);
        assert_false(claims_stuck(w.claims));
        assert_true(attempts_took_s() >= 2); /* as the Go driver measures it */
        node_lock_free(other);
}

/* failure: a Prepare reaches its deadline while another process has the node lock -> the error names the lock
 */
static void deadline_without_the_node_lock_names_the_lock(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 4000 }, again = { 0 };
        struct node_lock *other = prepares_without_the_lock(&op);
        while (op.answer == PENDING)
                uv_run(&w.loop, UV_RUN_ONCE);
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, "n0: another plugin process on this node has held the node lock"));
        node_lock_release(other);
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        node_lock_free(other);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(second_claim_for_the_channel_waits_for_the_first),
                T(at_the_deadline_the_holder_is_named),
                T(holder_of_another_namespace_is_not_named),
                T(two_claims_in_one_call_do_not_share_the_channel),
                T(admin_access_does_not_take_the_channel),
                T(admin_access_brings_no_node_into_a_domain),
                T(a_claim_waits_for_a_daemon_in_another_domain),
                T(a_prepare_fails_when_another_process_unprepares_its_claim),
                T(a_channel_freed_by_another_process_is_prepared),
                T(a_lock_held_by_another_process_delays_only_prepare),
                T(deadline_without_the_node_lock_names_the_lock),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
