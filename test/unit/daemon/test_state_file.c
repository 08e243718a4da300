/* SPDX-License-Identifier: Apache-2.0 */
/* The state file while writes fail, and while others remove or replace it. In virtual time (world/clock.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/state_file.h"
#include "tree.h"
#include "world/loop.h"

#define CLAIM "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
#define OTHER "bbbbbbbb-bbbb-cccc-dddd-eeeeeeeeeeee"

static char *root, *dir, *path;
static uv_loop_t loop;
static struct state_file file;
static unsigned n_changed;

/* The calls of imex_state_write(), of which the next `failing` fail. */
enum { CALLS_MAX = 16 };
static struct {
        unsigned failing, n;
        uint64_t at_ms[CALLS_MAX];
} writes;

int __real_imex_state_write(const char *in, const struct imex_state *s, int *lock, struct err *e);
int __wrap_imex_state_write(const char *in, const struct imex_state *s, int *lock, struct err *e);
int __wrap_imex_state_write(const char *in, const struct imex_state *s, int *lock, struct err *e) {
        if (writes.n < CALLS_MAX)
                writes.at_ms[writes.n] = loop_now_ms(&loop);
        writes.n++;
        if (!writes.failing)
                return __real_imex_state_write(in, s, lock, e);
        writes.failing--;
        err_set(e, ERR_RETRY, 0, "the disk is full");
        errno = ENOENT; /* of an earlier call */
        return -1;
}

/* The messages in the log, one per line. */
static char logged[4096];

void __wrap_log_write(enum log_level level, const char *source, int line, const char *msg,
                      const struct kv *kvs);
void __wrap_log_write(enum log_level level, const char *source, int line, const char *msg,
                      const struct kv *kvs) {
        size_t n = strlen(logged);
        snprintf(logged + n, sizeof logged - n, "%s\n", msg);
}

static unsigned n_logged(const char *msg) {
        unsigned n = 0;
        for (const char *p = logged; (p = strstr(p, msg)); p++)
                n++;
        return n;
}

static void on_changed(void *u) {
        n_changed++;
}

static void begin(void) {
        file = (struct state_file){ .dir = dir,
                                    .state = { .boot_id = "boot", .claim_uid = CLAIM, .pod_uid = "pod" },
                                    .changed = on_changed };
        state_file_start(&file, &loop);
}

static int setup(void **state) {
        root = tree_new();
        dir = file_join(root, "domain");
        path = file_join(dir, IMEX_STATE_FILE);
        assert_int_equal(mkdir(dir, 0755), 0);
        memset(&writes, 0, sizeof writes);
        *logged = '\0';
        n_changed = 0;
        uv_loop_init(&loop);
        begin();
        return 0;
}

static int teardown(void **state) {
        state_file_stop(&file);
        state_file_unlock(&file);
        loop_end(&loop);
        tree_remove(root);
        free(dir);
        free(path);
        return 0;
}

static struct imex_state seen;
static bool held;

/* Reads the file as the plugin does. */
static bool reads(void) {
        struct err e;
        return imex_state_read(dir, &seen, &held, &e) == 0;
}

static void set(bool ready) {
        state_file_set(&file, ready, 3, ready ? IMEX_STATE_READY : IMEX_STATE_STARTING, ready ? "" : "waits");
}

/* failure: nothing changes -> the daemon does not write the state file again */
static void a_state_is_written_on_change_and_held(void **state) {
        set(true);
        set(true);
        run_for(&loop, 5000);
        assert_true(reads() && held && seen.ready);
        assert_int_equal(seen.index, 3);
        assert_string_equal(seen.status, "READY");
        assert_int_equal(seen.generation, 1);
        assert_false(loop_timer_waits(&file.retry)); /* its own writes need no second check */
        set(false);
        assert_true(reads() && held && !seen.ready);
        assert_string_equal(seen.reason, "waits");
        state_file_set(&file, false, 4, IMEX_STATE_STARTING, "waits");
        assert_true(reads() && seen.index == 4);
        state_file_set(&file, false, 4, IMEX_STATE_STOPPED, "waits");
        assert_true(reads() && streq(seen.status, "STOPPED"));
        state_file_set(&file, false, 4, IMEX_STATE_STOPPED, "ends");
        assert_true(reads() && streq(seen.reason, "ends"));
        assert_int_equal(seen.generation, 5);
        state_file_unlock(&file);
        assert_true(reads() && !held);
        assert_string_equal(logged, "");
}

static void the_version_and_the_end_are_written_at_once_if_there_is_a_file(void **state) {
        state_file_set_version(&file, "1");
        assert_false(reads());
        set(true);
        state_file_set_lost(&file, true, "n1");
        assert_true(reads() && streq(seen.version, "1") && !seen.lost_known);
        set(true); /* with the lost peers, although its arguments are the same */
        assert_true(reads() && seen.lost_known && streq(seen.lost, "n1"));
        state_file_set_version(&file, "2");
        assert_true(reads() && streq(seen.version, "2"));
        state_file_terminate(&file);
        assert_true(reads() && seen.terminating);
        state_file_set_version(&file, "2");
        state_file_terminate(&file);
        state_file_set_lost(&file, true, "n1");
        set(true);
        assert_true(reads() && seen.generation == 4);
}

/* failure: the state file cannot be written -> it is removed, and written after 1 s, 2 s, ... 30 s */
static void a_failed_write_removes_the_file_and_is_retried(void **state) {
        static const uint64_t pauses_ms[] = { 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
        set(true);
        assert_true(reads());
        writes.n = 0;
        writes.failing = ARRAY_LEN(pauses_ms);
        set(false);
        assert_false(reads());
        assert_int_equal(file.lock, -1);
        assert_null(state_file_error(&file)); /* the first failure may be the only one */
        RUN_UNTIL(&loop, writes.n == 2);
        assert_string_equal(state_file_error(&file), "the disk is full");
        assert_int_equal(n_changed, 1);
        RUN_UNTIL(&loop, writes.n == ARRAY_LEN(pauses_ms) + 1);
        for (size_t i = 0; i < ARRAY_LEN(pauses_ms); i++)
                assert_in_range(writes.at_ms[i + 1] - writes.at_ms[i], pauses_ms[i], pauses_ms[i] + 99);
        assert_true(reads() && held && !seen.ready);
        assert_null(state_file_error(&file));
        assert_int_equal(n_changed, 2);
        assert_string_equal(logged, "cannot write the state file, will retry\n"
                                    "the state file can be written again\n");
        run_for(&loop, 60000);
        assert_int_equal(writes.n, ARRAY_LEN(pauses_ms) + 1);
}

/* failure: the state file can be neither written nor removed -> the log reports it once */
static void a_file_that_cannot_be_removed_is_reported_once(void **state) {
        tree_put(root, "domain/" IMEX_STATE_FILE "/in the way", "");
        set(true);
        assert_int_equal(n_logged("cannot remove the state file"), 1);
        RUN_UNTIL(&loop, writes.n == 5);
        assert_int_equal(n_logged("cannot remove the state file"), 1);
        assert_int_equal(n_logged("cannot write the state file"), 1);
}

static void a_missing_folder_is_created(void **state) {
        state_file_stop(&file);
        assert_int_equal(rmdir(dir), 0);
        begin(); /* nothing can be watched yet */
        set(true);
        assert_true(reads() && held);
        assert_int_equal(n_logged("recreating it"), 1);
        assert_int_equal(n_logged("cannot watch"), 0);
        run_for(&loop, 5000);
        assert_int_equal(seen.generation, 1);
        assert_int_equal(unlink(path), 0); /* now the file is watched */
        RUN_UNTIL(&loop, reads());
        assert_int_equal(seen.generation, 2);
}

/* The folder is mounted, and another process has removed it from the node: a process that has it open sees it
 * in the same way. */
/* failure: the folder of a daemon is removed from the node while it is mounted -> the error names the fix */
static void a_folder_without_a_name_cannot_be_recreated(void **state) {
        int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char open_dir[64];
        snprintf(open_dir, sizeof open_dir, "/proc/self/fd/%d", fd);
        file.dir = open_dir;
        assert_int_equal(rmdir(dir), 0);
        set(true);
        assert_non_null(strstr(file.why, "was removed from the node; delete this pod"));
        assert_int_equal(n_logged("recreating it"), 0);
        close(fd);
}

/* failure: someone removes the state file -> the daemon writes it again */
static void a_removed_file_is_written_again(void **state) {
        set(true);
        for (int64_t generation = 2; generation < 5; generation++) {
                assert_int_equal(unlink(path), 0);
                RUN_UNTIL(&loop, reads());
                assert_true(held && seen.generation == generation);
        }
        assert_int_equal(n_logged("was removed or replaced"), 3);
        assert_int_equal(file_replace(path, "{}", 2, 0644, &(struct err){ 0 }), 0); /* not a state */
        RUN_UNTIL(&loop, reads());
        assert_true(held && seen.generation == 5);
}

/* failure: a daemon that is ending still holds its state file -> the file is replaced when it has ended */
static void the_file_of_a_living_daemon_stays_until_it_ends(void **state) {
        const struct imex_state other = {
                .boot_id = "boot", .claim_uid = OTHER, .pod_uid = "other", .status = "STOPPED"
        };
        struct err e;
        int lock = -1;
        set(true);
        assert_int_equal(__real_imex_state_write(dir, &other, &lock, &e), 0);
        run_for(&loop, 10000);
        assert_true(reads() && held && streq(seen.claim_uid, OTHER));
        close(lock);
        RUN_UNTIL(&loop, reads() && streq(seen.claim_uid, CLAIM));
        assert_true(held);
        assert_int_equal(n_logged("was removed or replaced"), 1);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_state_is_written_on_change_and_held),
                T(the_version_and_the_end_are_written_at_once_if_there_is_a_file),
                T(a_failed_write_removes_the_file_and_is_retried),
                T(a_file_that_cannot_be_removed_is_reported_once),
                T(a_missing_folder_is_created),
                T(a_folder_without_a_name_cannot_be_recreated),
                T(a_removed_file_is_written_again),
                T(the_file_of_a_living_daemon_stays_until_it_ends),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
