/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "imex/imex_state.h"

#define BOOT "11111111-2222-3333-4444-555555555555"
#define CLAIM "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
#define POD "99999999-8888-7777-6666-555555555555"

static char dir[] = "/tmp/test_imex_state.XXXXXX";

static struct imex_state good(void) {
        return (struct imex_state){ .boot_id = BOOT,
                                    .claim_uid = CLAIM,
                                    .pod_uid = POD,
                                    .index = 3,
                                    .generation = 7,
                                    .ready = true,
                                    .status = "READY" };
}

static char *path_of(const char *name) {
        return file_join(dir, name);
}

static int setup(void **state) {
        return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state) {
        return rmdir(dir);
}

static int clean(void **state) {
        _cleanup_(freep) char *p = path_of(IMEX_STATE_FILE);

        unlink(p);
        return 0;
}

/* The plugin of another version reads the file. */
static void the_text_of_the_file_is_stable(void **state) {
        struct imex_state s = good();
        const char *ends[] = { "\"}\n", "\",\"assignment\":\"c/d/3/7\",\"version\":\"580.95.05\","
                                        "\"terminating\":true}\n" };
        int fd = -1;
        struct err e;

        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
                _cleanup_(freep) char *path = path_of(IMEX_STATE_FILE), *text = NULL;
                _cleanup_(freep) char *want = xasprintf(
                        "{\"bootID\":\"" BOOT "\",\"claimUID\":\"" CLAIM "\",\"podUID\":\"" POD
                        "\",\"index\":3,\"generation\":7,\"ready\":true,\"status\":\"READY\",\"reason\":\"%s",
                        ends[i]);
                size_t n;

                assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
                assert_int_equal(file_read(path, 4096, &text, &n, &e), 0);
                assert_string_equal(text, want);
                strcpy(s.assignment, "c/d/3/7");
                strcpy(s.version, "580.95.05");
                s.terminating = true;
        }
        close(fd);
}

static void test_round_trip(void **state) {
        struct imex_state s = good(), r;
        int fd = -1;
        bool held = false;
        struct err e;

        assert_int_equal(imex_state_read(dir, &r, &held, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);

        strcpy(s.reason, "a \"quoted\" reason\nof two lines");
        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        assert_true(fd >= 0);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_true(held);
        assert_string_equal(r.boot_id, s.boot_id);
        assert_string_equal(r.claim_uid, s.claim_uid);
        assert_string_equal(r.pod_uid, s.pod_uid);
        assert_string_equal(r.status, s.status);
        assert_string_equal(r.reason, s.reason);
        assert_int_equal(r.index, 3);
        assert_int_equal(r.generation, 7);
        assert_true(r.ready);
        assert_string_equal(r.assignment, "");

        strcpy(s.assignment,
               "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2/aaaaaaaa-0000-4000-8000-000000000001/17/4");
        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_string_equal(r.assignment, s.assignment);
        assert_string_equal(r.version, "");
        strcpy(s.version, "580.95.05");
        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_string_equal(r.version, s.version);
        assert_false(r.terminating);
        s.terminating = true;
        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_true(r.terminating);
        memset(s.version, 'v', sizeof s.version - 1);
        memset(s.assignment, 's', sizeof s.assignment - 1);

        /* The longest texts fit into the reader's limit, even if each byte is escaped. */
        memset(s.reason, 1, sizeof s.reason - 1);
        s.reason[sizeof s.reason - 1] = '\0';
        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_string_equal(r.reason, s.reason);
        close(fd);
}

/* A daemon that serves only one domain has no assignment. */
static void test_no_assignment_is_written_by_a_daemon_of_one_domain(void **state) {
        _cleanup_(freep) char *path = path_of(IMEX_STATE_FILE);
        _cleanup_(freep) char *text = NULL;
        struct imex_state s = good();
        struct err e;
        int fd = -1;

        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        assert_int_equal(file_read(path, 4096, &text, NULL, &e), 0);
        assert_null(strstr(text, "assignment"));
        close(fd);
}

static void test_lock_follows_the_newest_file(void **state) {
        struct imex_state s = good(), r;
        int fd = -1;
        bool held;
        struct err e;

        for (s.generation = 1; s.generation < 5; s.generation++) {
                assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
                assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
                assert_int_equal(r.generation, s.generation);
                assert_true(held);
        }
        close(fd);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_false(held);
}

/* A living process holds the lock; a killed one does not. */
static void test_lock_across_processes(void **state) {
        struct imex_state r;
        int ready[2];
        bool held;
        char c;
        pid_t pid;
        struct err e;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        if (pid == 0) {
                struct imex_state s = good();
                int fd = -1;

                if (imex_state_write(dir, &s, &fd, &e) < 0 || write(ready[1], "x", 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        assert_int_equal(read(ready[0], &c, 1), 1);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_true(held);
        /* The query neither takes the lock nor loses it. */
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_true(held);

        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_false(held);
        close(ready[0]);
        close(ready[1]);
}

static void test_started_programs_do_not_hold_the_lock(void **state) {
        struct imex_state s = good();
        int fd = -1;
        struct err e;

        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
}

static void test_failed_write_keeps_the_old_one(void **state) {
        struct imex_state s = good(), r;
        _cleanup_(freep) char *tmp = xasprintf("%s/.%s.%s", dir, IMEX_STATE_FILE, POD);
        int fd = -1, before;
        bool held;
        struct err e;

        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        before = fd;
        assert_int_equal(mkdir(tmp, 0700), 0);
        s.generation = 8;
        assert_int_equal(imex_state_write(dir, &s, &fd, &e), -1);
        assert_int_equal(fd, before);
        rmdir(tmp);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), 0);
        assert_int_equal(r.generation, 7);
        assert_true(held);

        /* The file of a killed writer is no obstacle. */
        close(open(tmp, O_CREAT | O_WRONLY, 0600));
        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        assert_int_equal(access(tmp, F_OK), -1);
        close(fd);
        assert_int_equal(imex_state_write("/no/such/folder", &s, &fd, &e), -1);
}

static void test_reader_follows_no_link(void **state) {
        _cleanup_(freep) char *p = path_of(IMEX_STATE_FILE), *target = path_of("target");
        struct imex_state s = good(), r;
        int fd = -1;
        bool held;
        struct err e;

        assert_int_equal(imex_state_write(dir, &s, &fd, &e), 0);
        assert_int_equal(rename(p, target), 0);
        assert_int_equal(symlink("target", p), 0);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), -1);
        unlink(p);
        unlink(target);
        close(fd);

        assert_int_equal(mkfifo(p, 0600), 0);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), -1);
}

static void put(const char *text, size_t n) {
        _cleanup_(freep) char *p = path_of(IMEX_STATE_FILE);
        struct err e;

        assert_int_equal(file_replace_volatile(p, text, n, 0644, &e), 0);
}

static void test_reader_rejects_invalid_states(void **state) {
        static const char *const bad[] = {
                "",
                "{",
                "[]",
                "null",
                "{}",
                "READY",
                "{\"bootID\":\"" BOOT BOOT "\",\"claimUID\":\"x\",\"podUID\":\"x\",\"index\":0,"
                "\"generation\":0,\"ready\":true,\"status\":\"READY\"}",
                "{\"bootID\":\"x\",\"claimUID\":\"x\",\"podUID\":\"x\",\"index\":0,\"generation\":0,"
                "\"ready\":\"true\",\"status\":\"READY\"}",
                "{\"bootID\":\"x\",\"claimUID\":\"x\",\"podUID\":\"x\",\"index\":0,\"generation\":0,"
                "\"status\":\"READY\"}",
        };
        char big[5000];
        struct imex_state r;
        bool held;
        struct err e;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                put(bad[i], strlen(bad[i]));
                assert_int_equal(imex_state_read(dir, &r, &held, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
        }
        memset(big, ' ', sizeof big);
        put(big, sizeof big);
        assert_int_equal(imex_state_read(dir, &r, &held, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
}

static void test_ready_state_is_accepted(void **state) {
        struct imex_state s = good();

        assert_null(imex_state_refusal(&s, true, BOOT, CLAIM));
}

static void test_state_of_a_killed_daemon_is_stale(void **state) {
        struct imex_state s = good();

        assert_non_null(strstr(imex_state_refusal(&s, false, BOOT, CLAIM), "not running any more"));
}

static void test_state_of_another_boot_is_stale(void **state) {
        struct imex_state s = good();

        assert_non_null(strstr(imex_state_refusal(&s, true, "22222222-2222-3333-4444-555555555555", CLAIM),
                               "last boot"));
        s.boot_id[0] = '\0';
        assert_non_null(imex_state_refusal(&s, true, "", CLAIM));
}

static void test_state_of_an_earlier_daemon_is_stale(void **state) {
        struct imex_state s = good();

        assert_non_null(strstr(imex_state_refusal(&s, true, BOOT, "bbbbbbbb-bbbb-cccc-dddd-eeeeeeeeeeee"),
                               "another daemon"));
}

static void test_no_daemon_prepared(void **state) {
        struct imex_state s = good();

        assert_non_null(strstr(imex_state_refusal(&s, true, BOOT, NULL), "prepared"));
        s.claim_uid[0] = '\0';
        assert_non_null(imex_state_refusal(&s, true, BOOT, ""));
}

static void test_unready_state_has_a_reason(void **state) {
        struct imex_state s = good();

        s.ready = false;
        assert_non_null(imex_state_refusal(&s, true, BOOT, CLAIM));
        strcpy(s.reason, "nvidia-imex is WAITING_FOR_RECOVERY");
        assert_string_equal(imex_state_refusal(&s, true, BOOT, CLAIM), "nvidia-imex is WAITING_FOR_RECOVERY");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(the_text_of_the_file_is_stable, clean),
                cmocka_unit_test_teardown(test_round_trip, clean),
                cmocka_unit_test_teardown(test_no_assignment_is_written_by_a_daemon_of_one_domain, clean),
                cmocka_unit_test_teardown(test_lock_follows_the_newest_file, clean),
                cmocka_unit_test_teardown(test_lock_across_processes, clean),
                cmocka_unit_test_teardown(test_started_programs_do_not_hold_the_lock, clean),
                cmocka_unit_test_teardown(test_failed_write_keeps_the_old_one, clean),
                cmocka_unit_test_teardown(test_reader_follows_no_link, clean),
                cmocka_unit_test_teardown(test_reader_rejects_invalid_states, clean),
                cmocka_unit_test(test_ready_state_is_accepted),
                cmocka_unit_test(test_state_of_a_killed_daemon_is_stale),
                cmocka_unit_test(test_state_of_another_boot_is_stale),
                cmocka_unit_test(test_state_of_an_earlier_daemon_is_stale),
                cmocka_unit_test(test_no_daemon_prepared),
                cmocka_unit_test(test_unready_state_has_a_reason),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
