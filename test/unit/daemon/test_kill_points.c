/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 before any step of a daemon that forms its domain, takes in a peer and leaves: nobody believes what
 * it left behind, and the next one in the same folder becomes ready, with one nvidia-imex.
 *
 * strace kills the daemon at its first, second, third, ... call of a system call, until a run gets through;
 * from the twentieth on it skips some, more and more. As in its container the daemon is the first process of
 * a PID namespace, so that its nvidia-imex, which is the stand-in, ends with it. The API server is played by
 * the test, in a network of its own.
 *
 *     test_daemon_kill_points NVIDIA-IMEX NVIDIA-IMEX-CTL
 *
 * Needs root and strace; else it is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "daemon_world.h"

#define HOSTS "127.0.0.1\tlocalhost\n"
#define SKIPPED 77

static const char *imex_standin, *ctl_standin;

/* It is mounted in /etc, so that it must stay the same file. */
static void reset_hosts(void) {
        _cleanup_(freep) char *path = in_dir("hosts");
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fputs(HOSTS, f);
        fclose(f);
}

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

static unsigned imex_processes(void) {
        _cleanup_(freep) char *program = in_dir("imex");
        DIR *d = opendir("/proc");
        unsigned n = 0;

        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d));) {
                _cleanup_(freep) char *link = xasprintf("/proc/%s/exe", e->d_name);
                char exe[128] = "";
                if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && readlink(link, exe, sizeof exe - 1) > 0)
                        n += streq(exe, program);
        }
        closedir(d);
        return n;
}

/* Runs a command as the first process of a PID namespace, and ends as it does. */
static int be_first(char **command) {
        int status;

        if (unshare(CLONE_NEWPID) < 0)
                return EXIT_FAILURE;
        pid_t pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                execvp(command[0], command);
                _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                return EXIT_FAILURE;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The daemon itself is the child of be_first(). */
static void end_daemon(void) {
        _cleanup_(freep) char *path =
                xasprintf("/proc/%d/task/%d/children", (int)daemon_pid, (int)daemon_pid);
        FILE *f = fopen(path, "r");
        int pid;

        if (!f)
                return;
        if (fscanf(f, "%d", &pid) == 1)
                kill(pid, SIGTERM);
        fclose(f);
}

/* SYSCALLS and N: kill it there; NULL: let it live. */
static void begin(const char *syscalls, unsigned n) {
        _cleanup_(freep) char *trace = xasprintf("trace=%s", syscalls ? syscalls : ""),
                              *inject =
                                      xasprintf("inject=%s:signal=KILL:when=%u", syscalls ? syscalls : "", n);
        const char *words[] = { "/proc/self/exe",
                                "--first",
                                syscalls ? "strace" : NULL,
                                "-D",
                                "-qq",
                                "-o",
                                "/dev/null",
                                "-e",
                                trace,
                                "-e",
                                inject,
                                NULL };

        n_patches = n_lists = n_watches = 0;
        watch = NULL;
        run_daemon_by(words, CLIQUE, true);
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
        end_daemon();
        assert_true(within(20000, exited));
}

static void what_is_left_is_not_believed(void) {
        struct err e;

        assert_int_equal(imex_processes(), 0);
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
        end_daemon();
        assert_true(within(20000, exited));
        assert_int_equal(exit_status, 0);
        assert_true(read_state() && !state_now.ready && !held);
        assert_int_equal(imex_processes(), 0);
}

/* Fails when there were fewer than so many calls, for then the test watches the wrong ones. */
static void killed_at(const char *syscalls, unsigned at_least) {
        uint64_t start = uv_hrtime();
        unsigned n, kills = 0;

        for (n = 1;; n += 1 + n / 20) {
                reset_folder();
                clique_daemons = ME;
                begin(syscalls, n);
                forms_takes_in_a_peer_and_leaves();
                if (exit_status == 0)
                        break;
                if (exit_status != 128 + SIGKILL)
                        fail_msg("at call %u of %s: it ended with %d", n, syscalls, exit_status);
                kills++;
                what_is_left_is_not_believed();
                the_next_one_is_well();
        }
        print_message("%s: killed at %u points up to call %u, %.1f s\n", syscalls, kills, n,
                      (double)(uv_hrtime() - start) / 1e9);
        assert_true(n > at_least);
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
        _cleanup_(freep) char *copies = NULL;

        if (make_dir(state) < 0 || uv_loop_init(TEST_LOOP) < 0)
                return -1;
        reset_hosts();
        copies = xasprintf("cp '%s' '%s/imex' && cp '%s' '%s/ctl' && mount --bind '%s/hosts' /etc/hosts",
                           imex_standin, dir, ctl_standin, dir, dir);
        if (system(copies) != 0)
                return -1;
        start_server(0);
        return 0;
}

static int tear_down(void **state) {
        if (daemon_pid) {
                kill(daemon_pid, SIGKILL);
                within(5000, exited);
        }
        fake_server_free(server);
        loop_end(TEST_LOOP);
        umount2("/etc/hosts", MNT_DETACH);
        return remove_dir(state);
}

/* A network, /etc/hosts and /run of our own. */
static bool go_apart(void) {
        return unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 &&
               mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
               mount("none", "/run", "tmpfs", 0, NULL) == 0 &&
               system("ip link set lo up && ip addr add 10.0.0.1/32 dev lo && strace -V > /dev/null") == 0;
}

int main(int argc, char **argv) {
        if (daemon_asked(argc, argv))
                return be_the_daemon(argv);
        if (argc > 2 && streq(argv[1], "--first"))
                return be_first(argv + 2);
        if (argc != 3)
                return EXIT_FAILURE;
        if (geteuid() != 0 || !go_apart())
                return SKIPPED;
        imex_standin = argv[1];
        ctl_standin = argv[2];
        /* A traced program cannot look for leaks. */
        const char *options = getenv("ASAN_OPTIONS");
        _cleanup_(freep) char *without = xasprintf("%s:detect_leaks=0", options ? options : "");
        setenv("ASAN_OPTIONS", without, 1);
#define T(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(daemon_killed_at_each_rename),     T(daemon_killed_at_each_removal_and_new_folder),
                T(daemon_killed_at_each_lock),       T(daemon_killed_at_each_new_process),
                T(daemon_killed_at_each_connection), T(daemon_killed_at_each_request),
                T(daemon_killed_at_each_write),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
