/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/stderr.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/child.h"
#include "base/process.h"

struct outcome {
        unsigned calls;
        struct child_result r;
        char out[128];
        char err[400];
        uint64_t at_ms;
};

static void on_done(void *u, const struct child_result *r) {
        struct outcome *o = u;

        o->calls++;
        o->r = *r;
        o->at_ms = uv_now(uv_default_loop());
        memcpy(o->out, r->out.p, r->out.n < sizeof o->out ? r->out.n : sizeof o->out - 1);
        if (r->err)
                strcpy(o->err, r->err->msg);
}

static struct outcome run(struct child_options o) {
        struct outcome out = { 0 };

        o.done = on_done;
        o.u = &out;
        if (!o.timeout_ms)
                o.timeout_ms = 10000;
        assert_non_null(child_run(uv_default_loop(), &o));
        assert_int_equal(out.calls, 0);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(out.calls, 1);
        return out;
}

#define SH(script) ((const char *const[]){ "sh", "-c", (script), NULL })

static void test_output_and_status(void **state) {
        struct outcome o = run((struct child_options){ .argv = SH("echo out; echo err >&2; exit 3") });

        assert_null(o.r.err);
        assert_string_equal(o.out, "out\nerr\n");
        assert_int_equal(o.r.exit_status, 3);
        assert_int_equal(o.r.term_signal, 0);
        assert_false(o.r.timed_out);
}

static void test_signal(void **state) {
        struct outcome o = run((struct child_options){ .argv = SH("kill -SEGV $$") });

        assert_int_equal(o.r.exit_status, -1);
        assert_int_equal(o.r.term_signal, SIGSEGV);
        assert_false(o.r.timed_out);
}

static void test_missing_program(void **state) {
        struct outcome o =
                run((struct child_options){ .argv = (const char *const[]){ "/no/such/program", NULL } });

        assert_non_null(o.r.err);
        assert_non_null(strstr(o.err, "/no/such/program"));
        assert_int_equal(o.r.exit_status, -1);
}

static void test_environment(void **state) {
        const char *const env[] = { "PATH=/nowhere:/bin:/usr/bin", "WORD=rack", NULL };
        struct outcome o = run((struct child_options){ .argv = SH("echo $WORD"), .env = env });

        assert_null(o.r.err);
        assert_string_equal(o.out, "rack\n");

        o = run((struct child_options){ .argv = SH(":"),
                                        .env = (const char *const[]){ "PATH=/nowhere", NULL } });
        assert_non_null(o.r.err);
}

static void test_chroot(void **state) {
        const char *const argv[] = { "/sh", "-c", ":", NULL };
        struct outcome o;

        if (geteuid() != 0)
                skip();
        o = run((struct child_options){ .argv = (const char *const[]){ "/proc/1/does-not-exist", NULL },
                                        .chroot = "/bin" });
        assert_non_null(o.r.err);
        /* The program's loader is not below the new root. This proves that the root is changed before the
         * program is looked up. */
        o = run((struct child_options){ .argv = argv, .chroot = "/bin" });
        assert_non_null(o.r.err);
        o = run((struct child_options){ .argv = SH("pwd"), .chroot = "/" });
        assert_string_equal(o.out, "/\n");
}

static void test_timeout_kills_the_group(void **state) {
        uint64_t start;
        struct outcome o;

        uv_update_time(uv_default_loop());
        start = uv_now(uv_default_loop());
        /* The grandchild holds the pipe open, and must be killed, too. */
        o = run((struct child_options){ .argv = SH("echo before; trap '' TERM; sleep 1000 & wait; wait"),
                                        .timeout_ms = 100 });
        assert_true(o.r.timed_out);
        assert_int_equal(o.r.term_signal, SIGKILL);
        assert_string_equal(o.out, "before\n");
        assert_in_range(o.at_ms - start, 100, 3000);
}

static void test_grandchild_does_not_delay_the_answer(void **state) {
        struct outcome o =
                run((struct child_options){ .argv = SH("sleep 1000 & echo done"), .timeout_ms = 60000 });

        assert_false(o.r.timed_out);
        assert_int_equal(o.r.exit_status, 0);
        assert_string_equal(o.out, "done\n");
}

static void test_output_limit(void **state) {
        struct outcome o =
                run((struct child_options){ .argv = SH("yes | head -c 3000000"), .max_output = 100 });

        assert_int_equal(o.r.exit_status, 0);
        assert_int_equal(o.r.out.n, 100);

        o = run((struct child_options){ .argv = SH("exec yes"), .max_output = 100, .timeout_ms = 100 });
        assert_true(o.r.timed_out);
        assert_int_equal(o.r.out.n, 100);
}

static void test_cancel(void **state) {
        struct outcome out = { 0 };
        struct child_options o = {
                .argv = SH("exec sleep 1000"), .timeout_ms = 60000, .done = on_done, .u = &out
        };
        struct child *c = child_run(uv_default_loop(), &o);

        child_cancel(c);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(out.calls, 0);

        o.argv = (const char *const[]){ "/no/such/program", NULL };
        c = child_run(uv_default_loop(), &o);
        child_cancel(c);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(out.calls, 0);
        child_cancel(NULL);
}

static void test_many_at_once(void **state) {
        struct outcome out[20] = { 0 };

        for (unsigned i = 0; i < ARRAY_LEN(out); i++)
                child_run(uv_default_loop(),
                          &(struct child_options){
                                  .argv = SH("exit 7"), .timeout_ms = 20000, .done = on_done, .u = &out[i] });
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        for (unsigned i = 0; i < ARRAY_LEN(out); i++) {
                assert_int_equal(out[i].calls, 1);
                assert_int_equal(out[i].r.exit_status, 7);
        }
}

static void test_signal_state_of_the_child(void **state) {
        /* libc uses the first two real-time signals itself. They come from the process that started the
         * tests, and cannot be reset. */
        const unsigned long long libc_own = 3ULL << 31;
        unsigned long long blocked, ignored;
        char input[16];
        struct outcome o;

        /* Signals that the parent blocks or ignores are not inherited. */
        signal(SIGPIPE, SIG_IGN);
        o = run((struct child_options){
                .argv = SH("grep -E 'SigBlk|SigIgn' /proc/self/status; readlink /proc/self/fd/0") });
        assert_int_equal(sscanf(o.out, "SigBlk: %llx SigIgn: %llx %15s", &blocked, &ignored, input), 3);
        assert_int_equal(blocked, 0);
        assert_int_equal(ignored & ~libc_own, 0);
        assert_string_equal(input, "/dev/null");
}

static int close_range_refuses; /* errno; 0: it works */
int __real_close_range(unsigned first, unsigned last, int flags);
int __wrap_close_range(unsigned first, unsigned last, int flags);
int __wrap_close_range(unsigned first, unsigned last, int flags) {
        if (!close_range_refuses)
                return __real_close_range(first, last, flags);
        errno = close_range_refuses;
        return -1;
}

/* Such as libcurl's sockets. */
/* failure: a helper program is started -> it inherits no connection to the API server */
static void test_inherits_no_descriptor(void **state) {
        int leaky = fcntl(0, F_DUPFD, 200);
        struct outcome o;

        assert_in_range(leaky, 200, 1000);
        o = run((struct child_options){ .argv = (const char *const[]){ "ls", "/proc/self/fd", NULL } });
        close(leaky);
        assert_string_equal(o.out, "0\n1\n2\n3\n"); /* 3 is the folder that the command lists */
}

/* failure: Linux is older than 5.11, or a sandbox refuses close_range -> programs start, and inherit nothing
 */
static void an_old_kernel_starts_programs(void **state) {
        static const int refusals[] = { EINVAL, ENOSYS, EPERM };
        for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
                close_range_refuses = refusals[i];
                test_inherits_no_descriptor(state);
        }
        close_range_refuses = 0;
}

/* cmocka ignores the result of a group's teardown. */
static int teardown(void **state) {
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        BUG_ON(uv_loop_close(uv_default_loop()) != 0);
        return 0;
}

static void ignore_output(void *u, const char *p, size_t n) {
        (void)u, (void)p, (void)n;
}

static void on_ended(void *u, int exit_status, int term_signal, const struct err *failed) {
        *(int *)u = term_signal || failed ? -1 : exit_status;
}

static void on_timer(void *u) {
        *(bool *)u = true;
        uv_stop(uv_default_loop());
}

/* A file whose open(2) blocks until the lease is released, as on a hanging disk. The kernel breaks the lease
 * by itself after /proc/sys/fs/lease-break-time, 45 s. */
static int block_opens(const char *path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        signal(SIGIO, SIG_IGN);
        assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
        return fd;
}

static void make_program(char *path, const char *script) {
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, script, strlen(script)), strlen(script));
        assert_int_equal(fchmod(fd, 0700), 0);
        close(fd);
}

/* The program is a file of the driver root, whose disk may hang. Neither the call nor the loop waits for
 * it. */
/* failure: the disk with a helper program hangs -> the event loop and its probes continue */
static void test_program_on_a_hanging_disk_blocks_nothing(void **state) {
        static const char *const scripts[] = { "#!/bin/sh\necho ran\n", "#!/no/such/interpreter\n" };

        for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
                char path[] = "/tmp/blocked-program-XXXXXX";
                struct outcome out = { 0 };
                struct loop_timer timer;
                bool ticked = false;

                make_program(path, scripts[i]);
                int fd = block_opens(path);
                alarm(20); /* before the kernel's 45 s */
                child_run(uv_default_loop(),
                          &(struct child_options){ .argv = (const char *const[]){ path, NULL },
                                                   .timeout_ms = 60000,
                                                   .done = on_done,
                                                   .u = &out });
                loop_timer_init(&timer, uv_default_loop(), on_timer, &ticked);
                loop_timer_start(&timer, 50);
                uv_run(uv_default_loop(), UV_RUN_DEFAULT);
                assert_true(ticked);
                assert_int_equal(out.calls, 0);
                assert_int_equal(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
                uv_run(uv_default_loop(), UV_RUN_DEFAULT);
                alarm(0);
                assert_int_equal(out.calls, 1);
                assert_string_equal(out.out, i == 0 ? "ran\n" : "");
                if (i == 0)
                        assert_null(out.r.err);
                else
                        assert_non_null(strstr(out.err, path));
                loop_timer_done(&timer);
                close(fd);
                unlink(path);
        }
}

/* Independent of its number here, and of the descriptors that have this number, including our own. */
static void test_passed_descriptor_is_number_3(void **state) {
        int taken[4] = { -1, -1, -1, -1 };

        for (size_t i = 0; i <= ARRAY_LEN(taken); i++) {
                struct process *p;
                struct err e;
                int fds[2], status = -2;
                char text[16] = "";

                assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
                /* The program has no other descriptor. */
                assert_int_equal(
                        process_start(uv_default_loop(),
                                      &(struct process_options){
                                              .argv = SH("echo passed >&3; ! [ -e /proc/self/fd/4 ]"),
                                              .pass_fd = fds[1],
                                              .output = ignore_output,
                                              .ended = on_ended,
                                              .u = &status },
                                      &p, &e),
                        0);
                close(fds[1]);
                uv_run(uv_default_loop(), UV_RUN_DEFAULT);
                assert_int_equal(status, 0);
                assert_int_equal(read(fds[0], text, sizeof text - 1), 7);
                assert_string_equal(text, "passed\n");
                assert_int_equal(read(fds[0], text, 1), 0);
                close(fds[0]);
                if (i < ARRAY_LEN(taken))
                        taken[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
        for (size_t i = 0; i < ARRAY_LEN(taken); i++)
                close(taken[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_output_and_status),
                cmocka_unit_test(test_signal),
                cmocka_unit_test(test_missing_program),
                cmocka_unit_test(test_environment),
                cmocka_unit_test(test_chroot),
                cmocka_unit_test(test_timeout_kills_the_group),
                cmocka_unit_test(test_grandchild_does_not_delay_the_answer),
                cmocka_unit_test(test_output_limit),
                cmocka_unit_test(test_cancel),
                cmocka_unit_test(test_many_at_once),
                cmocka_unit_test(test_signal_state_of_the_child),
                cmocka_unit_test(test_inherits_no_descriptor),
                cmocka_unit_test(an_old_kernel_starts_programs),
                cmocka_unit_test(test_passed_descriptor_is_number_3),
                cmocka_unit_test(test_program_on_a_hanging_disk_blocks_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, teardown);
}
