/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 before any step of a daemon that forms its domain, takes in a peer and leaves: nobody believes what
 * it left behind, and the next one in the same folder becomes ready, with one nvidia-imex.
 *
 * How it is killed: killed.h. The API server is played by the test, in a network of its own.
 *
 *     test_daemon_kill_points NVIDIA-IMEX NVIDIA-IMEX-CTL
 *
 * Needs root and strace; else it is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon_world.h"

#include "killed.h"

static bool stays(const char *name) {
        static const char *const names[] = { ".", "..", "imex", "ctl", "hosts", "kubeconfig" };

        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (streq(name, names[i]))
                        return true;
        return false;
}

static void reset_folder(void) {
        DIR *d = opendir(dir);

        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d));) {
                _cleanup_(freep) char *path = in_dir(e->d_name);
                if (!stays(e->d_name))
                        assert_int_equal(remove(path), 0);
        }
        closedir(d);
        reset_hosts();
}

/* What it was about to put in place when it was killed; it goes with the folder. */
static unsigned temporary_files(void) {
        DIR *d = opendir(dir);
        unsigned n = 0;

        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d));)
                n += *e->d_name == '.' && !stays(e->d_name);
        closedir(d);
        return n;
}

/* SYSCALLS and N: kill it there; NULL: let it live. */
static void begin(const char *syscalls, unsigned n) {
        struct killer k;

        n_patches = n_lists = n_watches = 0;
        watch = NULL;
        killer_init(&k, syscalls, n);
        run_daemon_by(k.words, CLIQUE, true);
        killer_done(&k);
}

static bool formed(void) {
        return exited() || (patched_ready() && state_ready() && watching());
}
static bool peer_is_known(void) {
        return exited() || count("hosts", "10.0.0.2\tcompute-domain-daemon-ab-0000\n") == 1;
}
static bool formed_alone(void) {
        return !exited() && formed();
}

static void forms_takes_in_a_peer_and_leaves(void) {
        assert_true(within(20000, formed));
        if (exited())
                return;
        tell(ME "," PEER);
        assert_true(within(20000, peer_is_known));
        end_first(program_pid);
        assert_true(within(20000, exited));
}

static void what_is_left_is_not_believed(void) {
        struct err e;

        if (!read_state()) {
                assert_int_equal(imex_state_read(dir, &state_now, &held, &e), -1);
                assert_int_equal(e.kind, ERR_NOT_FOUND);
                return;
        }
        assert_false(held);
        assert_non_null(imex_state_refusal(&state_now, held, state_now.boot_id, CLAIM));
}

static void the_next_one_is_well(void) {
        begin(NULL, 0);
        assert_true(within(20000, formed_alone));
        assert_int_equal(state_now.index, 2);
        assert_null(imex_state_refusal(&state_now, held, state_now.boot_id, CLAIM));
        assert_int_equal(imex_processes(), 1);
        assert_int_equal(count("hosts", HOSTS), 1);
        assert_int_equal(count("hosts", "10.0.0.1\tcompute-domain-daemon-ab-0002\n"), 1);
        assert_in_range(temporary_files(), 0, 1);
        end_first(program_pid);
        assert_true(within(20000, exited));
        assert_int_equal(exit_status, 0);
        assert_true(read_state() && !state_now.ready && !held);
        assert_int_equal(imex_processes(), 0);
}

static void reset(void) {
        reset_folder();
        clique_daemons = ME;
}

static void what_comes_after(void) {
        what_is_left_is_not_believed();
        the_next_one_is_well();
}

static void killed_at(const char *syscalls, unsigned at_least) {
        kill_at_each(&(struct kill_test){ reset, begin, forms_takes_in_a_peer_and_leaves, what_comes_after },
                     syscalls, at_least);
}

static void daemon_killed_at_each_rename(void **state) {
        killed_at("?rename,?renameat,renameat2", 5);
}
static void daemon_killed_at_each_removal_and_new_folder(void **state) {
        killed_at("?unlink,unlinkat,?mkdir,mkdirat", 5);
}
static void daemon_killed_at_each_lock(void **state) {
        killed_at("fcntl,flock", 5);
}
static void daemon_killed_at_each_new_process(void **state) {
        killed_at("clone,?clone3,?fork,?vfork", 2);
}
static void daemon_killed_at_each_connection(void **state) {
        killed_at("connect", 1);
}
static void daemon_killed_at_each_request(void **state) {
        killed_at("sendto,sendmsg", 3);
}
static void daemon_killed_at_each_write(void **state) {
        killed_at("write,writev,pwrite64,ftruncate", 20);
}

static int set_up(void **state) {
        if (make_dir(state) < 0 || uv_loop_init(TEST_LOOP) < 0 || set_up_standins() < 0)
                return -1;
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
                T(daemon_killed_at_each_rename),     T(daemon_killed_at_each_removal_and_new_folder),
                T(daemon_killed_at_each_lock),       T(daemon_killed_at_each_new_process),
                T(daemon_killed_at_each_connection), T(daemon_killed_at_each_request),
                T(daemon_killed_at_each_write),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
