/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

/* Start values that no real machine has: the clocks are not near 0, nor near each other. */
static const int64_t first_ns = 1000000000000;
static int64_t first_wall_s = 1800000000, now_ns = 1000000000000, clock_ahead_s;

/* ---- time ---- */

int64_t sim_now_ms(void) {
        return (now_ns - first_ns) / 1000000;
}

int64_t sim_wall_s(void) {
        return first_wall_s + (now_ns - first_ns) / 1000000000;
}

void sim_skip_s(int64_t s) {
        first_wall_s += s;
}

int64_t sim_clock(void) {
        return clock_ahead_s;
}

int64_t sim_clock_set(int64_t ahead_s) {
        int64_t before = clock_ahead_s;
        clock_ahead_s = ahead_s;
        return before;
}

int64_t sim_real_s(void) {
        struct timespec t;
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
        return t.tv_sec;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
        int64_t ns = clock == CLOCK_REALTIME
                             ? (first_wall_s + clock_ahead_s) * 1000000000 + (now_ns - first_ns)
                             : now_ns;
        *t = (struct timespec){ ns / 1000000000, ns % 1000000000 };
        return 0;
}

time_t time(time_t *ret) {
        time_t now = sim_wall_s() + clock_ahead_s;
        if (ret)
                *ret = now;
        return now;
}

/* ---- files: no written file is lost ---- */

static uint64_t n_changes;
static bool news = true; /* a descriptor may have become readable since the last look */

uint64_t sim_files_changes(void) {
        return n_changes;
}

static void note_change(void) {
        n_changes++;
        news = true;
}

int fsync(int fd) {
        return 0;
}

int rename(const char *from, const char *to) {
        note_change();
        return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int unlink(const char *path) {
        note_change();
        return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int folder, const char *path, int flags) {
        note_change();
        return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int rmdir(const char *path) {
        note_change();
        return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int remove(const char *path) {
        int r = unlink(path);
        return r < 0 && errno == EISDIR ? rmdir(path) : r;
}

int mkdir(const char *path, mode_t mode) {
        note_change();
        return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int fchmod(int fd, mode_t mode) {
        news = true;
        return (int)syscall(SYS_fchmod, fd, mode);
}

int ftruncate(int fd, off_t n) {
        news = true;
        return (int)syscall(SYS_ftruncate, fd, n);
}

ssize_t write(int fd, const void *p, size_t n) {
        news = true;
        return syscall(SYS_write, fd, p, n);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at) {
        news = true;
        return syscall(SYS_pwrite64, fd, p, n, at);
}

int open(const char *path, int flags, ...) {
        va_list ap;
        va_start(ap, flags);
        mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
        va_end(ap);
        if (flags & (O_CREAT | O_TRUNC))
                note_change();
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- the loop ---- */

/* The only descriptors in the loop are those of libuv, and one of inotify, which reports at once. So there is
 * nothing to see if no file has changed. But before time passes, the kernel is always asked. */
int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask) {
        if (!news && timeout == 0)
                return 0;
        int n = (int)syscall(SYS_epoll_pwait, fd, events, max, 0, mask, sizeof(uint64_t));
        news = n != 0;
        if (n != 0)
                return n;
        if (timeout < 0) {
                sim_broken("the simulation is stuck: nothing waits for a timer");
                timeout = 1;
        }
        now_ns += (int64_t)timeout * 1000000;
        return 0;
}

int epoll_ctl(int fd, int op, int target, struct epoll_event *event) {
        news = true;
        return (int)syscall(SYS_epoll_ctl, fd, op, target, event);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout) {
        return epoll_pwait(fd, events, max, timeout, NULL);
}

/* ---- random numbers ---- */

static uint64_t world_state, programs_state;

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next(uint64_t *state) {
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

void sim_seed(uint64_t seed) {
        world_state = seed;
        programs_state = ~seed;
        next(&world_state);
}

uint64_t sim_draw(uint64_t n) {
        return n ? next(&world_state) % n : 0;
}

int64_t sim_between(int64_t least, int64_t most) {
        return least + (int64_t)sim_draw((uint64_t)(most - least + 1));
}

bool sim_chance(unsigned percent) {
        return sim_draw(100) < percent;
}

ssize_t getrandom(void *p, size_t n, unsigned flags) {
        for (size_t i = 0; i < n; i++)
                ((unsigned char *)p)[i] = (unsigned char)next(&programs_state);
        return (ssize_t)n;
}

/* ---- the agenda ---- */

/* Most new events come soon, before the many time-outs that are never reached. So the search for the place of
 * such an event begins at the front. */
enum { SOON_MS = 1000 };

struct sim_event {
        TAILQ_ENTRY(sim_event) entry;
        int64_t ms, clock_ahead_s;
        sim_fn *fn;
        void *u;
};

static TAILQ_HEAD(agenda, sim_event) agenda = TAILQ_HEAD_INITIALIZER(agenda);
static uv_timer_t timer;

static void on_timer(uv_timer_t *t);

static void set_timer(void) {
        struct sim_event *first = TAILQ_FIRST(&agenda);
        if (!first)
                return;
        uv_update_time(timer.loop);
        int64_t left = first->ms - sim_now_ms();
        uv_timer_start(&timer, on_timer, left > 0 ? (uint64_t)left : 0, 0);
}

static void on_timer(uv_timer_t *t) {
        struct sim_event *e = TAILQ_FIRST(&agenda);
        if (e && e->ms <= sim_now_ms()) {
                TAILQ_REMOVE(&agenda, e, entry);
                int64_t before = sim_clock_set(e->clock_ahead_s);
                e->fn(e->u);
                sim_clock_set(before);
                free(e);
        }
        set_timer();
}

struct sim_event *sim_at(int64_t ms, sim_fn *fn, void *u) {
        struct sim_event *e = xnew(struct sim_event), *before, *after;
        *e = (struct sim_event){ .ms = ms, .clock_ahead_s = clock_ahead_s, .fn = fn, .u = u };
        if (ms - sim_now_ms() < SOON_MS) {
                TAILQ_FOREACH (after, &agenda, entry)
                        if (after->ms > ms)
                                break;
                before = after ? TAILQ_PREV(after, agenda, entry) : TAILQ_LAST(&agenda, agenda);
        } else {
                TAILQ_FOREACH_REVERSE (before, &agenda, agenda, entry)
                        if (before->ms <= ms)
                                break;
        }
        if (before) {
                TAILQ_INSERT_AFTER(&agenda, before, e, entry);
        } else {
                TAILQ_INSERT_HEAD(&agenda, e, entry);
                set_timer();
        }
        return e;
}

void sim_cancel(struct sim_event *e) {
        if (!e)
                return;
        TAILQ_REMOVE(&agenda, e, entry);
        free(e);
}

void sim_agenda_init(uv_loop_t *loop) {
        uv_timer_init(loop, &timer);
}

void sim_agenda_done(void) {
        struct sim_event *e;
        while ((e = TAILQ_FIRST(&agenda)))
                sim_cancel(e);
        uv_close((uv_handle_t *)&timer, NULL);
}

/* ---- messages ---- */

static bool shown;
static uint64_t trace;
static char *broken;

void sim_log_show(bool on) {
        shown = on;
}

uint64_t sim_trace(void) {
        return trace;
}

static void print_text(const char *text) {
        int64_t ms = sim_now_ms();
        trace = (trace ^ str_fnv64(text, strlen(text)) ^ (uint64_t)ms) * UINT64_C(0x100000001b3);
        if (shown)
                fprintf(stderr, "%6lld.%03lld %s\n", (long long)(ms / 1000), (long long)(ms % 1000), text);
}

/* The messages share one buffer. */
static struct buf own_line = BUF_INIT(1 << 16), program_line = BUF_INIT(LOG_LINE_MAX);

void sim_log(const char *fmt, ...) {
        va_list ap;
        buf_clear(&own_line);
        va_start(ap, fmt);
        buf_vaddf(&own_line, fmt, ap);
        va_end(ap);
        print_text(buf_str(&own_line));
}

void sim_broken(const char *fmt, ...) {
        struct buf b = BUF_INIT(1 << 16);
        va_list ap;
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        sim_log("BROKEN: %s", buf_str(&b));
        if (!broken)
                broken = xasprintf("at %.3f s: %s", (double)sim_now_ms() / 1000, buf_str(&b));
        buf_done(&b);
}

const char *sim_first_broken(void) {
        return broken;
}

/* ---- base/log.h: the lines of the programs are in the same log ---- */

void log_setup(enum log_format format, int verbosity) {
}

int log_verbosity(void) {
        return 2;
}

void log_write(enum log_level level, const char *file, int line, const char *msg, const struct kv *kvs) {
        struct buf *b = &program_line;
        buf_clear(b);
        const char *slash = strrchr(file, '/');
        buf_addf(b, "  %c %s:%d ", "EWI"[level], slash ? slash + 1 : file, line);
        buf_adds(b, msg);
        for (; kvs->key && !b->failed; kvs++) {
                buf_addc(b, ' ');
                buf_adds(b, kvs->key);
                if (kvs->type == KV_STR) {
                        buf_addc(b, '=');
                        buf_adds(b, kvs->v.s ? kvs->v.s : "<nil>");
                } else {
                        buf_addf(b, "=%lld", (long long)kvs->v.i);
                }
        }
        print_text(buf_str(b));
}
