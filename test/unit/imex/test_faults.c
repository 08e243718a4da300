/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th system call fails, for all n: nothing leaks, no file remains, and the earlier content is still in
 * place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/child.h"
#include "imex/imex_files.h"
#include "imex/imex_grants.h"
#include "imex/imex_members.h"
#include "imex/imex_process.h"
#include "imex/imex_recovery.h"
#include "imex/imex_state.h"
#include "faults.h"
#include "programs.h"

static struct imex_state state = {
        .boot_id = "b", .claim_uid = "c", .pod_uid = "p", .index = 1, .ready = true, .status = "READY"
};
static int lock_fd = -1;

static int write_state(void *u, struct err *e) {
        state.generation = 2;
        return imex_state_write(dir, &state, &lock_fd, e);
}

static void a_whole_state_stands(void *u, const char *call, bool worked) {
        struct imex_state s;
        bool held;
        struct err e;

        assert_int_equal(imex_state_read(dir, &s, &held, &e), 0);
        assert_true(held);
        assert_int_equal(s.generation, worked ? 2 : 1);
        state.generation = 1;
        assert_int_equal(imex_state_write(dir, &state, &lock_fd, &e), 0);
}

static void test_state(void **unused) {
        struct err e;

        state.generation = 1;
        assert_int_equal(imex_state_write(dir, &state, &lock_fd, &e), 0);
        /* Another container of this pod uses the same temporary name, and usually leaves nothing. */
        assert_in_range(faults_each(&(struct faults){ .op = write_state,
                                                      .check = a_whole_state_stands,
                                                      .names = dir,
                                                      .dir = dir,
                                                      .survives = "unlink " }),
                        6, 20); /* unlink, create, lock, chmod, write, rename */
        close(TAKE_FD(lock_fd));
}

static const struct imex_peer peer = { .index = 1, .ip = "10.0.0.1", .node = "n" };

static void save_old(void) {
        struct err e;

        assert_int_equal(
                imex_members_save(dir, "old", &(struct imex_members){ .own_index = 0, .infix = "" }, &e), 0);
}

static int save_members(void *u, struct err *e) {
        return imex_members_save(
                dir, "new",
                &(struct imex_members){ .own_index = 1, .infix = "", .peers = &peer, .n_peers = 1 }, e);
}

static void whole_members_stand(void *u, const char *call, bool worked) {
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        struct imex_members *m;
        struct err e;

        assert_int_equal(imex_members_load(dir, worked ? "new" : "old", a, &m, &e), 0);
        save_old();
}

static void test_members(void **unused) {
        save_old();
        assert_in_range(faults_each(&(struct faults){ .op = save_members,
                                                      .check = whole_members_stand,
                                                      .names = dir,
                                                      .dir = dir,
                                                      .survives = "unlink " }),
                        5, 20); /* unlink, create, chmod, write, rename */
}

static int write_hosts(void *u, struct err *e) {
        _cleanup_(freep) char *path = in_dir("hosts");

        return imex_hosts_write(path, STR("new\n"), e);
}

/* The old text or the new one, at worst followed by blank lines. */
static void hosts_are_whole(void *u, const char *call, bool worked) {
        _cleanup_(freep) char *now = get("hosts");
        struct str text = str_trim(str_from(now));

        assert_true(str_eq(text, STR("old and longer")) || str_eq(text, STR("new")));
        put("hosts", "old and longer\n", 0644);
}

static void test_hosts(void **unused) {
        put("hosts", "old and longer\n", 0644);
        assert_in_range(faults_each(&(struct faults){
                                .op = write_hosts, .check = hosts_are_whole, .names = "/hosts", .dir = dir }),
                        4, 20);
}

static void interrupted_writes_are_repeated(void **unused) {
        struct err e;

        put("hosts", "old and longer\n", 0644);
        faults_at_with("pwrite64", 1, EINTR, false);
        assert_int_equal(write_hosts(NULL, &e), 0);
        assert_true(faults_off());
        assert_int_equal(faults_calls(), 2);
        _cleanup_(freep) char *now = get("hosts");
        assert_string_equal(now, "new\n");
}

/* A reader never sees a part of the old text behind the new one. A file above the limit is not read. */
static void until_a_file_is_truncated_blank_lines_cover_the_old_text(void **unused) {
        static const struct {
                size_t size;
                bool covered;
        } cases[] = { { 5, true },
                      { 2 * IMEX_HOSTS_MAX, true },
                      { 2 * IMEX_HOSTS_MAX + 1, false } }; /* "new\n" has 4 bytes */

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(freep) char *old = xmalloc(cases[i].size + 1), *path = in_dir("hosts");
                _cleanup_(freep) char *now = NULL;
                struct err e;
                size_t n;

                memset(old, 'x', cases[i].size);
                old[cases[i].size] = '\0';
                put("hosts", old, 0644);
                faults_at("ftruncate64", 1);
                assert_int_equal(write_hosts(NULL, &e), -1);
                assert_true(faults_off());
                assert_int_equal(file_read(path, 4 * IMEX_HOSTS_MAX, &now, &n, &e), 0);
                assert_int_equal(n, cases[i].size);
                assert_memory_equal(now, "new\n", 4);
                assert_int_equal(now[n - 1], cases[i].covered ? '\n' : 'x');
        }
}

static struct imex_state seen;

static int read_state(void *u, struct err *e) {
        bool held;

        return imex_state_read(dir, &seen, &held, e);
}

/* A state that cannot be read does not count as READY, and the error names the failure. */
static void test_read_state(void **unused) {
        struct err e;

        state.generation = 1;
        assert_int_equal(imex_state_write(dir, &state, &lock_fd, &e), 0);
        assert_in_range(faults_each(&(struct faults){ .op = read_state, .names = "state" }), 5,
                        20); /* open, stat, read, decode, lock */
        close(TAKE_FD(lock_fd));
}

static enum imex_process_state last;
static char why[512];

static void on_line(void *u, struct str line) {
}

static void on_changed(void *u, enum imex_process_state s, enum imex_process_end end, const char *w) {
        last = s;
        if (*w)
                snprintf(why, sizeof why, "%s", w);
}

static bool running(void) {
        return last == IMEX_PROCESS_RUNNING;
}

static bool settled(void) {
        return last != IMEX_PROCESS_DOWN;
}

/* A process that cannot start for lack of descriptors is started later. */
static void test_process(void **unused) {
        struct imex_process *p;

        static const char *const calls[] = { "pipe2", "uv_poll_init", "fork" };

        for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
                last = IMEX_PROCESS_DOWN;
                *why = '\0';
                p = imex_process_new(uv_default_loop(),
                                     &(struct imex_process_options){
                                             .argv = (const char *const[]){ "sleep", "1000", NULL },
                                             .term_grace_ms = 100,
                                             .backoff_first_ms = 1,
                                             .backoff_max_ms = 10,
                                             .stable_ms = 1000,
                                             .line = on_line,
                                             .changed = on_changed });
                imex_process_start(p);
                faults_at(calls[i], 1);
                assert_true(within(5000, settled));
                assert_true(faults_off());
                assert_int_equal(last == IMEX_PROCESS_WAITING || last == IMEX_PROCESS_RUNNING, 1);
                assert_true(within(5000, running));
                within(100, never);
                assert_int_equal(last, IMEX_PROCESS_RUNNING);
                assert_non_null(strstr(why, "could not be started"));
                assert_int_equal(imex_process_restarts(p), 1);
                imex_process_free(p);
                uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        }
}

#define CLAIMED "d0000000-0000-4000-8000-000000000003"

static int look_for_grants(void *u, struct err *e) {
        const struct imex_grants_folder place = { dir, dir, "vendor-class_" };

        return imex_grants_use(&place, CLAIMED, e) == IMEX_USE_UNKNOWN ? -1 : 0;
}

/* A grant that cannot be read may exist. */
/* failure: a grant cannot be read -> it counts as present [daemon] */
static void unreadable_grants_do_not_count_as_absent(void **unused) {
        static const char claim[] = "c0000000-0000-4000-8000-000000000001";
        _cleanup_(freep) char *domain = in_dir(CLAIMED);
        struct err e;

        assert_int_equal(imex_grants_put(domain, claim, IMEX_GRANT_GRANTING, &e), 0);
        assert_in_range(faults_each(&(struct faults){ .op = look_for_grants }), 1, 30);
        assert_int_equal(imex_grants_remove(domain, claim, true, &e), 0);
}

/* ---- grants ---- */

#define GRANTED "c0000000-0000-4000-8000-000000000001"

static int put_grant(void *u, struct err *e) {
        _cleanup_(freep) char *domain = in_dir(CLAIMED);

        return imex_grants_put(domain, GRANTED, IMEX_GRANT_GRANTING, e);
}

static int remove_grant(void *u, struct err *e) {
        _cleanup_(freep) char *domain = in_dir(CLAIMED);

        return imex_grants_remove(domain, GRANTED, true, e);
}

static int hold_lock(void *u, struct err *e) {
        int fd = -1, r = imex_grants_lock(dir, &fd, e);

        if (r == 0)
                close(fd);
        return r;
}

/* The daemon removes an empty folder of grants while the plugin writes into it. */
/* failure: the folder of grants is removed during a write -> the write is repeated in a new folder */
static void a_folder_that_disappears_is_created_again(void **unused) {
        struct err e;

        faults_at_with("rename", 1, ENOENT, false);
        assert_int_equal(put_grant(NULL, &e), 0);
        assert_true(faults_off());
        assert_int_equal(faults_calls(), 2); /* and a grant that was written is not written again */
        assert_int_equal(remove_grant(NULL, &e), 0);
        faults_at_with("rename", 1, ENOENT, true);
        assert_int_equal(put_grant(NULL, &e), -1);
        assert_true(faults_off());
        assert_int_equal(faults_calls(), 5);
        (void)remove_grant(NULL, &e);
}

/* The error names the call that failed, and the cause. */
static void the_first_call_that_fails_is_the_error(void **unused) {
        const struct {
                int (*op)(void *u, struct err *e);
                const char *call, *part;
        } cases[] = {
                { put_grant, "mkdir", "create folder '" },
                { put_grant, "rename", "replace '" },
                { remove_grant, "unlink", "remove '" },
                { hold_lock, "open64", "open '" },
                { hold_lock, "fcntl64", "lock '" },
                { look_for_grants, "fstat64", "Input/output error" },
                { look_for_grants, "fcntl64", "ask for the lock of '" },
                { write_state, "open64", "create '" },
                { read_state, "pread64", "Input/output error" },
        };
        int plugin = -1;
        struct err e;

        state.generation = 1;
        assert_int_equal(imex_state_write(dir, &state, &lock_fd, &e), 0);
        assert_int_equal(imex_grants_lock(dir, &plugin, &e), 0);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                bool puts = cases[i].op == put_grant;
                if (puts)
                        (void)remove_grant(NULL, &e);
                else
                        assert_int_equal(put_grant(NULL, &e), 0);
                faults_at(cases[i].call, 1);
                int r = cases[i].op(NULL, &e);
                assert_true(faults_off());
                assert_int_equal(r, -1);
                if (!strstr(e.msg, cases[i].part))
                        fail_msg("%s: '%s' is not in: %s", cases[i].call, cases[i].part, e.msg);
        }
        (void)remove_grant(NULL, &e);
        close(plugin);
        close(TAKE_FD(lock_fd));
}

/* The folder of CDI files is opened first for a grant that exists. */
static void a_cdi_folder_that_cannot_be_opened_is_named_with_the_cause(void **unused) {
        unsigned named = 0;
        struct err e;

        assert_int_equal(put_grant(NULL, &e), 0);
        for (unsigned n = 1; n < 5; n++) {
                faults_at("open64", n);
                int r = look_for_grants(NULL, &e);
                if (!faults_off())
                        break;
                assert_int_equal(r, -1);
                assert_non_null(strstr(e.msg, "Too many open files"));
                named++;
        }
        assert_true(named > 0);
        assert_int_equal(remove_grant(NULL, &e), 0);
}

static int forget(void *u, struct err *e) {
        _cleanup_(freep) char *run = in_dir("run"), *inner = in_dir("run/inner");

        (void)!(mkdir(run, 0755) | mkdir(inner, 0755));
        return imex_recovery_forget(run, e);
}

/* The files of nvidia-imex are removed before it starts. Otherwise it does not start. */
static void files_that_cannot_be_removed_are_reported(void **unused) {
        assert_in_range(faults_each(&(struct faults){ .op = forget, .names = "/run'", .survives = "mkdir " }),
                        2, 10);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, make_dir, remove_dir)
        const struct CMUnitTest tests[] = { T(test_state),
                                            T(test_members),
                                            T(test_read_state),
                                            T(test_hosts),
                                            T(interrupted_writes_are_repeated),
                                            T(until_a_file_is_truncated_blank_lines_cover_the_old_text),
                                            T(test_process),
                                            T(unreadable_grants_do_not_count_as_absent),
                                            T(a_folder_that_disappears_is_created_again),
                                            T(the_first_call_that_fails_is_the_error),
                                            T(a_cdi_folder_that_cannot_be_opened_is_named_with_the_cause),
                                            T(files_that_cannot_be_removed_are_reported) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
