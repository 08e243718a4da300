/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the kubelet to retry Prepares after a registration. */
#include "world/cd_retries.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "node/retry.h"

#define OTHER_BOOT "33333333-3333-4333-8333-333333333333"

static void the_plugin_is_registered(void) {
        claims_registered(w.claims);
        world_turn();
}

/* failure: the plugin is killed while a Prepare waits -> the next plugin asks the kubelet to retry [plugin]
 */
static void the_next_process_asks_for_a_retry_of_unfinished_prepares(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        world_stop(w.claims);
        world_start(BOOT);
        world_turn();
        assert_false(is_asked("pod-c1"));
        claims_registered(w.claims);
        world_turn();
        assert_true(is_asked("pod-c1"));
}

/* failure: a node reboots -> the plugin asks the kubelet to retry the Prepares that failed before the
 * registration of the plugin [rebooted] */
static void the_claims_of_an_earlier_boot_are_retried(void **state) {
        (void)state;
        daemon_ready();
        prepares("c1", CLAIM_1);
        fails("c2", CLAIM_2);
        world_stop(w.claims);
        daemon_dies();
        world_start(OTHER_BOOT);
        world_turn();
        assert_false(is_asked("pod-c1"));
        the_plugin_is_registered();
        pass(RETRY_PAUSE_MAX_MS); /* the pods of this test have the same UID */
        assert_true(take_request("pod-c1"));
        assert_true(take_request("pod-c2"));
        assert_null(world_entry(w.claims, CLAIM_1));
        /* Once. */
        pass(RETRY_KEEP_MS + 1000);
        the_plugin_is_registered();
        assert_false(is_asked("pod-c1"));
}

/* failure: the kubelet restarts after a request -> the plugin repeats it when it is registered again [plugin]
 */
static void a_request_is_repeated_when_the_plugin_is_registered_again(void **state) {
        (void)state;
        fails("c1", CLAIM_1);
        imex_is_ready();
        assert_true(take_request("pod-c1"));
        pass(RETRY_PAUSE_MAX_MS);
        assert_false(is_asked("pod-c1"));
        the_plugin_is_registered();
        assert_true(is_asked("pod-c1"));
}

/* failure: another plugin of a pod is down -> this plugin asks for a retry when that plugin is registered */
static void recent_prepares_are_retried_at_a_registration(void **state) {
        (void)state;
        daemon_ready();
        prepares("c1", CLAIM_1);
        assert_false(is_asked("pod-c1"));
        the_plugin_is_registered();
        pass(RETRY_PAUSE_MAX_MS); /* the pods of this test have the same UID */
        assert_true(take_request("pod-c1"));
        assert_true(TAILQ_EMPTY(&w.claims->failed));
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_COMPLETED);
}

static void older_prepares_are_not_retried_at_a_registration(void **state) {
        (void)state;
        daemon_ready();
        prepares("c1", CLAIM_1);
        pass(RETRY_RECENT_MS);
        the_plugin_is_registered();
        pass(RETRY_PAUSE_MAX_MS);
        assert_false(is_asked("pod-c1"));
}

static void series(const char *name, const char *labels, const char *value) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        _cleanup_(freep) char *line = xasprintf("%s{driver=\"" CD_DRIVER "\",%s} %s\n", name, labels, value);
        metrics_render(w.metrics.node.registry, &out);
        if (!strstr(buf_str(&out), line))
                fail_msg("%s is not in\n%s", line, buf_str(&out));
}

/* failure: the plugin is registered while claims are prepared -> they do not count as failed */
static void healthy_claims_do_not_count_as_failed_at_a_registration(void **state) {
        (void)state;
        imex_is_ready(); /* an attempt that waits for the daemon counts as an error */
        prepares("c1", CLAIM_1);
        prepares("c1", CLAIM_1);
        api_remove_claim("user", "c1"); /* the record is kept while the claim may still be there */
        the_plugin_is_registered();
        pass(RETRY_PAUSE_MAX_MS);
        assert_true(TAILQ_EMPTY(&w.claims->failed));
        series("nvidia_dra_compute_domain_claim_failures_total", "operation=\"prepare\"", "0");
        series("nvidia_dra_compute_domain_claims_pending", "operation=\"prepare\"", "0");
        series("nvidia_dra_node_prepare_errors_total", "error_type=\"prepare_devices\"", "0");
        /* Replaced by another claim of the name. */
        api_claim("user", "c1", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, "");
        the_plugin_is_registered();
        pass(RETRY_PAUSE_MAX_MS);
        series("nvidia_dra_node_prepare_errors_total", "error_type=\"prepare_devices\"", "0");
}

/* failure: the kubelet restarts, and registers both plugins of the node -> each writes to a pod once */
static void two_registrations_cause_one_request(void **state) {
        (void)state;
        daemon_ready();
        prepares("c1", CLAIM_1);
        the_plugin_is_registered();
        pass(1000);
        assert_false(is_asked("pod-c1"));
        the_plugin_is_registered(); /* or the other one */
        pass(1500);
        assert_false(is_asked("pod-c1"));
        pass(2 * RETRY_REGISTERED_MS); /* the pods of this test have the same UID */
        assert_true(take_request("pod-c1"));
        pass(RETRY_PAUSE_MAX_MS);
        assert_false(is_asked("pod-c1"));
}

/* failure: another process of the plugin writes the record -> this one knows what it has prepared [plugin] */
static void recent_prepares_are_known_after_a_write_of_another_process(void **state) {
        (void)state;
        daemon_ready();
        prepares("c1", CLAIM_1);
        struct claims *other = world_process(BOOT);
        world_turn();
        world_stop(other);
        claims_renew(w.claims, CLAIM_1);
        world_turn();
        the_plugin_is_registered();
        pass(2 * RETRY_REGISTERED_MS);
        assert_true(is_asked("pod-c1"));
}

/* failure: the disk is full after a reboot -> the claims of the earlier boot are retried once [host] */
static void a_full_disk_does_not_repeat_the_requests_of_a_reboot(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = RETRIES_TIMEOUT_MS };
        struct rlimit unlimited, small;
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
        small = (struct rlimit){ 16, unlimited.rlim_max };
        daemon_ready();
        prepares("c1", CLAIM_1);
        world_stop(w.claims);
        daemon_dies();
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        world_start(OTHER_BOOT);
        world_turn();
        the_plugin_is_registered();
        pass(RETRY_PAUSE_MAX_MS); /* the pods of this test have the same UID */
        bool once = take_request("pod-c1");
        pass(RETRY_KEEP_MS + 1000);
        prepare(&op, "c2", CLAIM_2);
        world_wait(&op, FAILED);
        the_plugin_is_registered();
        pass(RETRY_PAUSE_MAX_MS);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
        assert_true(once);
        assert_false(is_asked("pod-c1"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, retries_setup, world_teardown)
        const struct CMUnitTest tests[] = {
                T(the_next_process_asks_for_a_retry_of_unfinished_prepares),
                T(the_claims_of_an_earlier_boot_are_retried),
                T(a_request_is_repeated_when_the_plugin_is_registered_again),
                T(recent_prepares_are_retried_at_a_registration),
                T(older_prepares_are_not_retried_at_a_registration),
                T(healthy_claims_do_not_count_as_failed_at_a_registration),
                T(two_registrations_cause_one_request),
                T(recent_prepares_are_known_after_a_write_of_another_process),
                T(a_full_disk_does_not_repeat_the_requests_of_a_reboot),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
