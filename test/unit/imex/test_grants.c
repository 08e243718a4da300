/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "imex/imex_grants.h"
#include "imex/imex_state.h"
#include "base/mem.h"

#define ONE "c0000000-0000-4000-8000-000000000001"
#define TWO "c0000000-0000-4000-8000-000000000002"

#define DOMAIN "d0000000-0000-4000-8000-000000000003"

/* As on a node: the folder of all domains, that of one domain, and the CDI folder. */
static char root[] = "/tmp/test_imex_grants.XXXXXX";
static char *dir, *cdi;
static struct imex_grants_folder place;
static int lock = -1; /* the plugin's; -1: the plugin is not alive */

static char *in(const char *folder, const char *name) {
        return file_join(folder, name);
}

static int setup(void **state) {
        struct err e;

        if (!mkdtemp(root))
                return -1;
        dir = in(root, DOMAIN);
        cdi = in(root, "cdi");
        place = (struct imex_grants_folder){ root, cdi, "vendor-class_" };
        return file_mkdirs(dir, 0755, &e) | file_mkdirs(cdi, 0755, &e);
}

static int teardown(void **state) {
        _cleanup_(freep) char *path = in(root, IMEX_GRANTS_LOCK);

        unlink(path);
        if (rmdir(dir) < 0 || rmdir(cdi) < 0 || rmdir(root) < 0)
                return -1;
        free(dir);
        free(cdi);
        return 0;
}

/* ---- the plugin ---- */

static void plugin_begins(void) {
        struct err e;

        assert_int_equal(imex_grants_lock(root, &lock, &e), 0);
}

static void plugin_dies(void) {
        if (lock >= 0)
                close(lock);
        lock = -1;
}

static void put(const char *claim, enum imex_grant_state state) {
        struct err e;

        assert_int_equal(imex_grants_put(dir, claim, state, &e), 0);
}

static void take(const char *claim) {
        struct err e;

        assert_int_equal(imex_grants_remove(dir, claim, false, &e), 0);
}

static char *cdi_file(const char *claim) {
        _cleanup_(freep) char *name = xasprintf("vendor-class_%s.yaml", claim);

        return in(cdi, name);
}

static void prepare(const char *claim) {
        _cleanup_(freep) char *path = cdi_file(claim);
        struct err e;

        assert_int_equal(file_replace_volatile(path, "x", 1, 0600, &e), 0);
}

static void unprepare(const char *claim) {
        _cleanup_(freep) char *path = cdi_file(claim);

        unlink(path);
}

/* ---- the daemon ---- */

static enum imex_use use(void) {
        struct err e;

        return imex_grants_use(&place, DOMAIN, &e);
}

/* ---- what counts as use ---- */

static void a_domain_is_in_use_from_the_first_claim_to_the_last(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR);
        struct stat st;

        plugin_begins();
        assert_int_equal(use(), IMEX_USE_NONE);
        put(ONE, IMEX_GRANT_GRANTING);
        put(ONE, IMEX_GRANT_GRANTING);
        assert_int_equal(use(), IMEX_USE_GRANTING);
        prepare(ONE);
        assert_int_equal(use(), IMEX_USE_PREPARED);
        put(TWO, IMEX_GRANT_GRANTING);
        assert_int_equal(use(), IMEX_USE_PREPARED);
        unprepare(ONE);
        take(ONE);
        assert_int_equal(use(), IMEX_USE_GRANTING);
        take(TWO);
        take(TWO);
        assert_int_equal(use(), IMEX_USE_NONE);
        assert_int_equal(stat(folder, &st), -1);
        plugin_dies();
}

static void a_waiting_claim_does_not_use_the_domain(void **state) {
        plugin_begins();
        put(ONE, IMEX_GRANT_WAITING);
        assert_int_equal(use(), IMEX_USE_NONE);
        put(ONE, IMEX_GRANT_GRANTING);
        put(TWO, IMEX_GRANT_WAITING);
        assert_int_equal(use(), IMEX_USE_GRANTING);
        put(ONE, IMEX_GRANT_WAITING);
        assert_int_equal(use(), IMEX_USE_NONE);
        take(ONE);
        take(TWO);
        plugin_dies();
}

static void a_prepared_claim_uses_the_domain_in_any_state_and_without_a_plugin(void **state) {
        plugin_begins();
        put(ONE, IMEX_GRANT_WAITING);
        prepare(ONE);
        assert_int_equal(use(), IMEX_USE_PREPARED);
        plugin_dies();
        assert_int_equal(use(), IMEX_USE_PREPARED);
        unprepare(ONE);
        take(ONE);
}

static void a_claim_that_another_driver_has_unprepared_does_not_count(void **state) {
        plugin_begins();
        put(ONE, IMEX_GRANT_GRANTING);
        prepare(ONE);
        plugin_dies();
        unprepare(ONE); /* another driver does not know our file */
        assert_int_equal(use(), IMEX_USE_NONE);
        take(ONE);
}

/* failure: the grant of a prepared claim is removed by hand -> the daemon that has seen it still counts it */
static void a_seen_claim_counts_until_its_cdi_file_is_removed(void **state) {
        struct imex_grants_seen claims = { 0 };
        struct err e;

        place.seen = &claims;
        plugin_begins();
        put(ONE, IMEX_GRANT_GRANTING);
        assert_int_equal(use(), IMEX_USE_GRANTING);
        take(ONE);
        assert_int_equal(use(), IMEX_USE_NONE); /* it was never prepared */
        for (int i = 0; i < 2; i++) {
                put(ONE, IMEX_GRANT_GRANTING);
                put(TWO, IMEX_GRANT_GRANTING);
                prepare(ONE);
                prepare(TWO);
                assert_int_equal(use(), IMEX_USE_PREPARED);
                assert_int_equal(use(), IMEX_USE_PREPARED);
                assert_int_equal(claims.n, 2);
                take(ONE);
                take(TWO);
                plugin_dies();
                assert_int_equal(use(), IMEX_USE_PREPARED);
                unprepare(i ? ONE : TWO);
                assert_int_equal(use(), IMEX_USE_PREPARED);
                place.cdi_dir = "/nowhere";
                assert_int_equal(imex_grants_use(&place, DOMAIN, &e), IMEX_USE_UNKNOWN);
                place.cdi_dir = cdi;
                unprepare(i ? TWO : ONE);
                assert_int_equal(use(), IMEX_USE_NONE);
                assert_int_equal(claims.n, 0);
        }
        free(claims.uids);
        place.seen = NULL;
}

static void one_of_two_plugin_processes_is_enough(void **state) {
        struct err e;
        int other;

        plugin_begins();
        assert_int_equal(imex_grants_lock(root, &other, &e), 0);
        put(ONE, IMEX_GRANT_GRANTING);
        plugin_dies();
        assert_int_equal(use(), IMEX_USE_GRANTING);
        close(other);
        assert_int_equal(use(), IMEX_USE_NONE);
        take(ONE);
}

static void the_lock_is_shared_while_another_process_holds_it(void **state) {
        struct err e;
        int other;

        plugin_begins();
        assert_false(imex_grants_lock_shared(lock));
        assert_int_equal(imex_grants_lock(root, &other, &e), 0);
        assert_true(imex_grants_lock_shared(lock));
        close(other);
        assert_false(imex_grants_lock_shared(lock));
        plugin_dies();
}

/* An earlier version of the plugin wrote no word into the file, and held no lock. */
static void a_grant_of_an_earlier_plugin_version_counts_as_use(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR), *path = in(folder, ONE),
                              *lock_path = in(root, IMEX_GRANTS_LOCK);
        struct err e;

        unlink(lock_path);
        assert_int_equal(file_mkdirs(folder, 0755, &e), 0);
        assert_int_equal(file_replace_volatile(path, "", 0, 0644, &e), 0);
        assert_int_equal(use(), IMEX_USE_GRANTING);
        take(ONE);
}

/* failure: grants or CDI files cannot be read -> IMEX counts as in use [daemon] */
static void unreadable_claims_count_as_use(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR), *path = in(folder, ONE);
        struct err e;

        plugin_begins();
        place.cdi_dir = "/nowhere";
        assert_int_equal(use(), IMEX_USE_NONE); /* no claim, so nothing to check */
        put(ONE, IMEX_GRANT_WAITING);
        assert_int_equal(imex_grants_use(&place, DOMAIN, &e), IMEX_USE_UNKNOWN);
        assert_non_null(strstr(e.msg, "/nowhere"));
        place.cdi_dir = cdi;
        assert_int_equal(use(), IMEX_USE_NONE);
        take(ONE);
        assert_int_equal(file_mkdirs(path, 0755, &e), 0);
        assert_int_equal(use(), IMEX_USE_UNKNOWN);
        rmdir(path);
        rmdir(folder);
        plugin_dies();
}

/* A container that writes into the mounted folder could point to any file. */
/* failure: a grant is a link -> it is not followed, and IMEX counts as in use */
static void a_link_instead_of_a_grant_is_not_followed(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR), *path = in(folder, ONE);
        struct err e;

        assert_int_equal(file_mkdirs(folder, 0755, &e), 0);
        assert_int_equal(symlink("/proc/version", path), 0);
        assert_int_equal(imex_grants_use(&place, DOMAIN, &e), IMEX_USE_UNKNOWN);
        assert_non_null(strstr(e.msg, "open 'grants/" ONE "': "));
        unlink(path);
        rmdir(folder);
}

/* The daemon's container can write in the folder. */
/* failure: a FIFO or a link replaces a grant -> the plugin neither blocks nor follows the link */
static void the_plugin_neither_waits_for_a_fifo_nor_follows_a_link(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR), *path = in(folder, ONE),
                              *target = in(root, "target"), *lock_path = in(root, IMEX_GRANTS_LOCK);
        struct stat st;
        struct err e;

        alarm(20); /* ends a test that waits forever */
        assert_int_equal(file_mkdirs(folder, 0755, &e), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        put(ONE, IMEX_GRANT_GRANTING);
        assert_true(lstat(path, &st) == 0 && S_ISREG(st.st_mode));
        assert_int_equal(rename(path, target), 0);
        assert_int_equal(symlink(target, path), 0);
        put(ONE, IMEX_GRANT_GRANTING);
        assert_true(lstat(path, &st) == 0 && S_ISREG(st.st_mode));
        take(ONE);
        unlink(target);
        unlink(lock_path);
        assert_int_equal(mkfifo(lock_path, 0600), 0);
        plugin_begins();
        plugin_dies();
        unlink(lock_path);
        alarm(0);
}

static void expect_outside_untouched(const char *target, const char *file) {
        struct err e;

        assert_int_equal(imex_grants_put(dir, TWO, IMEX_GRANT_GRANTING, &e), -1);
        assert_int_equal(imex_grants_remove(dir, ONE, true, &e), -1);
        assert_int_equal(imex_grants_use(&place, DOMAIN, &e), IMEX_USE_UNKNOWN);
        assert_int_equal(access(file, F_OK), 0);
        assert_int_equal(unlink(file), 0);
        imex_grants_remove_empty(dir);
        assert_int_equal(rmdir(target), 0); /* nothing was added, and the folder was still there */
}

/* failure: a daemon's container replaces a folder of grants with a link -> the plugin does not follow it
 * [tenants] */
static void a_link_instead_of_a_folder_is_not_followed(void **state) {
        _cleanup_(freep) char *grants = in(dir, IMEX_GRANTS_DIR), *other = in(root, "other"),
                              *inner = in(other, IMEX_GRANTS_DIR), *file = in(inner, ONE);
        struct err e;

        for (int outer = 0; outer < 2; outer++) {
                assert_int_equal(file_mkdirs(inner, 0755, &e), 0);
                assert_int_equal(file_replace_volatile(file, "granting", 8, 0644, &e), 0);
                if (outer)
                        assert_int_equal(rmdir(dir), 0);
                assert_int_equal(symlink(outer ? other : inner, outer ? dir : grants), 0);
                expect_outside_untouched(inner, file);
                assert_int_equal(rmdir(other), 0);
                assert_int_equal(unlink(outer ? dir : grants), 0);
        }
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
}

/* As the daemon sees it through its mount after the folder was removed from the node. */
static void a_cdi_folder_that_was_removed_shows_nothing(void **state) {
        int fd = open(cdi, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(freep) char *removed = xasprintf("/proc/self/fd/%d", fd);
        struct err e;

        put(ONE, IMEX_GRANT_WAITING);
        place.cdi_dir = removed;
        assert_int_equal(use(), IMEX_USE_NONE);
        assert_int_equal(rmdir(cdi), 0);
        assert_int_equal(imex_grants_use(&place, DOMAIN, &e), IMEX_USE_UNKNOWN);
        assert_non_null(strstr(e.msg, "was removed from the node"));
        place.cdi_dir = cdi;
        assert_int_equal(file_mkdirs(cdi, 0755, &e), 0);
        close(fd);
        take(ONE);
}

static void a_file_that_is_not_named_by_a_uid_is_not_a_grant(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR), *path = in(folder, ".c0000000.tmp");
        struct err e;

        assert_int_equal(file_mkdirs(path, 0755, &e), 0);
        assert_int_equal(use(), IMEX_USE_NONE);
        rmdir(path);
        rmdir(folder);
}

static void a_grant_that_cannot_be_written_is_an_error(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR);
        struct err e;

        assert_int_equal(file_replace_volatile(folder, "", 0, 0644, &e), 0);
        assert_int_equal(imex_grants_put(dir, ONE, IMEX_GRANT_GRANTING, &e), -1);
        unlink(folder);
}

/* A plugin was killed during a write. */
static void an_unfinished_grant_does_not_keep_the_folder(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR), *half = in(folder, "." ONE ".tmp.1.0");
        struct stat st;
        struct err e;

        put(ONE, IMEX_GRANT_WAITING);
        assert_int_equal(file_replace_volatile(half, "wai", 3, 0644, &e), 0);
        take(ONE);
        assert_int_equal(stat(folder, &st), -1);
        put(ONE, IMEX_GRANT_WAITING);
        assert_int_equal(file_replace_volatile(half, "gra", 3, 0644, &e), 0);
        put(ONE, IMEX_GRANT_GRANTING);
        assert_int_equal(stat(half, &st), -1);
        take(ONE);
}

static void only_an_empty_folder_is_removed(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR), *claim = in(folder, ONE);

        put(ONE, IMEX_GRANT_WAITING);
        imex_grants_remove_empty(dir);
        assert_int_equal(access(claim, F_OK), 0);
        assert_int_equal(unlink(claim), 0);
        imex_grants_remove_empty(dir);
        assert_int_equal(access(folder, F_OK), -1);
        imex_grants_remove_empty(dir);
}

/* A read of the folder while a file in it is replaced may not show that file. */
static void the_same_state_is_not_written_twice(void **state) {
        _cleanup_(freep) char *folder = in(dir, IMEX_GRANTS_DIR), *path = in(folder, ONE);
        struct stat first, second;

        put(ONE, IMEX_GRANT_GRANTING);
        assert_int_equal(stat(path, &first), 0);
        put(ONE, IMEX_GRANT_GRANTING);
        assert_int_equal(stat(path, &second), 0);
        assert_int_equal(first.st_ino, second.st_ino);
        take(ONE);
}

/* ---- plugin and daemon together ---- */

enum { PLUGIN_STEPS = 3, DAEMON_STEPS = 2, STEPS = PLUGIN_STEPS + DAEMON_STEPS };

struct sides {
        struct imex_state s;
        int state_lock;
        bool ready, given, ends;
};

static void plugin_step(struct sides *x, unsigned step) {
        struct imex_state seen;
        struct err e;
        bool held;

        if (step == 0) {
                put(ONE, IMEX_GRANT_GRANTING);
        } else if (step == 1) {
                assert_int_equal(imex_state_read(dir, &seen, &held, &e), 0);
                x->ready = seen.ready;
        } else if (x->ready) {
                prepare(ONE);
                x->given = true;
        } else {
                put(ONE, IMEX_GRANT_WAITING);
        }
}

static void daemon_step(struct sides *x, unsigned step) {
        struct err e;

        if (step == 0) {
                x->s.ready = false;
                assert_int_equal(imex_state_write(dir, &x->s, &x->state_lock, &e), 0);
        } else {
                x->ends = use() == IMEX_USE_NONE;
        }
}

/* The plugin dies before its step `death`. `order` has a bit for each step of both, which is set for steps of
 * the plugin. */
static void run(unsigned order, unsigned death, struct sides *x) {
        unsigned plugin = 0, runner = 0;
        struct err e;

        *x = (struct sides){ .s = { .ready = true, .status = "READY" }, .state_lock = -1 };
        assert_int_equal(imex_state_write(dir, &x->s, &x->state_lock, &e), 0);
        plugin_begins();
        put(ONE, IMEX_GRANT_WAITING);
        for (unsigned i = 0; i < STEPS; i++) {
                bool plugins = plugin < PLUGIN_STEPS && (runner == DAEMON_STEPS || order >> i & 1);

                if (plugins && plugin == death)
                        plugin_dies();
                if (!plugins)
                        daemon_step(x, runner++);
                else if (plugin++ < death)
                        plugin_step(x, plugin - 1);
        }
}

/* In each order of their steps, and for each death of the plugin between two of its steps. */
/* failure: IMEX has to stop while a channel is prepared -> no order of steps does both [daemon] */
static void no_order_of_steps_prepares_a_channel_on_an_ending_imex(void **state) {
        unsigned given = 0, ends = 0;
        struct sides x;

        for (unsigned order = 0; order < 1u << STEPS; order++)
                for (unsigned death = 0; death <= PLUGIN_STEPS; death++) {
                        run(order, death, &x);
                        if (x.given && x.ends)
                                fail_msg("order %u, death before step %u", order, death);
                        given += x.given;
                        ends += x.ends;
                        /* Independent of whether the plugin lives: only a prepared claim keeps IMEX. */
                        if (death == PLUGIN_STEPS || death == 0)
                                assert_int_equal(use(), x.given ? IMEX_USE_PREPARED : IMEX_USE_NONE);
                        plugin_dies();
                        assert_int_equal(use(), x.given ? IMEX_USE_PREPARED : IMEX_USE_NONE);
                        unprepare(ONE);
                        assert_int_equal(use(), IMEX_USE_NONE);
                        close(x.state_lock);
                        take(ONE);
                        _cleanup_(freep) char *path = in(dir, IMEX_STATE_FILE);
                        unlink(path);
                }
        assert_true(given && ends);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_domain_is_in_use_from_the_first_claim_to_the_last),
                cmocka_unit_test(a_waiting_claim_does_not_use_the_domain),
                cmocka_unit_test(a_prepared_claim_uses_the_domain_in_any_state_and_without_a_plugin),
                cmocka_unit_test(a_claim_that_another_driver_has_unprepared_does_not_count),
                cmocka_unit_test(a_seen_claim_counts_until_its_cdi_file_is_removed),
                cmocka_unit_test(one_of_two_plugin_processes_is_enough),
                cmocka_unit_test(the_lock_is_shared_while_another_process_holds_it),
                cmocka_unit_test(a_grant_of_an_earlier_plugin_version_counts_as_use),
                cmocka_unit_test(unreadable_claims_count_as_use),
                cmocka_unit_test(a_link_instead_of_a_grant_is_not_followed),
                cmocka_unit_test(the_plugin_neither_waits_for_a_fifo_nor_follows_a_link),
                cmocka_unit_test(a_link_instead_of_a_folder_is_not_followed),
                cmocka_unit_test(a_cdi_folder_that_was_removed_shows_nothing),
                cmocka_unit_test(a_file_that_is_not_named_by_a_uid_is_not_a_grant),
                cmocka_unit_test(a_grant_that_cannot_be_written_is_an_error),
                cmocka_unit_test(an_unfinished_grant_does_not_keep_the_folder),
                cmocka_unit_test(only_an_empty_folder_is_removed),
                cmocka_unit_test(the_same_state_is_not_written_twice),
                cmocka_unit_test(no_order_of_steps_prepares_a_channel_on_an_ending_imex),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
