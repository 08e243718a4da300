#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

/* How long a killed child may take to disappear before its caller is answered without it. A process that
 * hangs in the kernel (a driver's ioctl) survives SIGKILL until the kernel lets go of it, and nobody shall
 * wait for that. */
#define REAP_GRACE_MS 500
#define DEFAULT_MAX_OUTPUT ((size_t)256 * 1024)
/* Reads of 4 KiB in one turn: more than a full pipe, so that all is seen at exit, and an end to a child that
 * never stops printing. */
#define READS_PER_TURN 32

/* The exec environment: shared with the forked child, which may call async-signal-safe functions only. */
struct launch {
        char *const *argv;
        char *const *env;
        const char *chroot;
        int null_fd, out_fd, report_fd;
        pid_t parent;
};

struct child {
        uv_signal_t sigchld;
        uv_poll_t output;
        uv_timer_t timer;
        unsigned open; /* handles that libuv has not closed yet */
        pid_t pid;     /* 0: not running */
        int out_fd;    /* -1: closed */
        struct buf out;
        size_t max_output;
        bool timed_out, failed;
        struct err err;
        child_done_fn *done; /* NULL: cancelled or already called */
        void *u;
};

static void on_closed(uv_handle_t *h) {
        struct child *c = h->data;

        if (--c->open > 0)
                return;
        buf_done(&c->out);
        free(c);
}

static void stop_output(struct child *c) {
        if (c->out_fd < 0)
                return;
        /* The descriptor may be closed only when the loop polls it no more. */
        uv_poll_stop(&c->output);
        uv_close((uv_handle_t *)&c->output, on_closed);
        close(c->out_fd);
        c->out_fd = -1;
}

static void close_handles(struct child *c) {
        stop_output(c);
        uv_close((uv_handle_t *)&c->timer, on_closed);
        uv_close((uv_handle_t *)&c->sigchld, on_closed);
}

static void answer(struct child *c, const struct child_result *r) {
        child_done_fn *done = c->done;

        c->done = NULL;
        if (done)
                done(c->u, r);
}

/* Takes what is in the pipe now; what exceeds the limit is read and dropped, so that the child does not
 * block. */
static void drain(struct child *c) {
        char tmp[4096];

        for (unsigned i = 0; i < READS_PER_TURN; i++) {
                ssize_t n = read(c->out_fd, tmp, sizeof tmp);
                size_t room = c->max_output - c->out.n;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        stop_output(c);
                        return;
                }
                buf_add(&c->out, tmp, (size_t)n < room ? (size_t)n : room);
        }
}

static void on_output(uv_poll_t *p, int status, int events) {
        struct child *c = p->data;

        (void)status;
        (void)events;
        drain(c);
}

static void on_sigchld(uv_signal_t *s, int signum) {
        struct child *c = s->data;
        struct child_result r = { 0 };
        siginfo_t info = { 0 };
        int status;

        (void)signum;
        /* WNOWAIT keeps the zombie, and with it the number of its process group, until the group is killed.
         */
        if (!c->pid || waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
            info.si_pid != c->pid)
                return;
        kill(-c->pid, SIGKILL);
        while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
                continue;
        c->pid = 0;
        if (c->out_fd >= 0)
                drain(c);

        r.timed_out = c->timed_out;
        r.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        r.term_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        r.out = (struct str){ buf_str(&c->out), c->out.n };
        close_handles(c);
        answer(c, &r);
}

static void on_not_reaped(uv_timer_t *t) {
        struct child *c = t->data;
        struct child_result r = { .timed_out = c->timed_out, .exit_status = -1, .term_signal = SIGKILL };

        stop_output(c);
        /* What is left waits for the kernel to let the process go, without keeping the loop alive. */
        uv_unref((uv_handle_t *)&c->sigchld);
        r.out = (struct str){ buf_str(&c->out), c->out.n };
        answer(c, &r);
}

static void kill_and_reap(struct child *c) {
        kill(-c->pid, SIGKILL);
        uv_timer_start(&c->timer, on_not_reaped, REAP_GRACE_MS, 0);
}

static void on_timeout(uv_timer_t *t) {
        struct child *c = t->data;

        c->timed_out = true;
        kill_and_reap(c);
}

static void on_start_failed(uv_timer_t *t) {
        struct child *c = t->data;
        struct child_result r = { .exit_status = -1, .out = STR(""), .err = &c->err };

        close_handles(c);
        answer(c, &r);
}

_Noreturn static void report_and_exit(const struct launch *l) {
        int code = errno;
        ssize_t n;

        do
                n = write(l->report_fd, &code, sizeof code);
        while (n < 0 && errno == EINTR);
        _exit(127);
}

_Noreturn static void launch_child(const struct launch *l) {
        sigset_t none;

        /* The loop's signal handlers would write into the parent's pipes. */
        for (int s = 1; s < NSIG; s++)
                signal(s, SIG_DFL);
        sigemptyset(&none);
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != l->parent)
                _exit(127);
        if (dup2(l->null_fd, STDIN_FILENO) < 0 || dup2(l->out_fd, STDOUT_FILENO) < 0 ||
            dup2(l->out_fd, STDERR_FILENO) < 0)
                report_and_exit(l);
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        if (l->chroot && (chroot(l->chroot) < 0 || chdir("/") < 0))
                report_and_exit(l);
        sigprocmask(SIG_SETMASK, &none, NULL);
        /* execvp looks PATH up in environ. */
        if (l->env)
                environ = (char **)(uintptr_t)l->env;
        execvp(l->argv[0], l->argv);
        report_and_exit(l);
}

/* Forks and waits until the program runs (the report pipe closes at exec). Returns 0 or a negative errno. */
static int launch(struct child *c, const struct child_options *o, int out_fd) {
        _cleanup_(closep) int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        _cleanup_(closep) int report_r = -1, report_w = -1;
        struct launch l = { .argv = (char *const *)(uintptr_t)o->argv,
                            .env = (char *const *)(uintptr_t)o->env,
                            .chroot = o->chroot,
                            .null_fd = null_fd,
                            .out_fd = out_fd,
                            .parent = getpid() };
        sigset_t all, before;
        int report[2], code = 0;
        ssize_t n;

        if (null_fd < 0 || pipe2(report, O_CLOEXEC) < 0)
                return -errno;
        report_r = report[0];
        report_w = l.report_fd = report[1];

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        c->pid = fork();
        if (c->pid == 0)
                launch_child(&l);
        code = c->pid < 0 ? errno : 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (c->pid < 0) {
                c->pid = 0;
                return -code;
        }

        close(TAKE_FD(report_w));
        do
                n = read(report_r, &code, sizeof code);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof code)
                return 0;
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
                continue;
        c->pid = 0;
        return -code;
}

struct child *child_run(uv_loop_t *loop, const struct child_options *o) {
        struct child *c = xnew(struct child);
        _cleanup_(closep) int out_w = -1;
        int out[2], r;

        BUG_ON(o->timeout_ms == 0 || !o->argv || !o->argv[0]);
        c->done = o->done;
        c->u = o->u;
        c->out_fd = -1;
        c->max_output = o->max_output ? o->max_output : DEFAULT_MAX_OUTPUT;
        c->out = BUF_INIT(c->max_output + 1);

        uv_timer_init(loop, &c->timer);
        uv_signal_init(loop, &c->sigchld);
        c->timer.data = c->sigchld.data = c;
        c->open = 2;
        /* Before the fork: a child that ends at once must not be missed. */
        r = uv_signal_start(&c->sigchld, on_sigchld, SIGCHLD);
        if (r == 0 && pipe2(out, O_CLOEXEC) < 0)
                r = -errno;
        if (r == 0) {
                out_w = out[1];
                fcntl(out[0], F_SETFL, O_NONBLOCK);
                r = uv_poll_init(loop, &c->output, out[0]);
                if (r < 0) {
                        close(out[0]);
                } else {
                        c->out_fd = out[0];
                        c->output.data = c;
                        c->open++;
                        r = launch(c, o, out_w);
                }
        }
        if (r < 0) {
                c->failed = true;
                err_errno(&c->err, -r, "start '%s'", o->argv[0]);
                uv_timer_start(&c->timer, on_start_failed, 0, 0);
                return c;
        }
        uv_poll_start(&c->output, UV_READABLE, on_output);
        uv_timer_start(&c->timer, on_timeout, o->timeout_ms, 0);
        return c;
}

void child_cancel(struct child *c) {
        if (!c)
                return;
        c->done = NULL;
        if (!c->failed && c->pid)
                kill_and_reap(c);
}
