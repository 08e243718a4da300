/* SPDX-License-Identifier: Apache-2.0 */
/* The disk writes of a claim, and a full disk. */
#include "world/cd_node.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "faults.h"

/* failure: the disk is full while a claim is recorded -> Prepare fails, and a retry succeeds when there is
 * room */
static void a_full_disk_fails_prepare_and_a_retry_succeeds(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        struct rlimit unlimited, small = { 0 };
        daemon_ready();
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
        small = (struct rlimit){ 16, unlimited.rlim_max };
        prepare(&op, "c1", CLAIM_1);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        world_turn();
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, "record the claims of this node"));
        assert_null(world_entry(w.claims, CLAIM_1));
        assert_null(world_cdi(CLAIM_1));
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

/* "name\n" for each file that was moved into place in the two folders since the last call. */
static void moved(int in, struct buf *out) {
        _Alignas(struct inotify_event) char events[16384];
        ssize_t n;
        while ((n = read(in, events, sizeof events)) > 0) {
                for (char *p = events; p < events + n;) {
                        struct inotify_event ev;
                        memcpy(&ev, p, sizeof ev);
                        buf_addf(out, "%s\n", p + sizeof ev);
                        p += sizeof ev + ev.len;
                }
        }
}

/* failure: a channel is prepared -> it costs three durable writes and three API requests */
static void a_ready_channel_costs_three_durable_writes_and_three_requests(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct buf names = BUF_INIT(4096);
        daemon_ready();
        world_turn();
        int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        assert_true(inotify_add_watch(in, w.plugin_dir, IN_MOVED_TO) >= 0);
        assert_true(inotify_add_watch(in, w.cdi_root, IN_MOVED_TO) >= 0);
        unsigned requests = api.requests;
        faults_at("fsync", 0);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
        moved(in, &names);
        assert_string_equal(buf_str(&names), "checkpoint.json\nk8s.compute-domain.nvidia.com-claim_" CLAIM_1
                                             ".yaml\ncheckpoint.json\n");
        faults_off();
        assert_int_equal(faults_calls(), 6);          /* each file and its folder are synced */
        assert_int_equal(api.requests - requests, 3); /* the claim, its domain, and the fabric object */
        assert_int_equal(api.lists, 0);
        buf_done(&names);
        close(in);
}

static void claims_of_one_call_share_the_writes(void **state) {
        (void)state;
        struct dra_op a = { 0 }, b = { 0 };
        struct buf names = BUF_INIT(4096);
        w.facts.fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_NONE };
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, CD_DAEMON_DOMAIN, "");
        prepare(&a, "c1", CLAIM_1);
        kubelet_prepare(w.claims, &b, "driver", "daemon-claim", DAEMON_1);
        world_turn();
        assert_int_equal(a.answer, PREPARED);
        assert_int_equal(b.answer, PREPARED);
        struct dra_op c = { 0 }, d = { 0 };
        int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        assert_true(inotify_add_watch(in, w.plugin_dir, IN_MOVED_TO) >= 0);
        kubelet_unprepare(w.claims, &c, "user", "c1", CLAIM_1);
        kubelet_unprepare(w.claims, &d, "driver", "daemon-claim", DAEMON_1);
        world_turn();
        assert_int_equal(c.answer, UNPREPARED);
        assert_int_equal(d.answer, UNPREPARED);
        moved(in, &names);
        assert_string_equal(buf_str(&names), "unprepared-daemon-claims\ncheckpoint.json\n");
        buf_done(&names);
        close(in);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(a_full_disk_fails_prepare_and_a_retry_succeeds),
                T(a_ready_channel_costs_three_durable_writes_and_three_requests),
                T(claims_of_one_call_share_the_writes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
