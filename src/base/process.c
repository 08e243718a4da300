/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/stderr.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/str.h"

/* The number of 4 KiB reads per turn: more than a full pipe, so that all output is seen at the exit, and a
 * limit for a program that never stops printing. */
#define READS_PER_TURN 32

/* What failed between fork and exec, as read from the report pipe. */
enum step { STEP_NONE, STEP_STDIO, STEP_PASS, STEP_CHROOT, STEP_EXEC };

/* Descriptors from this number on are not looked for one by one. */
enum { ONE_BY_ONE_MAX = 65536 };

/* After the standard descriptors. */
#define PASSED_FD 3
#define COMMAND_MAX 4096
struct report {
        enum step step;
        int error;
};

/* Shared with the forked child, which may call only async-signal-safe functions. */
struct launch {
        char *const *argv;
        char *const *env;
        const char *chroot;
        int null_fd, out_fd, report_fd, pass_fd;
        pid_t parent;
};

struct process {
        struct loop_signal sigchld;
        struct loop_fd output;
        struct loop_timer grace;
        pid_t pid;     /* 0: reaped */
        int out_fd;    /* -1: closed */
        int report_fd; /* contains a struct report if the program could not be executed */
        char *name;    /* argv[0] */
        struct process_options o;
        bool freed;    /* no callbacks any longer; its memory is released when it has ended */
        char *command; /* the program and its arguments, by which a stuck process is recognised */
        time_t killed; /* 0: not yet */
        bool stuck;
        LIST_ENTRY(process) link;
};

/* A process has one loop thread, so this needs no lock. */
static LIST_HEAD(, process) processes = LIST_HEAD_INITIALIZER(processes);

static char *command_of(const char *const *argv) {
        struct buf b = BUF_INIT(COMMAND_MAX);
        for (const char *const *arg = argv; *arg; arg++)
                buf_addf(&b, "%s%s", arg == argv ? "" : " ", *arg);
        char *command = xstrdup(buf_str(&b));
        buf_done(&b);
        return command;
}

static const struct process *find_stuck(const char *command) {
        const struct process *p;
        LIST_FOREACH (p, &processes, link)
                if (p->stuck && streq(p->command, command))
                        return p;
        return NULL;
}

bool process_has_pid(pid_t pid) {
        const struct process *p;
        LIST_FOREACH (p, &processes, link)
                if (p->pid == pid)
                        return true;
        return false;
}

size_t process_stuck(void) {
        const struct process *p;
        size_t n = 0;
        LIST_FOREACH (p, &processes, link)
                n += p->stuck;
        return n;
}

static int stuck_error(const struct process *p, struct err *e) {
        char when[32];
        str_time(p->killed, when);
        return err_set(
                e, ERR_RETRY, PROCESS_STUCK,
                "'%s' is not started again: process %d, which was killed at %s, has not ended, because "
                "it is stuck in the kernel; see the kernel log of the node, which usually needs "
                "a reboot",
                p->command, (int)p->pid, when);
}

static void stop_output(struct process *p) {
        if (p->out_fd < 0)
                return;
        loop_fd_done(&p->output);
        close(TAKE_FD(p->out_fd));
}

static void process_destroy(struct process *p) {
        stop_output(p);
        loop_timer_done(&p->grace);
        loop_signal_done(&p->sigchld);
        closep(&p->report_fd);
        LIST_REMOVE(p, link);
        free(p->name);
        free(p->command);
        free(p);
}

void process_drain(struct process *p) {
        char tmp[4096];

        for (unsigned i = 0; i < READS_PER_TURN && p->out_fd >= 0; i++) {
                ssize_t n = read(p->out_fd, tmp, sizeof tmp);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0)
                        stop_output(p);
                else
                        p->o.output(p->o.u, tmp, (size_t)n);
        }
}

static void process_on_output(void *u, int events) {
        process_drain(u);
}

static int launch_error(const struct process *p, struct report r, struct err *e) {
        static const char *const step[] = {
                [STEP_NONE] = "",
                [STEP_STDIO] = ": its standard files",
                [STEP_PASS] = ": the descriptor for it",
                [STEP_CHROOT] = ": change its root folder",
                [STEP_EXEC] = "",
        };
        return err_errno(e, r.error, "start '%s'%s", p->name, step[r.step]);
}

/* For a process that has been reaped: -1 and the failed step, if it never became the program. */
static int process_read_report(const struct process *p, struct err *e) {
        struct report report;
        ssize_t n;

        do
                n = read(p->report_fd, &report, sizeof report);
        while (n < 0 && errno == EINTR);
        return n == (ssize_t)sizeof report ? launch_error(p, report, e) : 0;
}

static void process_on_sigchld(void *u, int signum) {
        struct process *p = u;
        siginfo_t info = { 0 };
        int status;

        /* WNOWAIT keeps the zombie, and so the number of its process group, until the group is killed.
         * Processes that the program left would otherwise keep ports, and a driver's session. */
        if (!p->pid || waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
            info.si_pid != p->pid)
                return;
        kill(-p->pid, SIGKILL);
        while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
                continue;
        if (p->stuck)
                log_info("a process that was stuck in the kernel has ended", kv_str("command", p->command),
                         kv_int("pid", p->pid));
        p->pid = 0;
        process_drain(p);
        if (!p->freed) {
                struct err failed;
                bool executed = process_read_report(p, &failed) == 0;
                p->o.ended(p->o.u, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                           WIFSIGNALED(status) ? WTERMSIG(status) : 0, executed ? NULL : &failed);
        }
        process_destroy(p);
}

static void on_not_reaped(void *u) {
        struct process *p = u;

        loop_signal_unref(&p->sigchld);
        p->stuck = true;
        log_error("a process that was killed has not ended: it is stuck in the kernel",
                  kv_str("command", p->command), kv_int("pid", p->pid));
}

void process_kill(struct process *p) {
        if (!p->pid)
                return;
        kill(-p->pid, SIGKILL);
        if (p->killed)
                return;
        p->killed = time(NULL);
        loop_timer_start(&p->grace, PROCESS_REAP_GRACE_MS);
}

void process_signal(const struct process *p, int signum) {
        if (p->pid)
                kill(p->pid, signum);
}

pid_t process_pid(const struct process *p) {
        return p->pid;
}

void process_free(struct process *p) {
        if (!p)
                return;
        p->freed = true;
        stop_output(p);
        process_kill(p);
}

_Noreturn static void report_and_exit(const struct launch *l, enum step step) {
        struct report report = { step, errno };
        ssize_t n;

        do
                n = write(l->report_fd, &report, sizeof report);
        while (n < 0 && errno == EINTR);
        _exit(127);
}

/* Gives the descriptor its number. The report pipe may have that number already. */
static int pass(struct launch *l) {
        if (l->report_fd == PASSED_FD) {
                int to = fcntl(l->report_fd, F_DUPFD_CLOEXEC, PASSED_FD + 1);
                if (to < 0)
                        return -1;
                l->report_fd = to;
        }
        return l->pass_fd == PASSED_FD ? fcntl(l->pass_fd, F_SETFD, 0) : dup2(l->pass_fd, PASSED_FD);
}

/* Linux before 5.11 has no close_range with this flag, and a seccomp filter may refuse it. */
static void close_at_exec(unsigned first) {
        struct rlimit limit = { .rlim_cur = ONE_BY_ONE_MAX };

        if (close_range(first, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
                return;
        (void)getrlimit(RLIMIT_NOFILE, &limit);
        for (unsigned fd = first; fd < limit.rlim_cur && fd < ONE_BY_ONE_MAX; fd++)
                (void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
}

_Noreturn static void launch_child(struct launch *l) {
        sigset_t none;

        /* The loop's signal handlers would write to the parent's pipes. */
        for (int s = 1; s < NSIG; s++)
                signal(s, SIG_DFL);
        sigemptyset(&none);
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != l->parent)
                _exit(127);
        if (dup2(l->null_fd, STDIN_FILENO) < 0 || dup2(l->out_fd, STDOUT_FILENO) < 0 ||
            dup2(l->out_fd, STDERR_FILENO) < 0)
                report_and_exit(l, STEP_STDIO);
        if (l->pass_fd && pass(l) < 0)
                report_and_exit(l, STEP_PASS);
        close_at_exec(l->pass_fd ? PASSED_FD + 1 : PASSED_FD);
        if (l->chroot && (chroot(l->chroot) < 0 || chdir("/") < 0))
                report_and_exit(l, STEP_CHROOT);
        sigprocmask(SIG_SETMASK, &none, NULL);
        /* execvp() finds PATH in environ. */
        if (l->env)
                environ = (char **)(uintptr_t)l->env;
        execvp(l->argv[0], l->argv);
        report_and_exit(l, STEP_EXEC);
}

/* exec closes the report pipe, so the program does not have it. */
static int launch(struct process *p, int out_fd, struct err *e) {
        _cleanup_(closep) int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        _cleanup_(closep) int report_w = -1;
        struct launch l = { .argv = (char *const *)(uintptr_t)p->o.argv,
                            .env = (char *const *)(uintptr_t)p->o.env,
                            .chroot = p->o.chroot,
                            .null_fd = null_fd,
                            .out_fd = out_fd,
                            .pass_fd = p->o.pass_fd,
                            .parent = getpid() };
        sigset_t all, before;
        int fds[2], error;

        if (null_fd < 0 || pipe2(fds, O_CLOEXEC) < 0)
                return launch_error(p, (struct report){ .error = errno }, e);
        p->report_fd = fds[0];
        report_w = l.report_fd = fds[1];
        fcntl(p->report_fd, F_SETFL, O_NONBLOCK);

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        p->pid = fork();
        if (p->pid == 0)
                launch_child(&l);
        error = errno;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (p->pid < 0) {
                p->pid = 0;
                return launch_error(p, (struct report){ .error = error }, e);
        }
        /* The child does the same. Whichever is first, the group exists when it has to be killed. */
        setpgid(p->pid, p->pid);
        return 0;
}

static int open_output(struct process *p, uv_loop_t *loop, int *ret_w) {
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        r = loop_fd_init(&p->output, loop, fds[0], process_on_output, p);
        if (r < 0) {
                close(fds[0]);
                close(fds[1]);
                return r;
        }
        p->out_fd = fds[0];
        *ret_w = fds[1];
        return 0;
}

int process_start(uv_loop_t *loop, const struct process_options *o, struct process **ret, struct err *e) {
        BUG_ON(!o->argv || !o->argv[0]);
        _cleanup_(freep) char *command = command_of(o->argv);
        const struct process *before = find_stuck(command);
        if (before)
                return stuck_error(before, e);

        struct process *p = xnew(struct process);
        _cleanup_(closep) int out_w = -1;
        int r;

        LIST_INSERT_HEAD(&processes, p, link);
        p->command = TAKE(command);
        p->o = *o;
        p->out_fd = p->report_fd = -1;
        p->name = xstrdup(o->argv[0]);
        loop_timer_init(&p->grace, loop, on_not_reaped, p);
        /* Before the fork: otherwise the exit of a short program could be missed. */
        r = loop_signal_init(&p->sigchld, loop, SIGCHLD, process_on_sigchld, p);
        if (r == 0)
                r = open_output(p, loop, &out_w);
        if (r < 0)
                r = launch_error(p, (struct report){ .error = -r }, e);
        else
                r = launch(p, out_w, e);
        p->o.argv = p->o.env = NULL; /* the caller's */
        p->o.chroot = NULL;
        p->o.pass_fd = 0;
        if (r < 0) {
                process_destroy(p);
                return -1;
        }
        loop_fd_start(&p->output, UV_READABLE);
        *ret = p;
        return 0;
}
