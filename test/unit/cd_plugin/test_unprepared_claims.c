/* SPDX-License-Identifier: Apache-2.0 */
/* The controller may give a node's index to another node when the plugin reports that the daemon's claim is
 * unprepared. So the report must never be wrong, and must not get lost. */
#include "world/cd_node.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "cd_plugin/unprepared_claims.h"
#include "imex/imex_lock.h"

#define NEXT "a0000000-0000-4000-8000-000000000002"
#define OTHER_BOOT "22222222-2222-4222-8222-222222222222"
#define FILE_OF_CLAIMS "unprepared-daemon-claims"

static void reported(const char *uid) {
        world_turn();
        const char *is = pod_annotation(IMEX_ANNOTATION_UNPREPARED);
        assert_string_equal(str_or(is, "nothing"), uid);
}

static void restart(const char *boot_id) {
        world_stop(w.claims);
        world_start(boot_id);
}

static void lose(const char *name) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, name);
        assert_int_equal(unlink(path), 0);
}

static void a_claim_is_reported_once_it_is_unprepared(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        reported("nothing");
        daemon_ends(DAEMON_1);
        assert_false(world_recorded(DAEMON_1));
        reported(DAEMON_1);
        daemon_comes(NEXT);
        reported(DAEMON_1);
        daemon_ends(NEXT);
        reported(NEXT);
}

/* Etcd was restored, and the Pod of the earlier daemon exists again: the controller must know that its claim
 * has been unprepared, and not only that of the newest daemon. */
static void a_claim_that_is_requested_again_is_the_newest(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        daemon_comes(DAEMON_1);
        daemon_ends(DAEMON_1);
        daemon_comes(NEXT);
        daemon_ends(NEXT);
        reported(NEXT);
        api_daemon_claim("driver", DAEMON_1, "");
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_wait(&op, FAILED);
        reported(DAEMON_1);
        restart(BOOT);
        reported(DAEMON_1);
}

/* failure: a restore of etcd brings back the Pod of an earlier daemon -> the plugin refuses it and reports it
 * [etcd] */
static void the_pod_of_a_refused_claim_is_reported(void **state) {
        struct dra_op op = { 0 };
        (void)state;
        daemon_comes(DAEMON_1);
        daemon_ends(DAEMON_1);
        assert_null(pod_annotation(IMEX_ANNOTATION_REFUSED));
        api_daemon_claim("driver", DAEMON_1, "");
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_wait(&op, FAILED);
        world_turn();
        assert_string_equal(str_or(pod_annotation(IMEX_ANNOTATION_REFUSED), "nothing"), "p");
}

/* The mode was changed while the daemon served: its index becomes free as in the earlier mode. */
static void it_is_reported_after_a_change_to_host_managed(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        world_stop(w.claims);
        world_mode("HostManagedIMEX=true", "hostManaged");
        world_start(BOOT);
        daemon_ends(DAEMON_1);
        reported(DAEMON_1);
}

static void the_next_process_reports_it_again_on_its_own_Pod(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        daemon_ends(DAEMON_1);
        world_stop(w.claims);
        pod_replaced();
        world_start(BOOT);
        reported(DAEMON_1);
}

/* failure: a restore of etcd removes the plugin's report of unprepared daemon claims -> it is written again
 * [etcd] */
static void a_report_that_a_restore_has_removed_is_written_again(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        daemon_ends(DAEMON_1);
        reported(DAEMON_1);
        pod_restored();
        assert_null(pod_annotation(IMEX_ANNOTATION_UNPREPARED));
        reported(DAEMON_1);
}

static void a_report_is_written_when_the_API_server_answers_again(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        api.fails_for = "plugin-n0";
        api.fails_with = ERR_RETRY;
        daemon_ends(DAEMON_1);
        reported("nothing");
        api.fails_for = NULL;
        while (!pod_annotation(IMEX_ANNOTATION_UNPREPARED)) {
                uv_run(&w.loop, UV_RUN_ONCE);
                world_turn();
        }
        reported(DAEMON_1);
}

/* ---- no proof ---- */

/* failure: the checkpoint is lost -> a daemon claim that it lacks is not reported as unprepared */
static void a_claim_that_a_lost_checkpoint_does_not_have_is_not_reported(void **state) {
        (void)state;
        _cleanup_(freep) char *cdi = cdi_path(w.cdi_root, CD_CDI_KIND_CLAIM, DAEMON_1);
        daemon_comes(DAEMON_1);
        world_stop(w.claims);
        lose("checkpoint.json");
        assert_int_equal(unlink(cdi), 0);
        world_start(BOOT);
        daemon_ends(DAEMON_1);
        reported("nothing");
}

static void a_claim_that_was_rebuilt_from_its_CDI_file_is_reported(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        world_stop(w.claims);
        lose("checkpoint.json");
        world_start(BOOT);
        reported("nothing");
        daemon_ends(DAEMON_1);
        reported(DAEMON_1);
}

/* failure: a daemon claim is of an earlier boot -> it is not reported as unprepared */
static void a_claim_of_an_earlier_boot_is_not_reported(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        daemon_ends(DAEMON_1);
        daemon_comes(NEXT);
        world_stop(w.claims);
        pod_replaced();
        world_start(OTHER_BOOT);
        reported("nothing");
}

/* A container of the same Pod, after the file was removed. */
static void a_report_without_a_record_is_removed(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        daemon_ends(DAEMON_1);
        reported(DAEMON_1);
        world_stop(w.claims);
        lose(FILE_OF_CLAIMS);
        world_start(BOOT);
        reported("nothing");
}

static void an_invalid_list_of_claims_is_ignored(void **state) {
        (void)state;
        tree_put(w.plugin_dir, FILE_OF_CLAIMS, "\0\0\0");
        restart(BOOT);
        reported("nothing");
        tree_put(w.plugin_dir, FILE_OF_CLAIMS, BOOT "\n../../etc\n\nc1\n");
        restart(BOOT);
        reported("nothing");
        daemon_comes(DAEMON_1);
        daemon_ends(DAEMON_1);
        reported(DAEMON_1);
}

/* The plugin was killed between the writes of the list and the checkpoint. */
/* failure: the plugin is killed while it unprepares a daemon claim -> a prepared claim is not reported */
static void a_claim_that_is_still_prepared_is_not_reported(void **state) {
        (void)state;
        struct err e;
        daemon_comes(DAEMON_1);
        world_stop(w.claims);
        assert_int_equal(unprepared_claims_add(w.plugin_dir, BOOT, DAEMON_1, &e), 0);
        world_start(BOOT);
        reported("nothing");
        daemon_ends(DAEMON_1);
        reported(DAEMON_1);
}

/* Its Pod was force-deleted, so the kubelet unprepares the claim while the container still runs. */
/* failure: a force-deleted or cut-off daemon still runs -> its claim is neither unprepared nor reported
 * [force-deleted] */
static void the_claim_of_a_running_force_deleted_daemon_is_neither_unprepared_nor_reported(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_comes(DAEMON_1);
        daemon_writes_state(DAEMON_1, DOMAIN_A, false, "STARTING", CLIQUE "/" DOMAIN_A "/3/1");
        kubelet_unprepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_wait(&op, FAILED);
        assert_non_null(
                strstr(op.msg, "n0: the IMEX daemon of ResourceClaim 'driver/daemon-claim' still runs"));
        assert_true(world_recorded(DAEMON_1));
        _cleanup_(freep) char *cdi = world_cdi(DAEMON_1);
        assert_non_null(cdi);
        reported("nothing");
        daemon_dies();
        daemon_ends(DAEMON_1);
        reported(DAEMON_1);
}

/* An idle daemon has no state file, nor has one that could not write it. */
/* failure: a force-deleted daemon runs without a state file -> its claim is not unprepared [force-deleted] */
static void the_claim_of_a_running_daemon_without_a_state_file_is_not_unprepared(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct err e;
        int life;
        _cleanup_(freep) char *lock = xasprintf("%s/domains/" IMEX_DAEMON_LOCK, w.plugin_dir);
        daemon_comes(DAEMON_1);
        assert_int_equal(imex_lock_take(lock, &life, &e), 0);
        kubelet_unprepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_wait(&op, FAILED);
        assert_true(world_recorded(DAEMON_1));
        reported("nothing");
        close(life);
        daemon_ends(DAEMON_1);
        reported(DAEMON_1);
}

static void a_daemon_of_the_Go_driver_has_no_assignment_and_is_not_reported(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        go_comes();
        kubelet_unprepare(w.claims, &op, "driver", "go-claim", GO_DAEMON);
        world_wait(&op, UNPREPARED);
        reported("nothing");
}

/* ---- afterwards ---- */

static void refused(const char *uid) {
        struct dra_op op = { 0 };
        api_daemon_claim("driver", uid, "");
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", uid);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "n0: ResourceClaim 'driver/daemon-claim' ("));
        assert_non_null(strstr(op.msg, "was unprepared earlier in this boot of the node"));
        assert_non_null(strstr(
                op.msg, "the controller replaces the daemon's Pod 'pod-daemon-claim', and the next one"));
        assert_false(world_recorded(uid));
        assert_null(world_cdi(uid));
}

/* failure: a daemon claim was reported as unprepared -> it is never prepared again in this boot */
static void a_claim_that_was_reported_is_never_prepared_again_in_this_boot(void **state) {
        (void)state;
        daemon_comes(DAEMON_1);
        daemon_ends(DAEMON_1);
        refused(DAEMON_1);
        daemon_comes(NEXT);
        refused(DAEMON_1); /* at once, although the device is taken */
        daemon_ends(NEXT);
        restart(BOOT);
        refused(DAEMON_1);
        refused(NEXT);
        reported(NEXT);
        restart(OTHER_BOOT);
        daemon_comes(DAEMON_1);
}

/* failure: another plugin process unprepares a daemon claim -> this process refuses it and reports it, too */
static void a_claim_that_another_process_unprepared_is_refused_and_reported(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_comes(DAEMON_1);
        struct claims *other = world_process(BOOT);
        kubelet_unprepare(other, &op, "driver", "daemon-claim", DAEMON_1);
        world_wait(&op, UNPREPARED);
        world_stop(other);
        refused(DAEMON_1);
        pod_restored();
        reported(DAEMON_1);
}

/* ---- the list ---- */

static const char *uid_of(unsigned i) {
        static char uid[37];
        snprintf(uid, sizeof uid, "a0000000-0000-4000-8000-%012u", i);
        return uid;
}

static bool has(unsigned i) {
        bool ret;
        struct err e;
        assert_int_equal(unprepared_claims_has(w.plugin_dir, BOOT, uid_of(i), &ret, &e), 0);
        return ret;
}

static void the_oldest_are_dropped(void **state) {
        (void)state;
        struct checkpoint table = { .codec = &cd_device_codec };
        char newest[37];
        struct err e;
        for (unsigned i = 0; i <= UNPREPARED_CLAIMS_MAX; i++)
                assert_int_equal(unprepared_claims_add(w.plugin_dir, BOOT, uid_of(i), &e), 0);
        assert_false(has(0));
        assert_true(has(1));
        assert_true(has(UNPREPARED_CLAIMS_MAX));
        assert_int_equal(unprepared_claims_newest(w.plugin_dir, BOOT, &table, newest, &e), 0);
        assert_string_equal(newest, uid_of(UNPREPARED_CLAIMS_MAX));
        /* A claim that is still prepared does not count. */
        checkpoint_add(&table, uid_of(UNPREPARED_CLAIMS_MAX));
        assert_int_equal(unprepared_claims_newest(w.plugin_dir, BOOT, &table, newest, &e), 0);
        assert_string_equal(newest, uid_of(UNPREPARED_CLAIMS_MAX - 1));
        checkpoint_done(&table);
        assert_int_equal(unprepared_claims_add(w.plugin_dir, OTHER_BOOT, uid_of(7), &e), 0);
        assert_false(has(7));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(a_claim_is_reported_once_it_is_unprepared),
                T(a_claim_that_is_requested_again_is_the_newest),
                T(the_pod_of_a_refused_claim_is_reported),
                T(the_pod_of_a_refused_claim_is_reported),
                T(it_is_reported_after_a_change_to_host_managed),
                T(the_next_process_reports_it_again_on_its_own_Pod),
                T(a_report_that_a_restore_has_removed_is_written_again),
                T(a_report_is_written_when_the_API_server_answers_again),
                T(a_claim_that_a_lost_checkpoint_does_not_have_is_not_reported),
                T(a_claim_that_was_rebuilt_from_its_CDI_file_is_reported),
                T(a_claim_of_an_earlier_boot_is_not_reported),
                T(a_report_without_a_record_is_removed),
                T(an_invalid_list_of_claims_is_ignored),
                T(a_claim_that_is_still_prepared_is_not_reported),
                T(the_claim_of_a_running_force_deleted_daemon_is_neither_unprepared_nor_reported),
                T(the_claim_of_a_running_daemon_without_a_state_file_is_not_unprepared),
                T(a_daemon_of_the_Go_driver_has_no_assignment_and_is_not_reported),
                T(a_claim_that_was_reported_is_never_prepared_again_in_this_boot),
                T(a_claim_that_another_process_unprepared_is_refused_and_reported),
                T(the_oldest_are_dropped),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
