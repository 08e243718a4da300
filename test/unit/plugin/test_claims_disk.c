/* What a claim costs on the disk, and what happens when the disk fails. */
#include "fake_world.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

static void full_disk_while_journaling(void **state) {
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

/* These take the place of the C library's: durability is not to be traded for speed, so it is counted, and each step can fail. */
static unsigned syncs, renames, fail_sync, fail_rename; /* the n-th fails, 0: none */

static bool hit(unsigned *count, unsigned fail, int errnum) {
        errno = errnum;
        return ++*count == fail;
}

int fsync(int fd) {
        return hit(&syncs, fail_sync, EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to) {
        return hit(&renames, fail_rename, ENOSPC) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void fail_nth(unsigned sync, unsigned moved) {
        syncs = renames = 0;
        fail_sync = sync;
        fail_rename = moved;
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

static void a_ready_channel_costs_three_durable_writes_and_two_requests(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct buf names = BUF_INIT(4096);
        daemon_ready();
        world_turn();
        int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        assert_true(inotify_add_watch(in, w.plugin_dir, IN_MOVED_TO) >= 0);
        assert_true(inotify_add_watch(in, w.cdi_root, IN_MOVED_TO) >= 0);
        unsigned requests = w.requests;
        syncs = 0;
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
        moved(in, &names);
        assert_string_equal(buf_str(&names), "checkpoint.json\nk8s.compute-domain.nvidia.com-claim_" CLAIM_1 ".yaml\ncheckpoint.json\n");
        assert_int_equal(syncs, 6);                 /* each file and its folder */
        assert_int_equal(w.requests - requests, 2); /* the claim, and the domains of its namespace */
        buf_done(&names);
        close(in);
}

static void checkpoint_is_whole(void) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = world_read(path);
        struct checkpoint c = { 0 };
        struct err e;
        assert_int_equal(checkpoint_decode(str_from(text), &c, &e), 0);
        assert_int_equal(HASH_COUNT(c.claims), HASH_COUNT(w.claims->journal.table.claims)); /* and memory agrees with it */
        checkpoint_done(&c);
}

/* Whatever step of a Prepare or an Unprepare fails, the next try finds its way, and nothing is left at the end. */
static void a_failing_disk(bool prepares, unsigned sync, unsigned moved) {
        struct dra_op one = { 0 }, two = { 0 }, three = { 0 }, four = { 0 };
        fail_nth(prepares ? sync : 0, prepares ? moved : 0);
        prepare(&one, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(one.answer, prepares ? FAILED : PREPARED);
        checkpoint_is_whole();
        fail_nth(0, 0);
        prepare(&two, "c1", CLAIM_1);
        world_wait(&two, PREPARED);
        fail_nth(prepares ? 0 : sync, prepares ? 0 : moved);
        kubelet_unprepare(w.claims, &three, "user", "c1", CLAIM_1);
        world_turn();
        assert_int_equal(three.answer, prepares ? UNPREPARED : FAILED);
        checkpoint_is_whole();
        fail_nth(0, 0);
        kubelet_unprepare(w.claims, &four, "user", "c1", CLAIM_1);
        world_wait(&four, UNPREPARED);
        checkpoint_is_whole();
        assert_null(world_entry(w.claims, CLAIM_1));
        assert_null(world_cdi(CLAIM_1));
}

static void each_step_on_the_disk_fails_once(void **state) {
        (void)state;
        daemon_ready();
        for (unsigned n = 1; n <= 6; n++)
                a_failing_disk(true, n, 0);
        for (unsigned n = 1; n <= 3; n++)
                a_failing_disk(true, 0, n);
        for (unsigned n = 1; n <= 2; n++)
                a_failing_disk(false, n, 0);
        a_failing_disk(false, 0, 1);
}

static void claims_of_one_call_share_the_writes(void **state) {
        (void)state;
        struct dra_op a = { 0 }, b = { 0 };
        struct buf names = BUF_INIT(4096);
        w.facts.fabric = (struct fabric){ .kind = FABRIC_NONE };
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, DOMAIN_A, "");
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
        assert_string_equal(buf_str(&names), "checkpoint.json\n");
        buf_done(&names);
        close(in);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(full_disk_while_journaling),
                T(a_ready_channel_costs_three_durable_writes_and_two_requests),
                T(each_step_on_the_disk_fails_once),
                T(claims_of_one_call_share_the_writes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
