/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that hangs blocks only the batch that waits for it. */
#include "world/cd_node.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "faults.h"

/* Runs until the thread waits for the disk; the API server answers. */
static void until_held(void) {
        while (!faults_held()) {
                world_turn();
        }
}

static void hold(void) {
        w.disk_hangs = true;
        faults_hold("fsync");
}

static void release(void) {
        faults_release();
        w.disk_hangs = false;
}

static bool ticked;
static void on_tick(uv_timer_t *t) {
        ticked = true;
        uv_close((uv_handle_t *)t, NULL);
}

/* Other work of the loop: sockets, probes, watches. */
static void loop_goes_on(void) {
        uv_timer_t t;
        ticked = false;
        uv_timer_init(&w.loop, &t);
        uv_timer_start(&t, on_tick, 0, 0);
        while (!ticked)
                uv_run(&w.loop, UV_RUN_ONCE);
        world_turn();
}

/* failure: an fsync takes long -> probes and requests without a disk write are answered */
static void the_loop_continues_while_the_disk_hangs(void **state) {
        (void)state;
        struct dra_op op = { 0 }, wrong = { 0 }, gone = { 0 };
        daemon_ready();
        hold();
        prepare(&op, "c1", CLAIM_1);
        until_held();
        loop_goes_on();
        /* A request without a record is answered: a claim that can never be prepared. */
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, "no-uid", "");
        prepare(&wrong, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(wrong.answer, FAILED);
        assert_int_equal(op.answer, PENDING);
        assert_false(world_recorded(CLAIM_1));
        release();
        world_wait(&op, PREPARED);
        hold();
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        until_held();
        loop_goes_on();
        assert_int_equal(gone.answer, PENDING);
        release();
        world_wait(&gone, UNPREPARED);
}

/* Requests that arrive while the disk hangs are one batch, with one write before the side effects and one
 * after. */
/* failure: requests arrive while the disk hangs -> they share the next writes */
static void requests_during_a_slow_write_share_the_next_one(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 }, three = { 0 };
        w.facts.fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_NONE };
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, CD_DAEMON_DOMAIN, "");
        prepare(&one, "c1", CLAIM_1);
        hold();
        until_held();
        kubelet_prepare(w.claims, &two, "driver", "daemon-claim", DAEMON_1);
        kubelet_unprepare(w.claims, &three, "user", "c9", CLAIM_2);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        assert_int_equal(three.answer, PENDING);
        faults_at("rename", 0); /* before the thread may continue */
        release();
        world_wait(&one, PREPARED);
        world_wait(&two, PREPARED);
        assert_int_equal(three.answer, UNPREPARED);
        faults_off();
        /* Each claim twice in a checkpoint; without a partition the daemon has a CDI file and the channel has
         * none; the grant of the claim; and the two files that the daemon reads. */
        assert_int_equal(faults_calls(), 8);
}

/* failure: the kubelet hangs up while the disk hangs -> Prepare completes, and its repetition is answered
 * from the checkpoint */
static void a_prepare_completes_when_the_kubelet_hangs_up_while_the_disk_hangs(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        daemon_ready();
        hold();
        prepare(&op, "c1", CLAIM_1);
        until_held();
        op.answer = CANCELLED;
        claims_cancelled(w.claims, &op, op.data);
        loop_goes_on();
        release();
        world_turn();
        /* It is completed, and the next Prepare is answered from the record. */
        assert_true(world_recorded(CLAIM_1));
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_COMPLETED);
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

/* failure: a Prepare reaches its deadline while the disk hangs -> the error names the disk */
static void deadline_while_the_disk_hangs_names_the_disk(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 200 }, again = { 0 };
        daemon_ready();
        hold();
        prepare(&op, "c1", CLAIM_1);
        until_held();
        while (op.answer == PENDING)
                uv_run(&w.loop, UV_RUN_ONCE);
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, "n0: the disk under '"));
        release();
        world_turn();
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

/* failure: a Prepare reaches its deadline while the disk hangs for another one -> the error names the disk
 */
static void deadline_behind_a_write_that_hangs_names_the_disk(void **state) {
        (void)state;
        struct dra_op first = { 0 }, op = { .timeout_ms = 200 }, again = { 0 };
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, CD_DAEMON_DOMAIN, "");
        daemon_ready();
        hold();
        prepare(&first, "c1", CLAIM_1);
        until_held();
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        while (op.answer == PENDING)
                uv_run(&w.loop, UV_RUN_ONCE);
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, "n0: the disk under '"));
        assert_non_null(strstr(op.msg, "records of other claims"));
        release();
        world_wait(&first, PREPARED);
        kubelet_prepare(w.claims, &again, "driver", "daemon-claim", DAEMON_1);
        world_wait(&again, PREPARED);
}

/* failure: a pod is deleted while the disk hangs -> its claim is unprepared afterwards */
static void a_pod_deleted_while_the_disk_hangs_is_unprepared_afterwards(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 };
        daemon_ready();
        hold();
        prepare(&op, "c1", CLAIM_1);
        until_held();
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_turn();
        release();
        world_wait(&gone, UNPREPARED);
        assert_null(world_cdi(CLAIM_1));
        assert_int_not_equal(op.answer, PENDING);
}

/* The successor gets the lock when the thread has ended: it sees no half-written file. */
/* failure: the plugin stops while the disk hangs -> it keeps the node lock until the write has ended */
static void a_stopped_plugin_keeps_the_node_lock_until_the_write_has_ended(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        struct node_lock *other;
        struct err e;
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "pu.lock");
        daemon_ready();
        assert_int_equal(node_lock_new(&w.loop, path, &other, &e), 0);
        hold();
        prepare(&op, "c1", CLAIM_1);
        until_held();
        world_stop(w.claims);
        assert_false(node_lock_try(other));
        release();
        while (!node_lock_try(other))
                uv_run(&w.loop, UV_RUN_ONCE);
        node_lock_release(other);
        node_lock_free(other);
        assert_true(world_recorded(CLAIM_1));
        world_start(BOOT);
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(the_loop_continues_while_the_disk_hangs),
                T(requests_during_a_slow_write_share_the_next_one),
                T(a_prepare_completes_when_the_kubelet_hangs_up_while_the_disk_hangs),
                T(deadline_while_the_disk_hangs_names_the_disk),
                T(deadline_behind_a_write_that_hangs_names_the_disk),
                T(a_pod_deleted_while_the_disk_hangs_is_unprepared_afterwards),
                T(a_stopped_plugin_keeps_the_node_lock_until_the_write_has_ended),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
