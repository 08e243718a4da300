/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's reports on its own Pod: all in one patch, retried until the API server has accepted them, and
 * written again when it has lost them. */
#include "world/cd_node.h"

#include <string.h>

#include "api/kinds.h"
#include "cd_plugin/own_pod.h"
#include "world/informers.h"

#define ONE "imex.resource.nvidia.com/one"
#define TWO "imex.resource.nvidia.com/two"

static struct own_pod *pod;

static int setup(void **state) {
        if (world_setup(state) < 0)
                return -1;
        pod = own_pod_new(NULL, "driver", "plugin-n0");
        world_turn();
        return 0;
}

static int teardown(void **state) {
        own_pod_free(pod);
        return world_teardown(state);
}

static void is(const char *key, const char *value) {
        assert_string_equal(str_or(pod_annotation(key), "none"), value);
}

static void until(const char *key, const char *value) {
        while (!streq(str_or(pod_annotation(key), "none"), value)) {
                uv_run(&w.loop, UV_RUN_ONCE);
                world_turn();
        }
}

static void values_set_together_are_one_patch(void **state) {
        (void)state;
        own_pod_set(pod, TWO, "b", 1000);
        world_turn();
        is(TWO, "none");
        own_pod_set(pod, ONE, "a", 0);
        world_turn();
        is(ONE, "a");
        is(TWO, "b");
        assert_int_equal(api.requests, 1);
        own_pod_set(pod, ONE, "a", 0); /* no change */
        world_turn();
        assert_int_equal(api.requests, 1);
}

static void a_value_that_may_wait_is_written_later(void **state) {
        (void)state;
        own_pod_set(pod, ONE, "a", 1000);
        own_pod_set(pod, ONE, "b", 1000);
        world_turn();
        assert_int_equal(api.requests, 0);
        until(ONE, "b");
        assert_int_equal(api.requests, 1);
}

/* Only differences are written. */
static void a_value_is_changed_and_removed(void **state) {
        (void)state;
        own_pod_set(pod, ONE, "a", 0);
        own_pod_set(pod, TWO, NULL, 0);
        world_turn();
        assert_string_equal(api.patch, "{\"metadata\":{\"annotations\":{\"" ONE "\":\"a\"}}}");
        own_pod_set(pod, TWO, "b", 0);
        world_turn();
        assert_string_equal(api.patch, "{\"metadata\":{\"annotations\":{\"" TWO "\":\"b\"}}}");
        own_pod_set(pod, ONE, NULL, 0);
        world_turn();
        assert_string_equal(api.patch, "{\"metadata\":{\"annotations\":{\"" ONE "\":null}}}");
        is(ONE, "none");
        is(TWO, "b");
}

static void a_value_set_during_a_patch_is_written_next(void **state) {
        (void)state;
        api.down = true;
        own_pod_set(pod, ONE, "a", 0);
        world_turn();
        assert_int_equal(api.requests, 1);
        own_pod_set(pod, ONE, "b", 0);
        own_pod_set(pod, TWO, "c", 0);
        world_turn();
        assert_int_equal(api.requests, 1);
        api.down = false;
        world_turn();
        is(ONE, "b");
        is(TWO, "c");
        assert_int_equal(api.requests, 2);
}

static void reports_survive_a_restore_of_etcd(void **state) {
        (void)state;
        own_pod_set(pod, ONE, "a", 0);
        own_pod_set(pod, TWO, "b", 0);
        world_turn();
        pod_restored();
        world_turn();
        is(ONE, "a");
        is(TWO, "b");
}

static void a_failed_patch_is_retried_and_does_not_block_later_values(void **state) {
        (void)state;
        api.fails_for = "plugin-n0";
        api.fails_with = ERR_RETRY;
        own_pod_set(pod, ONE, "a", 0);
        world_turn();
        is(ONE, "none");
        /* Nothing is left to write after the pause. */
        own_pod_set(pod, ONE, NULL, 0);
        while (uv_loop_alive(&w.loop))
                uv_run(&w.loop, UV_RUN_ONCE);
        api.fails_for = NULL;
        own_pod_set(pod, ONE, "b", 0);
        until(ONE, "b");
}

/* failure: the API server does not answer for a while -> the plugin reports when it answers again [etcd] */
static void a_report_is_retried_when_the_api_server_answers_again(void **state) {
        (void)state;
        struct err e;
        err_set(&e, ERR_RETRY, 0, "cannot connect");
        api.fails_for = "plugin-n0";
        api.fails_with = ERR_RETRY;
        own_pod_set(pod, ONE, "a", 0);
        world_turn();
        informers_fail(&kube_pods, &e);
        is(ONE, "none");
        api.fails_for = NULL;
        world_turn();
        is(ONE, "none"); /* the pause is not over */
        informers_fail(&kube_pods, NULL);
        world_turn();
        is(ONE, "a");
}

static void a_plugin_that_does_not_know_its_Pod_reports_nothing(void **state) {
        (void)state;
        struct own_pod *unknown = own_pod_new(NULL, "driver", "");
        own_pod_set(unknown, ONE, "a", 0);
        world_turn();
        assert_int_equal(api.requests, 0);
        own_pod_free(unknown);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(values_set_together_are_one_patch),
                T(a_value_that_may_wait_is_written_later),
                T(a_value_is_changed_and_removed),
                T(a_value_set_during_a_patch_is_written_next),
                T(reports_survive_a_restore_of_etcd),
                T(a_failed_patch_is_retried_and_does_not_block_later_values),
                T(a_report_is_retried_when_the_api_server_answers_again),
                T(a_plugin_that_does_not_know_its_Pod_reports_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
