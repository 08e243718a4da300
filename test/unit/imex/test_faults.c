/* The n-th system call fails, for all n: nothing leaks, nothing is left behind, and what was there before still is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/child.h"
#include "imex/imex_members.h"
#include "imex/imex_process.h"
#include "imex/imex_state.h"
#include "programs.h"

/* The linker sends these calls through here (see meson.build). */
static int countdown = -1; /* calls until one fails; -1: none does */
static bool failed;
static int failure = EIO;

static bool fails(void) {
        if (countdown < 0 || countdown-- > 0)
                return false;
        failed = true;
        errno = failure;
        return true;
}

#define WRAP(ret, name, params, args)         \
        ret __real_##name params;             \
        ret __wrap_##name params;             \
        ret __wrap_##name params {            \
                return fails() ? -1 : __real_##name args; \
        }
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(ssize_t, pwrite64, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, ftruncate64, (int fd, off_t n), (fd, n))
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags))
WRAP(pid_t, fork, (void), ())

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...) {
        mode_t mode = 0;
        va_list ap;

        va_start(ap, flags);
        if (flags & O_CREAT)
                mode = va_arg(ap, mode_t);
        va_end(ap);
        return fails() ? -1 : __real_open64(path, flags, mode);
}

/* F_OFD_SETLK is the only one that may fail. */
int __real_fcntl64(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...) {
        void *arg;
        va_list ap;

        va_start(ap, cmd);
        arg = va_arg(ap, void *);
        va_end(ap);
        return cmd == F_OFD_SETLK && fails() ? -1 : __real_fcntl64(fd, cmd, arg);
}

static unsigned entries(const char *path) {
        DIR *d = opendir(path);
        unsigned n = 0;

        assert_non_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

/* Calls op with the first, the second, ... call failing until none does; `check` looks after each failure. */
static void for_all(int (*op)(struct err *e), void (*check)(void)) {
        int rounds = 0;

        for (;; rounds++) {
                unsigned fds = entries("/proc/self/fd"), files = entries(dir);
                struct err e;
                int r;

                countdown = rounds;
                failed = false;
                r = op(&e);
                countdown = -1;
                if (!failed) {
                        assert_int_equal(r, 0);
                        break;
                }
                assert_int_equal(r, -1);
                assert_int_equal(e.code, EIO);
                assert_int_equal(entries("/proc/self/fd"), fds);
                assert_int_equal(entries(dir), files);
                check();
        }
        assert_true(rounds > 0);
}

static struct imex_state state = { .boot_id = "b", .claim_uid = "c", .pod_uid = "p", .index = 1, .ready = true, .status = "READY" };
static int lock_fd = -1;

static int write_state(struct err *e) {
        state.generation = 2;
        return imex_state_write(dir, &state, &lock_fd, e);
}

static void old_state_stands(void) {
        struct imex_state s;
        bool held;
        struct err e;

        assert_int_equal(imex_state_read(dir, &s, &held, &e), 0);
        assert_true(held);
        assert_int_equal(s.generation, 1);
}

static void test_state(void **unused) {
        struct err e;

        state.generation = 1;
        assert_int_equal(imex_state_write(dir, &state, &lock_fd, &e), 0);
        for_all(write_state, old_state_stands);
        close(TAKE_FD(lock_fd));
}

static const struct imex_peer peer = { .index = 1, .ip = "10.0.0.1", .node = "n" };

static int save_members(struct err *e) {
        return imex_members_save(dir, "new", &(struct imex_members){ .own_index = 1, .infix = "", .peers = &peer, .n_peers = 1 }, e);
}

static void old_members_stand(void) {
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        struct imex_members *m;
        struct err e;

        assert_int_equal(imex_members_load(dir, "old", a, &m, &e), 0);
}

static void test_members(void **unused) {
        struct err e;

        assert_int_equal(imex_members_save(dir, "old", &(struct imex_members){ .own_index = 0, .infix = "" }, &e), 0);
        for_all(save_members, old_members_stand);
}

static int write_hosts(struct err *e) {
        _cleanup_(freep) char *path = in_dir("hosts");

        return imex_hosts_write(path, STR("new\n"), e);
}

/* The old text or the new one, at the worst followed by blank lines. */
static void hosts_are_whole(void) {
        _cleanup_(freep) char *now = get("hosts");
        struct str text = str_trim(str_from(now));

        assert_true(str_eq(text, STR("old and longer")) || str_eq(text, STR("new")));
        put("hosts", "old and longer\n", 0644);
}

static void test_hosts(void **unused) {
        put("hosts", "old and longer\n", 0644);
        for_all(write_hosts, hosts_are_whole);
}

static void on_done(void *u, const struct child_result *r) {
        if (r->err)
                *(struct err *)u = *r->err;
        else
                assert_int_equal(r->exit_status, 0);
}

static int run_child(struct err *e) {
        e->code = 0;
        child_run(uv_default_loop(), &(struct child_options){ .argv = (const char *const[]){ "true", NULL }, .timeout_ms = 5000, .done = on_done, .u = e });
        countdown = -1; /* what the loop itself calls is not our business */
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        return e->code ? -1 : 0;
}

static void nothing(void) {
}

static void test_child(void **unused) {
        struct err e;

        assert_int_equal(run_child(&e), 0); /* the loop's own descriptors */
        for_all(run_child, nothing);
}

static enum imex_process_state last;
static char why[512];

static void on_line(void *u, struct str line) {
}

static void on_changed(void *u, enum imex_process_state s, const char *w) {
        last = s;
        if (*w)
                snprintf(why, sizeof why, "%s", w);
}

static bool settled(void) {
        return last != IMEX_PROCESS_DOWN;
}

/* A process that cannot be started for want of descriptors is started later. */
static void test_process(void **unused) {
        struct imex_process *p;

        for (int round = 0; round < 2; round++) {
                unsigned fds = entries("/proc/self/fd");

                last = IMEX_PROCESS_DOWN;
                *why = '\0';
                p = imex_process_new(uv_default_loop(), &(struct imex_process_options){
                        .argv = (const char *const[]){ "sleep", "1000", NULL }, .term_grace_ms = 100, .backoff_first_ms = 1, .backoff_max_ms = 10,
                        .stable_ms = 1000, .line = on_line, .changed = on_changed });
                imex_process_start(p);
                countdown = 0; /* pipe2 */
                assert_true(within(5000, settled));
                assert_int_equal(last == IMEX_PROCESS_WAITING || last == IMEX_PROCESS_RUNNING, 1);
                within(100, never);
                assert_int_equal(last, IMEX_PROCESS_RUNNING);
                assert_non_null(strstr(why, "could not be started"));
                assert_int_equal(imex_process_restarts(p), 1);
                imex_process_free(p);
                uv_run(uv_default_loop(), UV_RUN_DEFAULT);
                assert_int_equal(entries("/proc/self/fd"), fds);
        }
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, make_dir, remove_dir)
        const struct CMUnitTest tests[] = { T(test_state), T(test_members), T(test_hosts), T(test_child), T(test_process) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
