/* SPDX-License-Identifier: Apache-2.0 */
/* Absence is no proof: which claims without an object the plugin may remove, and which not. */
#include "world/cd_node.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define PERIOD (10ULL * 60 * 1000)

static void sweep_after(unsigned periods) {
        claim_gc_deleted_claims(w.claims->claim_gc, uv_now(&w.loop) + periods * PERIOD);
        world_turn();
}

static void prepared_channel(void) {
        struct dra_op op = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
}

static void still_prepared(const char *uid) {
        assert_non_null(world_entry(w.claims, uid));
        assert_int_equal(world_entry(w.claims, uid)->state, CHECKPOINT_COMPLETED);
        _cleanup_(freep) char *cdi = world_cdi(uid);
        assert_non_null(cdi);
        assert_true(world_recorded(uid));
}

static void gone(const char *uid) {
        assert_null(world_entry(w.claims, uid));
        assert_null(world_cdi(uid));
        assert_false(world_recorded(uid));
}

/* failure: a claim is missing in one check only -> it stays prepared [api-server] */
static void claim_that_is_missing_once_stays_prepared(void **state) {
        (void)state;
        prepared_channel();
        api_remove_claim("user", "c1");
        sweep_after(0);
        still_prepared(CLAIM_1);
        sweep_after(0); /* a look-up between two periods, as for a claim that waits for the device */
        still_prepared(CLAIM_1);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        sweep_after(1);
        api_remove_claim("user", "c1");
        sweep_after(2);
        still_prepared(CLAIM_1); /* findings from before it reappeared do not count */
}

/* failure: a claim is missing for a full period -> it is unprepared */
static void claim_that_is_missing_for_a_period_is_unprepared(void **state) {
        (void)state;
        struct dra_op two = { 0 };
        prepared_channel();
        api_remove_claim("user", "c1");
        prepare(&two, "c2", CLAIM_2);
        sweep_after(0);
        assert_int_equal(two.answer, PENDING);
        sweep_after(1);
        world_wait(&two, PREPARED);
        gone(CLAIM_1);
        still_prepared(DAEMON_1);
}

/* failure: a prepared claim is deleted and recreated under its name -> the old one is unprepared */
static void a_claim_recreated_under_its_name_is_unprepared(void **state) {
        (void)state;
        prepared_channel();
        api_claim("user", "c1", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, "");
        sweep_after(0);
        still_prepared(CLAIM_1);
        sweep_after(1);
        gone(CLAIM_1);
}

/* The full time of a Prepare, in virtual time. */
static void wait_long(struct dra_op *op, enum answer want) {
        while (op->answer == PENDING) {
                world_turn();
                if (op->answer == PENDING)
                        uv_run(&w.loop, UV_RUN_ONCE);
        }
        if (op->answer != want)
                fail_msg("%s", op->msg);
}

/* A claim that was created by name is now allocated on another node, and this node's kubelet was reset. */
/* failure: a claim that the kubelet forgot is allocated on another node -> this node unprepares it */
static void a_claim_allocated_on_another_node_is_unprepared(void **state) {
        static const char *const allocations[] = {
                "null",
                "{}",
                "{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"compute-domain.nvidia.com\","
                "\"pool\":\"n1\",\"device\":\"channel-0\"}]}}",
                "{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"other.example.com\","
                "\"pool\":\"n0\",\"device\":\"channel-0\"}]}}",
        };
        daemon_ready();
        for (unsigned i = 0; i < ARRAY_LEN(allocations); i++) {
                struct dra_op op = { 0 };
                _cleanup_(freep) char *json =
                        xasprintf("{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                                  "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":%s}}",
                                  allocations[i]);
                api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
                sweep_after(10 * i);
                prepare(&op, "c1", CLAIM_1);
                world_wait(&op, PREPARED);
                api_claim_json("user", "c1", json);
                sweep_after(10 * i + 1);
                still_prepared(CLAIM_1);
                sweep_after(10 * i + 2);
                gone(CLAIM_1);
        }
        still_prepared(DAEMON_1);
}

/* failure: one device of a claim is still allocated on this node -> the claim stays prepared */
static void a_claim_with_one_of_its_devices_left_stays_prepared(void **state) {
        prepared_channel();
        api_claim_json("user", "c1",
                       "{\"metadata\":{\"uid\":\"" CLAIM_1 "\"},\"status\":{\"allocation\":{\"devices\":"
                       "{\"results\":[{\"request\":\"g\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\","
                       "\"device\":\"gpu-0\"},{\"request\":\"r\",\"driver\":\"compute-domain.nvidia.com\","
                       "\"pool\":\"n0\",\"device\":\"channel-0\"}]}}}}");
        for (unsigned i = 0; i < 3; i++)
                sweep_after(i);
        still_prepared(CLAIM_1);
}

/* The kubelet knows the claim as prepared, so it starts the next pod with the old device, without a Prepare.
 */
/* failure: a claim is allocated again on its node, to another device -> it stays prepared under its new pod
 */
static void a_claim_allocated_again_on_its_node_stays_prepared(void **state) {
        struct dra_op two = { 0 };
        prepared_channel();
        api_claim("user", "c1", CLAIM_1, "channel-7", CHANNEL, DOMAIN_A, "");
        for (unsigned i = 0; i < 3; i++)
                sweep_after(i);
        still_prepared(CLAIM_1);
        prepare(&two, "c2", CLAIM_2);
        wait_long(&two, FAILED);
        still_prepared(CLAIM_1);
        assert_non_null(strstr(two.msg, "device 'channel-0' is still held by claim 'user/c1'"));
}

/* The scheduler has given its device to another claim: two look-ups are enough, within one Prepare. */
/* failure: a node was reset without a reboot and a claim waits -> the deleted holder is unprepared within
 * that Prepare */
static void a_deleted_holder_is_unprepared_while_a_prepare_waits(void **state) {
        for (unsigned i = 0; i < 2; i++) {
                struct dra_op two = { 0 }, un = { 0 };
                api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
                if (i == 0) {
                        prepared_channel();
                        api_remove_claim("user", "c1");
                } else {
                        struct dra_op op = { 0 };
                        prepare(&op, "c1", CLAIM_1);
                        world_wait(&op, PREPARED);
                        api_claim_json("user", "c1",
                                       "{\"metadata\":{\"uid\":\"" CLAIM_1
                                       "\"},\"status\":{\"allocation\":{\"devices\":{\"results\":[{"
                                       "\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n1\","
                                       "\"device\":\"channel-0\"}]}}}}");
                }
                uint64_t began_ms = uv_now(&w.loop);
                prepare(&two, "c2", CLAIM_2);
                world_turn();
                still_prepared(CLAIM_1);
                assert_non_null(strstr(w.claims->ops.tqh_first->msg,
                                       i == 0 ? "; the API server no longer has that claim: the device is "
                                                "released in 35 s"
                                              : "; that claim is no longer allocated on this node: the "
                                                "device is released in 35 s"));
                wait_long(&two, PREPARED);
                assert_in_range(uv_now(&w.loop) - began_ms, CLAIM_GC_HOLDER_MS, 44000);
                gone(CLAIM_1);
                still_prepared(DAEMON_1);
                kubelet_unprepare(w.claims, &un, "user", "c2", CLAIM_2);
                world_wait(&un, UNPREPARED);
        }
}

/* failure: the holder of a device exists or returns -> it keeps the device */
static void a_holder_that_exists_or_returns_keeps_its_device(void **state) {
        struct dra_op two = { 0 }, again = { 0 };
        prepared_channel();
        prepare(&two, "c2", CLAIM_2);
        wait_long(&two, FAILED);
        still_prepared(CLAIM_1);
        assert_null(strstr(two.msg, "released in"));
        /* Missing in one look-up; and in one that no API server answers. */
        api_remove_claim("user", "c1");
        prepare(&again, "c2", CLAIM_2);
        world_turn();
        api.fails_for = "c1";
        api.fails_with = ERR_RETRY;
        wait_long(&again, FAILED);
        api.fails_for = NULL;
        still_prepared(CLAIM_1);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        again = (struct dra_op){ 0 };
        prepare(&again, "c2", CLAIM_2);
        wait_long(&again, FAILED);
        still_prepared(CLAIM_1);
}

/* For one of two claims the answer is not from an API server: no answer of that round counts, nor earlier
 * ones. */
/* failure: something else answers one of the plugin's checks -> no claim of that round is unprepared
 * [api-server] */
static void an_api_server_in_trouble_proves_no_claim_missing(void **state) {
        (void)state;
        prepared_channel();
        api_remove_claim("user", "c1");
        sweep_after(0);
        static const enum err_kind kinds[] = { ERR_DENIED, ERR_INVALID, ERR_GONE, ERR_CONFLICT,
                                               ERR_INTERNAL };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                api.fails_for = "daemon-claim";
                api.fails_with = kinds[i];
                sweep_after(1 + (unsigned)i);
                still_prepared(CLAIM_1);
                still_prepared(DAEMON_1);
        }
        api.fails_for = NULL;
        api.refuses = "no healthy upstream";
        sweep_after(10);
        api.refuses = NULL;
        sweep_after(11);
        still_prepared(CLAIM_1);
        sweep_after(12);
        gone(CLAIM_1);
}

/* failure: the claim of a running daemon is deleted -> it stays prepared until the daemon has ended */
static void the_claim_of_a_running_daemon_stays_prepared(void **state) {
        (void)state;
        _cleanup_(freep) char *folder = file_join(w.plugin_dir, "domains/" DOMAIN_A "/state.json");
        daemon_ready();
        api_remove_claim("driver", "daemon-claim");
        for (unsigned i = 0; i < 3; i++)
                sweep_after(i);
        still_prepared(DAEMON_1);
        assert_int_equal(access(folder, F_OK), 0);
        close(w.lock_fd); /* the daemon ends */
        w.lock_fd = -1;
        sweep_after(3);
        gone(DAEMON_1);
}

/* A copy of the folder, or an empty checkpoint, was restored: files of this boot are newer. */
/* failure: an older or empty checkpoint is restored -> claims with CDI files of this boot stay prepared
 * */
static void claims_missing_in_a_restored_checkpoint_are_kept(void **state) {
        (void)state;
        _cleanup_(freep) char *folder = file_join(w.plugin_dir, "domains/" DOMAIN_A "/state.json");
        prepared_channel();
        world_stop(w.claims);
        world_put_checkpoint("{}");
        world_start(BOOT);
        still_prepared(CLAIM_1);
        still_prepared(DAEMON_1);
        assert_int_equal(access(folder, F_OK), 0);
        assert_non_null(strstr(api.events, "Node/n0 CheckpointIncomplete"));
}

/* failure: a checkpoint of another boot is restored -> claims of this boot stay prepared */
static void claims_of_this_boot_outlive_a_checkpoint_of_another_one(void **state) {
        (void)state;
        struct err e;
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        prepared_channel();
        world_stop(w.claims);
        struct claims *before = world_process("22222222-2222-4222-8222-222222222222");
        world_stop(before); /* its checkpoint is of the other boot */
        _cleanup_(freep) char *other = world_read(path);
        world_start(BOOT);
        prepared_channel();
        world_stop(w.claims);
        assert_int_equal(file_replace(path, other, strlen(other), 0600, &e), 0);
        world_start(BOOT);
        still_prepared(CLAIM_1);
        still_prepared(DAEMON_1);
}

/* It has no entry, but a daemon uses it. */
/* failure: a restored checkpoint lacks a running daemon -> its folder is not removed */
static void the_folder_of_a_running_daemon_is_not_removed(void **state) {
        (void)state;
        struct err e;
        _cleanup_(freep) char *folder = file_join(w.plugin_dir, "domains/" DOMAIN_A "/state.json");
        _cleanup_(freep) char *cdi =
                xasprintf("%s/k8s.compute-domain.nvidia.com-claim_" DAEMON_1 ".yaml", w.cdi_root);
        daemon_ready();
        world_stop(w.claims);
        assert_int_equal(file_remove(cdi, &e), 0);
        world_put_checkpoint("{}");
        world_start(BOOT);
        assert_int_equal(access(folder, F_OK), 0);
        world_stop(w.claims);
        close(w.lock_fd);
        w.lock_fd = -1;
        world_start(BOOT);
        assert_int_equal(access(folder, F_OK), -1);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(claim_that_is_missing_once_stays_prepared),
                T(claim_that_is_missing_for_a_period_is_unprepared),
                T(a_claim_recreated_under_its_name_is_unprepared),
                T(a_claim_allocated_on_another_node_is_unprepared),
                T(a_claim_with_one_of_its_devices_left_stays_prepared),
                T(a_claim_allocated_again_on_its_node_stays_prepared),
                T(a_deleted_holder_is_unprepared_while_a_prepare_waits),
                T(a_holder_that_exists_or_returns_keeps_its_device),
                T(an_api_server_in_trouble_proves_no_claim_missing),
                T(the_claim_of_a_running_daemon_stays_prepared),
                T(claims_missing_in_a_restored_checkpoint_are_kept),
                T(claims_of_this_boot_outlive_a_checkpoint_of_another_one),
                T(the_folder_of_a_running_daemon_is_not_removed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
