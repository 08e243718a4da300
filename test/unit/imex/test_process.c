/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include "imex/imex_process.h"
#include "programs.h"

/* Waits for signals and writes them to a file. */
#define DAEMON                                                                                               \
        "echo start >> events\n"                                                                             \
        "trap 'echo usr1 >> events' USR1\n"                                                                  \
        "trap 'echo term >> events; exit 0' TERM\n"                                                          \
        "echo up\n"                                                                                          \
        "while :; do sleep 1000 & wait $!; done"

static struct imex_process *p;
static const char *argv[2];
static char *path; /* argv[0] */
static enum imex_process_state last;
static unsigned waitings, prepared, lines;
static char why[512], line[256], prepare_error[64];

static void on_changed(void *u, enum imex_process_state s, enum imex_process_end end, const char *w) {
        last = s;
        if (s == IMEX_PROCESS_WAITING) {
                waitings++;
                strcpy(why, w);
        }
}

static void on_line(void *u, struct str l) {
        lines++;
        snprintf(line, sizeof line, "%.*s", (int)l.n, l.p);
}

static int on_prepare(void *u, struct err *e) {
        prepared++;
        return *prepare_error ? err_set(e, ERR_INTERNAL, 0, "%s", prepare_error) : 0;
}

static void make_with(const char *script, unsigned backoff_first_ms) {
        free(path);
        argv[0] = path = in_dir("program");
        put_program("program", script);
        last = IMEX_PROCESS_DOWN;
        waitings = prepared = lines = 0;
        *why = *line = *prepare_error = '\0';
        p = imex_process_new(uv_default_loop(), &(struct imex_process_options){
                                                        .argv = argv,
                                                        .term_grace_ms = 200,
                                                        .usr1_interval_ms = 150,
                                                        .backoff_first_ms = backoff_first_ms,
                                                        .backoff_max_ms = backoff_first_ms * 4,
                                                        .stable_ms = 400,
                                                        .prepare = on_prepare,
                                                        .line = on_line,
                                                        .changed = on_changed,
                                                });
        imex_process_start(p);
        assert_int_equal(prepared, 0); /* nothing happens inside the call */
}

static void make(const char *script) {
        make_with(script, 20);
}

static int finish(void **state) {
        imex_process_free(p);
        p = NULL;
        free(TAKE(path));
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        return remove_dir(state);
}

static pid_t group;
static bool group_gone(void) {
        return kill(-group, 0) < 0;
}
static bool up(void) {
        return lines > 0;
}
static bool up_again(void) {
        return lines == 2;
}
static bool up_a_third_time(void) {
        return lines == 3;
}
static bool up_a_fourth_time(void) {
        return lines == 4;
}
static bool down(void) {
        return last == IMEX_PROCESS_DOWN;
}
static bool waiting(void) {
        return waitings > 0;
}
static bool waited_5(void) {
        return waitings >= 5;
}
static bool prepared_2(void) {
        return prepared == 2;
}
static bool started_2(void) {
        return count("events", "start") == 2 && lines == 2;
}
static bool usr1_1(void) {
        return count("events", "usr1") == 1;
}
static bool usr1_2(void) {
        return count("events", "usr1") == 2;
}
static unsigned usr1_before;
static bool usr1_more(void) {
        return count("events", "usr1") > usr1_before;
}
static bool running_again(void) {
        return prepared == 2 && last == IMEX_PROCESS_RUNNING;
}

static void test_runs_and_stops(void **state) {
        pid_t pid;

        make(DAEMON);
        assert_true(within(5000, up));
        assert_int_equal(last, IMEX_PROCESS_RUNNING);
        assert_string_equal(line, "up");
        assert_int_equal(prepared, 1);
        pid = imex_process_pid(p);
        assert_true(pid > 0);

        imex_process_stop(p);
        assert_int_equal(last, IMEX_PROCESS_RUNNING);
        assert_true(within(5000, down));
        assert_int_equal(count("events", "term"), 1);
        group = pid;
        assert_true(within(5000, group_gone)); /* its children, too, when they have been reaped */
        assert_int_equal(imex_process_restarts(p), 0);
        assert_int_equal(waitings, 0);

        /* The same again. */
        imex_process_start(p);
        assert_true(within(5000, started_2));
}

static void test_stop_before_start(void **state) {
        make(DAEMON);
        imex_process_stop(p);
        within(50, never);
        assert_int_equal(prepared, 0);
        assert_int_equal(imex_process_state(p), IMEX_PROCESS_DOWN);
}

/* failure: nvidia-imex ignores SIGTERM -> it is killed */
static void test_sigterm_ignored_is_killed(void **state) {
        uint64_t t;

        make("trap '' TERM; echo up; while :; do sleep 1000; done");
        assert_true(within(5000, up));
        imex_process_stop(p);
        t = uv_hrtime();
        assert_true(within(5000, down));
        assert_in_range((uv_hrtime() - t) / 1000000, 150, 3000);
        assert_true(imex_process_killed(p));
}

/* failure: nvidia-imex crashes while it is being stopped -> it counts as killed, not as a clean end */
static void test_crash_during_a_stop_counts_as_killed(void **state) {
        make("[ -e crashed ] || trap 'touch crashed; kill -SEGV $$' TERM\n"
             "[ -e crashed ] && trap 'exit 0' TERM\n"
             "echo up; while :; do sleep 1000 & wait $!; done");
        assert_true(within(5000, up));
        imex_process_stop(p);
        assert_true(within(5000, down));
        assert_true(imex_process_killed(p));

        /* It crashes just before it is stopped. */
        imex_process_start(p);
        assert_true(within(5000, up_again));
        kill(imex_process_pid(p), SIGKILL);
        imex_process_stop(p);
        assert_true(within(5000, down));
        assert_true(imex_process_killed(p));

        /* It crashes, and is not restarted because it is stopped. */
        imex_process_start(p);
        assert_true(within(5000, up_a_third_time));
        waitings = 0;
        kill(imex_process_pid(p), SIGKILL);
        assert_true(within(5000, waiting));
        imex_process_stop(p);
        assert_true(within(5000, down));
        assert_true(imex_process_killed(p));

        imex_process_start(p);
        assert_true(within(5000, up_a_fourth_time));
        imex_process_stop(p);
        assert_true(within(5000, down));
        assert_false(imex_process_killed(p));
}

static void test_crash_once(void **state) {
        make("[ -e crashed ] || { touch crashed; echo dying; exit 7; }\n" DAEMON);
        assert_true(within(5000, waiting));
        assert_string_equal(line, "dying");
        assert_string_equal(why, "ended with exit code 7");
        assert_true(within(5000, running_again));
        within(300, never);
        assert_true(running_again());
        assert_int_equal(imex_process_restarts(p), 1);
}

static void test_crash_by_signal(void **state) {
        make("kill -SEGV $$");
        assert_true(within(5000, waiting));
        assert_non_null(strstr(why, "was ended by signal 11"));
}

/* failure: nvidia-imex crashes in a loop -> its restarts have growing delays */
static void test_crash_loop_backs_off(void **state) {
        uint64_t t = uv_hrtime();

        make("exit 1");
        assert_true(within(10000, waited_5));
        /* 20 + 40 + 80 + 80 ms between five ends. */
        assert_in_range((uv_hrtime() - t) / 1000000, 220, 5000);
        imex_process_stop(p);
        assert_true(within(1000, down));
        within(150, never);
        assert_int_equal(prepared, imex_process_restarts(p));
}

static void test_stable_run_resets_the_pause(void **state) {
        uint64_t t;

        make("echo x >> runs; [ $(wc -l < runs) = 4 ] && sleep 0.6; exit 1");
        assert_true(within(5000, waited_5) && waitings == 5);
        /* After the long run, the fifth start comes after the first pause again: 20 ms, not 80. */
        t = uv_hrtime();
        waitings = 0;
        assert_true(within(5000, waiting));
        assert_in_range((uv_hrtime() - t) / 1000000, 20, 400);
        assert_int_equal(imex_process_restarts(p), 6);
}

static void test_missing_program(void **state) {
        make("true");
        imex_process_free(p);
        last = IMEX_PROCESS_DOWN;
        p = imex_process_new(
                uv_default_loop(),
                &(struct imex_process_options){ .argv = (const char *const[]){ "/no/such/program", NULL },
                                                .backoff_first_ms = 20,
                                                .backoff_max_ms = 40,
                                                .stable_ms = 1000,
                                                .line = on_line,
                                                .changed = on_changed });
        imex_process_start(p);
        assert_true(within(5000, waiting));
        assert_string_equal(why, "could not be started: start '/no/such/program': No such file or directory");
        /* The program appears later. */
        assert_true(within(5000, waited_5));
}

static void test_prepare_fails(void **state) {
        make(DAEMON);
        strcpy(prepare_error, "no hosts");
        assert_true(within(5000, waiting));
        assert_string_equal(why, "could not be started: no hosts");
        *prepare_error = '\0';
        assert_true(within(5000, up));
}

static void test_restart(void **state) {
        pid_t pid;

        make(DAEMON);
        assert_true(within(5000, up));
        pid = imex_process_pid(p);
        imex_process_restart(p, false);
        imex_process_restart(p, false);
        assert_true(within(5000, started_2));
        assert_true(imex_process_pid(p) != pid);
        assert_int_equal(count("events", "term"), 1);
        assert_int_equal(imex_process_restarts(p), 0);
}

static void test_restart_with_penalty(void **state) {
        make(DAEMON);
        assert_true(within(5000, up));
        imex_process_restart(p, true);
        assert_true(within(5000, started_2));
        assert_int_equal(waitings, 1);
        assert_int_equal(imex_process_restarts(p), 1);
}

static void test_stop_then_start_while_it_ends(void **state) {
        make("echo start >> events; trap 'echo term >> events; sleep 0.1; exit 0' TERM; echo up; while :; do "
             "sleep 1000 & wait $!; done");
        assert_true(within(5000, up));
        imex_process_stop(p);
        within(30, never);
        imex_process_start(p);
        assert_true(within(5000, started_2));
        assert_int_equal(count("events", "term"), 1);
}

/* A pause longer than the test: if the program starts, the pause was skipped. */
/* failure: a crashing nvidia-imex is stopped and started at once -> its delay stays */
static void test_stop_and_start_in_one_turn_keep_the_pause(void **state) {
        make_with("exit 1", 3600000);
        assert_true(within(5000, waiting));
        imex_process_stop(p);
        imex_process_start(p);
        within(50, never);
        assert_int_equal(prepared, 1);
        assert_int_equal(imex_process_state(p), IMEX_PROCESS_WAITING);
        imex_process_restart(p, false);
        within(50, never);
        assert_int_equal(prepared, 1);
        /* After a complete stop, a start means at once. */
        imex_process_stop(p);
        assert_true(within(5000, down));
        imex_process_start(p);
        assert_true(within(5000, prepared_2));
}

/* libcurl opens some of its descriptors without close-on-exec. */
/* failure: nvidia-imex is started -> it inherits no descriptor of the daemon */
static void test_inherits_no_descriptor(void **state) {
        int leaky = fcntl(0, F_DUPFD, 200);

        assert_in_range(leaky, 200, 1000);
        make("ls /proc/self/fd | tr '\\n' ' '");
        assert_true(within(5000, waiting));
        close(leaky);
        /* ls itself opens the folder. */
        assert_string_equal(line, "0 1 2 3 ");
}

/* The owner runs in its own process, and is killed as by the kernel's OOM killer. The FIFO's other end shows
 * when the program has ended. */
/* failure: the daemon is killed -> nvidia-imex ends with it */
static void test_dies_with_a_killed_owner(void **state) {
        _cleanup_(freep) char *fifo = in_dir("fifo");
        _cleanup_(closep) int fd = -1;
        char text[4] = "";
        pid_t owner;

        assert_int_equal(mkfifo(fifo, 0600), 0);
        fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        assert_true(fd >= 0);
        owner = fork();
        if (owner == 0) {
                assert_int_equal(uv_loop_fork(uv_default_loop()), 0);
                make("exec > fifo; echo up; exec sleep 1000");
                within(60000, never);
                _exit(1);
        }
        struct pollfd in = { fd, POLLIN, 0 };
        assert_int_equal(poll(&in, 1, 10000), 1);
        assert_int_equal(read(fd, text, 3), 3);
        kill(owner, SIGKILL);
        assert_int_equal(waitpid(owner, NULL, 0), owner);
        assert_int_equal(poll(&in, 1, 10000), 1);
        assert_int_equal(read(fd, text, 3), 0);
}

static void test_usr1_waits_until_it_is_up(void **state) {
        make(DAEMON);
        assert_true(within(5000, up));
        imex_process_notify(p);
        within(100, never);
        assert_int_equal(count("events", "usr1"), 0);
        imex_process_up(p);
        assert_true(within(5000, usr1_1));
}

static void test_usr1_is_coalesced_and_never_lost(void **state) {
        uint64_t t;

        make(DAEMON);
        assert_true(within(5000, up));
        imex_process_up(p);
        t = uv_hrtime();
        for (int i = 0; i < 10; i++)
                imex_process_notify(p);
        assert_true(within(5000, usr1_1));
        /* The nine requests at once become one signal, which is due an interval later. */
        assert_true(within(5000, usr1_2));
        assert_true((uv_hrtime() - t) / 1000000 >= 140);
        within(400, never);
        assert_int_equal(count("events", "usr1"), 2);

        /* With many requests, signals are never closer than the interval, and a signal follows the last
         * request. */
        t = uv_hrtime();
        for (int i = 0; i < 40; i++) {
                imex_process_notify(p);
                within(10, never);
        }
        usr1_before = 2 + 1;
        assert_true(within(5000, usr1_more));
        within(400, never);
        assert_in_range(count("events", "usr1"), 2 + 2, 2 + 1 + (uv_hrtime() - t) / 150000000);
        usr1_before = count("events", "usr1");
        imex_process_notify(p);
        assert_true(within(5000, usr1_more));
        within(200, never);
        assert_int_equal(count("events", "usr1"), usr1_before + 1);
}

static void test_usr1_is_not_sent_to_the_next_process(void **state) {
        make(DAEMON);
        assert_true(within(5000, up));
        imex_process_up(p);
        imex_process_notify(p);
        assert_true(within(5000, usr1_1));
        imex_process_notify(p);
        imex_process_restart(p, false);
        assert_true(within(5000, started_2));
        imex_process_up(p);
        within(300, never);
        assert_int_equal(count("events", "usr1"), 1);
}

static void test_long_lines_and_the_last_one(void **state) {
        make("head -c 5000 /dev/zero | tr '\\0' x; echo; printf 'no end'; exit 3");
        assert_true(within(5000, waiting));
        assert_int_equal(lines, 4); /* 2048 + 2048 + 904, and the line without an end */
        assert_string_equal(line, "no end");
}

static void test_free_kills(void **state) {
        pid_t pid;

        make(DAEMON);
        assert_true(within(5000, up));
        pid = imex_process_pid(p);
        imex_process_free(p);
        p = NULL;
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(kill(pid, 0), -1);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, make_dir, finish)
        const struct CMUnitTest tests[] = {
                T(test_runs_and_stops),
                T(test_stop_before_start),
                T(test_sigterm_ignored_is_killed),
                T(test_crash_during_a_stop_counts_as_killed),
                T(test_crash_once),
                T(test_crash_by_signal),
                T(test_crash_loop_backs_off),
                T(test_stable_run_resets_the_pause),
                T(test_missing_program),
                T(test_prepare_fails),
                T(test_restart),
                T(test_restart_with_penalty),
                T(test_stop_then_start_while_it_ends),
                T(test_stop_and_start_in_one_turn_keep_the_pause),
                T(test_inherits_no_descriptor),
                T(test_dies_with_a_killed_owner),
                T(test_usr1_waits_until_it_is_up),
                T(test_usr1_is_coalesced_and_never_lost),
                T(test_usr1_is_not_sent_to_the_next_process),
                T(test_long_lines_and_the_last_one),
                T(test_free_kills),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
