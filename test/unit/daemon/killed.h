/* SPDX-License-Identifier: Apache-2.0 */
/* killed: common parts of the tests of kill points: kill -9 before any step of a program that runs
 * nvidia-imex, which is a stand-in.
 *
 * strace kills the program at its first, second, third, ... call of a system call, until a run succeeds. From
 * the eighth call on the tests skip more and more of them, unless EVERY_POINT is set. As in its container,
 * the program is the first process of a PID namespace, so its nvidia-imex ends with it. Needs root and
 * strace. Include it after the world of the program. */
#pragma once

#include <dirent.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#define HOSTS "127.0.0.1\tlocalhost\n"
#define SKIPPED 77

static const char *imex_standin, *ctl_standin;

/* The file is mounted in /etc, so it must stay the same file. */
static inline void reset_hosts(void) {
        _cleanup_(freep) char *path = in_dir("hosts");
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fputs(HOSTS, f);
        fclose(f);
}

static inline unsigned imex_processes(void) {
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

/* Runs a command as the first process of a PID namespace, and ends with the same status. */
static inline int be_first(char **command) {
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

/* The program under test is the child of be_first(). */
static inline void end_first(pid_t first) {
        _cleanup_(freep) char *path = xasprintf("/proc/%d/task/%d/children", (int)first, (int)first);
        FILE *f = fopen(path, "r");
        int pid;

        if (!f)
                return;
        if (fscanf(f, "%d", &pid) == 1)
                kill(pid, SIGTERM);
        fclose(f);
}

/* The command that starts a program as the first process of its namespace, and kills it at call N of
 * SYSCALLS. NULL: it is not killed. */
struct killer {
        char *trace, *inject;
        const char *words[12];
};

static inline void killer_init(struct killer *k, const char *syscalls, unsigned n) {
        *k = (struct killer){ .trace = xasprintf("trace=%s", str_or(syscalls, "")),
                              .inject = xasprintf("inject=%s:signal=KILL:when=%u", str_or(syscalls, ""), n) };
        const char *words[] = { "/proc/self/exe",
                                "--first",
                                syscalls ? "strace" : NULL,
                                "-D",
                                "-qq",
                                "-o",
                                "/dev/null",
                                "-e",
                                k->trace,
                                "-e",
                                k->inject,
                                NULL };
        memcpy(k->words, words, sizeof words);
}

static inline void killer_done(struct killer *k) {
        free(k->trace);
        free(k->inject);
}

/* Gives the test its own network, /etc/hosts and /run. */
static inline bool go_apart(void) {
        return unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 &&
               mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
               mount("none", "/run", "tmpfs", 0, NULL) == 0 &&
               system("ip link set lo up && ip addr add 10.0.0.1/32 dev lo && strace -V > /dev/null") == 0;
}

/* Copies the stand-ins into the test's folder, and mounts its hosts file in /etc. */
static inline int set_up_standins(void) {
        _cleanup_(freep) char *copies =
                xasprintf("cp '%s' '%s/imex' && cp '%s' '%s/ctl' && mount --bind '%s/hosts' /etc/hosts",
                          imex_standin, dir, ctl_standin, dir, dir);

        reset_hosts();
        return system(copies) == 0 ? 0 : -1;
}

/* One run of the program, the checks after its death, and the run of its successor. */
struct kill_test {
        void (*reset)(void);
        void (*begin)(const char *syscalls, unsigned n); /* the program is killed at call `n` of these */
        void (*live)(void);                              /* runs until the program has left, or is killed */
        void (*after)(void);
};

/* Fails if there were fewer calls than `at_least`: then the test traces the wrong ones. */
static inline void kill_at_each(const struct kill_test *t, const char *syscalls, unsigned at_least) {
        uint64_t start = uv_hrtime();
        unsigned n, kills = 0;

        for (n = 1;; n += getenv("EVERY_POINT") ? 1 : 1 + n / 8) {
                t->reset();
                t->begin(syscalls, n);
                t->live();
                if (exit_status == 0)
                        break;
                if (exit_status != 128 + SIGKILL)
                        fail_msg("at call %u of %s: it ended with %d", n, syscalls, exit_status);
                kills++;
                assert_int_equal(imex_processes(), 0);
                t->after();
        }
        print_message("%s: killed at %u points up to call %u, %.1f s\n", syscalls, kills, n,
                      (double)(uv_hrtime() - start) / 1e9);
        assert_true(n > at_least);
}

static inline int tear_down_kill_points(void **state) {
        end_world();
        umount2("/etc/hosts", MNT_DETACH);
        return remove_dir(state);
}

/* For main(). 0: run the tests; otherwise the exit status. */
static inline int begin_kill_points(int argc, char **argv) {
        if (argc != 3)
                return EXIT_FAILURE;
        if (geteuid() != 0 || !go_apart())
                return SKIPPED;
        imex_standin = argv[1];
        ctl_standin = argv[2];
        /* LeakSanitizer does not work in a traced program. */
        const char *options = getenv("ASAN_OPTIONS");
        _cleanup_(freep) char *without = xasprintf("%s:detect_leaks=0", options ? options : "");
        setenv("ASAN_OPTIONS", without, 1);
        return 0;
}
