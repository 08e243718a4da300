/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 before any step of a daemon that joins a domain, accepts a peer, moves the node to another domain,
 * and leaves. The plugin ignores the files of the killed daemon. The next daemon in the same folder reaches
 * the domain that needs the node, with one nvidia-imex, and has reported the epoch that it left.
 *
 * killed.h describes how it is killed. The test plays the API server, in its own network.
 *
 *     test_daemon_kill_points NVIDIA-IMEX NVIDIA-IMEX-CTL
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon_world.h"

#include "killed.h"

static void reset_folder(void) {
        _cleanup_(freep) char *clear =
                xasprintf("rm -rf '%s/imexd' '%s/run' && mkdir '%s/imexd' '%s/run'", dir, dir, dir, dir);

        assert_int_equal(system(clear), 0);
        put("imexd/fabric", FABRIC "\n", 0644);
        put("imexd/edits", "e1\n", 0644);
        reset_hosts();
}

static void begin(const char *syscalls, unsigned n) {
        struct killer k;

        n_patches = 0;
        watch = NULL;
        killer_init(&k, syscalls, n);
        run_daemon_by(k.words);
        killer_done(&k);
}

static bool ready_in_a_or_gone(void) {
        return exited() || (ready_in_a() && watching() && reported("/ready\":\"true\""));
}
static bool peer_is_known(void) {
        return exited() || count("hosts", "10.0.0.2\tcompute-domain-daemon-aa-0000\n") == 1;
}
static bool handed_over_or_gone(void) {
        return exited() ||
               (ready_in_b() && reported("\\\"left\\\":\\\"1\\\"") && reported("/ready\":\"true\""));
}
static bool handed_over(void) {
        return !exited() && handed_over_or_gone();
}

static void joins_takes_in_a_peer_hands_over_and_leaves(void) {
        assert_true(within(20000, ready_in_a_or_gone));
        if (exited())
                return;
        set_object(IN_A_WITH_A_PEER);
        assert_true(within(20000, peer_is_known));
        if (exited())
                return;
        set_object(LEAVING_A "," AWAITED_IN_B);
        assert_true(within(20000, handed_over_or_gone));
        end_first(program_pid);
        assert_true(within(20000, exited));
}

/* The temporary files of a killed process. */
static unsigned temporary_files(const char *folder) {
        _cleanup_(freep) char *path = in_dir(folder);
        DIR *d = opendir(path);
        unsigned n = 0;

        assert_non_null(d);
        for (const struct dirent *e; (e = readdir(d));)
                n += strstr(e->d_name, ".tmp.") != NULL;
        closedir(d);
        return n;
}

static void nobody_believes(const char *domain) {
        _cleanup_(freep) char *folder = xasprintf("%s/imexd/%s", dir, domain);
        struct err e;

        if (imex_state_read(folder, &seen, &held, &e) == 0)
                assert_non_null(imex_state_refusal(&seen, held, seen.boot_id, CLAIM));
        else
                assert_int_equal(e.kind, ERR_NOT_FOUND);
}

/* Whatever the killed daemon did last, the fabric object now wants the node in B. */
static void the_next_daemon_joins_b(void) {
        domains = LEAVING_A "," AWAITED_IN_B;
        begin(NULL, 0);
        assert_true(within(20000, handed_over));
        assert_string_equal(seen.assignment, FABRIC "/" B "/0/3");
        assert_null(imex_state_refusal(&seen, held, seen.boot_id, CLAIM));
        assert_int_equal(imex_processes(), 1);
        assert_false(there("imexd/" A));
        assert_int_equal(temporary_files("imexd"), 0);
        assert_int_equal(count("hosts", HOSTS), 1);
        assert_int_equal(count("hosts", "10.0.0.1\tcompute-domain-daemon-bb-0000\n"), 1);
        assert_int_equal(count("hosts", "-aa-"), 0);
        end_first(program_pid);
        assert_true(within(20000, exited));
        assert_int_equal(exit_status, 0);
        assert_false(ready_in_b());
        assert_int_equal(imex_processes(), 0);
}

static void reset(void) {
        reset_folder();
        domains = IN_A;
}

static void what_comes_after(void) {
        nobody_believes(A);
        nobody_believes(B);
        the_next_daemon_joins_b();
}

static void killed_at(const char *syscalls, unsigned at_least) {
        kill_at_each(&(struct kill_test){ reset, begin, joins_takes_in_a_peer_hands_over_and_leaves,
                                          what_comes_after },
                     syscalls, at_least);
}

/* failure: the daemon is killed before any rename -> the next one joins, changes or leaves correctly */
static void daemon_killed_at_each_rename(void **state) {
        killed_at("?rename,?renameat,renameat2", 8);
}
/* failure: the daemon is killed before any removal or new folder -> the next one continues correctly */
static void daemon_killed_at_each_removal_and_new_folder(void **state) {
        killed_at("?unlink,unlinkat,?mkdir,mkdirat,?rmdir", 8);
}
/* failure: the daemon is killed before any lock -> the next one continues correctly */
static void daemon_killed_at_each_lock(void **state) {
        killed_at("fcntl,flock", 5);
}
/* failure: the daemon is killed before any new process -> the next one continues correctly */
static void daemon_killed_at_each_new_process(void **state) {
        killed_at("clone,?clone3,?fork,?vfork", 3);
}
/* failure: the daemon is killed before any signal -> the next one continues correctly */
static void daemon_killed_at_each_signal(void **state) {
        killed_at("kill,?pidfd_send_signal", 2);
}
static void daemon_killed_at_each_connection(void **state) {
        killed_at("connect", 1);
}
/* failure: the daemon is killed before any request -> the next one continues correctly */
static void daemon_killed_at_each_request(void **state) {
        killed_at("sendto,sendmsg", 4);
}
/* failure: the daemon is killed before any write -> the next one continues correctly */
static void daemon_killed_at_each_write(void **state) {
        killed_at("write,writev,pwrite64,ftruncate", 30);
}

static int set_up(void **state) {
        if (make_dir(state) < 0 || uv_loop_init(TEST_LOOP) < 0 || set_up_standins() < 0)
                return -1;
        table_of = "ffffffff-0000-4000-8000-00000000000f";
        start_server(0);
        return 0;
}

int main(int argc, char **argv) {
        if (daemon_asked(argc, argv))
                return be_the_daemon(argv);
        if (argc > 2 && streq(argv[1], "--first"))
                return be_first(argv + 2);
        int r = begin_kill_points(argc, argv);
        if (r)
                return r;
#define T(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down_kill_points)
        const struct CMUnitTest tests[] = {
                T(daemon_killed_at_each_rename), T(daemon_killed_at_each_removal_and_new_folder),
                T(daemon_killed_at_each_lock),   T(daemon_killed_at_each_new_process),
                T(daemon_killed_at_each_signal), T(daemon_killed_at_each_request),
                T(daemon_killed_at_each_write),  T(daemon_killed_at_each_connection),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
