/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon that runs IMEX for a domain can see the claims that use it or are about to. */
#include "world/cd_node.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "faults.h"

#define NEXT "a0000000-0000-4000-8000-000000000002"
#define STRAY "c0000000-0000-4000-8000-00000000000f"

#define READY_IN CLIQUE "/" DOMAIN_A "/3/1"

/* As the daemon sees it. */
static enum imex_use use(void) {
        _cleanup_(freep) char *domains = file_join(w.plugin_dir, "domains");
        _cleanup_(freep) char *prefix = cdi_prefix(CD_CDI_KIND_CLAIM);
        const struct imex_grants_folder place = { domains, w.cdi_root, prefix };
        struct err e;
        assert_int_equal(file_mkdirs(w.cdi_root, 0750, &e), 0);
        return imex_grants_use(&place, DOMAIN_A, &e);
}

static void fabric_lists(int rv, const char *state) {
        _cleanup_(freep) char *domains = xasprintf(
                ",\"domains\":[{\"owner\":{\"uid\":\"" DOMAIN_A
                "\"},\"assignments\":[{\"node\":\"n0\",\"index\":3,\"epoch\":1,\"claimUID\":\"" DAEMON_1
                "\",\"bootID\":\"" BOOT "\",\"state\":\"%s\"}]}]",
                state);
        api_fabric(CLIQUE, rv, "", domains);
        api_fabric_event();
}

/* failure: a claim is prepared -> its grant exists from before Prepare until Unprepare */
static void a_grant_exists_from_prepare_until_unprepare(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
        assert_int_equal(use(), IMEX_USE_NONE);
        assert_int_equal(op.answer, PENDING);
        daemon_ready();
        world_wait(&op, PREPARED);
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "granting");
        assert_int_equal(use(), IMEX_USE_PREPARED);
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        world_wait_note(DOMAIN_A, CLAIM_1, "");
        assert_int_equal(use(), IMEX_USE_NONE);
}

/* Until the thread is about to put a grant in place. */
static void hold_the_next_note(void) {
        w.disk_hangs = true;
        faults_hold("rename");
}

static void release_it(void) {
        faults_release();
        w.disk_hangs = false;
}

/* Between the grant and the CDI file the daemon must not be able to stop IMEX unnoticed. So the plugin must
 * notice after the grant a state that the daemon withdrew before it. */
/* failure: readiness is withdrawn before the grant is on disk -> no claim is prepared */
static void readiness_withdrawn_before_the_grant_is_durable_prepares_no_claim(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 20000 };
        daemon_comes(DAEMON_1);
        fabric_lists(1, "");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
        daemon_state(DAEMON_1, DOMAIN_A, true, "READY", READY_IN);
        hold_the_next_note();
        while (!faults_held())
                world_turn();
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "waiting");
        assert_int_equal(op.answer, PENDING);
        daemon_dies();
        release_it();
        world_turn();
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
        assert_int_equal(op.answer, PENDING);
        assert_null(world_cdi(CLAIM_1));
        daemon_writes_state(DAEMON_1, DOMAIN_A, true, "READY", READY_IN);
        world_wait(&op, PREPARED);
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "granting");
}

/* failure: a Prepare reaches its deadline -> its grant stays until the kubelet unprepares the claim */
static void a_waiting_grant_stays_until_unprepare(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 300 }, gone = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting"); /* written again, because the claim is recorded */
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        world_wait_note(DOMAIN_A, CLAIM_1, "");
        /* No daemon has started that would have removed it. */
        world_turn();
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        assert_int_equal(access(dir, F_OK), -1);
}

/* A Prepare that was about to succeed. */
/* failure: a Prepare is cancelled or fails -> its grant is waiting again, so the daemon may stop IMEX */
static void a_failed_or_cancelled_prepare_sets_its_grant_to_waiting(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 20000 }, failed = { 0 };
        struct err e;
        daemon_comes(DAEMON_1);
        fabric_lists(1, "");
        prepare(&op, "c1", CLAIM_1);
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
        grants_put(world_cd()->grants, DOMAIN_A, CLAIM_1, IMEX_GRANT_GRANTING);
        claims_cancelled(w.claims, &op, op.data); /* while that is being written */
        world_turn();
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
        /* The CDI file cannot be written. */
        daemon_writes_state(DAEMON_1, DOMAIN_A, true, "READY", READY_IN);
        _cleanup_(freep) char *aside = xasprintf("%s.aside", w.cdi_root);
        assert_int_equal(rename(w.cdi_root, aside), 0);
        assert_int_equal(file_replace(w.cdi_root, "x", 1, 0644, &e), 0);
        prepare(&failed, "c1", CLAIM_1);
        world_wait(&failed, FAILED);
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
        assert_int_equal(unlink(w.cdi_root), 0);
        assert_int_equal(rename(aside, w.cdi_root), 0);
}

/* The claim has everything except the device, so the daemon need not stay for it. */
static void a_claim_that_waits_for_another_claim_has_a_waiting_grant(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { .timeout_ms = 20000 };
        daemon_comes(DAEMON_1);
        fabric_lists(1, "");
        daemon_writes_state(DAEMON_1, DOMAIN_A, true, "READY", READY_IN);
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        assert_string_not_equal(world_note(DOMAIN_A, CLAIM_2), "granting");
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "granting");
}

/* failure: a claim is refused -> it gets no grant */
static void a_refused_claim_gets_no_grant(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_B, w.plugin_dir);
        api_domain("other", "b", DOMAIN_B, false);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_B, "");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        world_turn();
        assert_int_equal(access(dir, F_OK), -1);
}

/* failure: a killed plugin leaves stray or missing grants -> the next plugin corrects them from the
 * checkpoint */
static void grants_match_the_checkpoint_after_a_restart(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct err e;
        _cleanup_(freep) char *stray = xasprintf("domains/" DOMAIN_B "/grants/" STRAY);
        _cleanup_(freep) char *own = xasprintf("%s/domains/" DOMAIN_A "/grants/" CLAIM_1, w.plugin_dir);
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_stop(w.claims);
        assert_int_equal(file_remove(own, &e), 0);
        tree_put(w.plugin_dir, stray, "granting\n");
        world_start(BOOT);
        world_wait_note(DOMAIN_A, CLAIM_1, "granting");
        world_wait_note(DOMAIN_B, STRAY, "");
}

/* failure: the plugin is killed after it removed the last grant of a domain -> the next plugin removes the
 * empty folder */
static void an_empty_folder_of_grants_is_removed_at_a_restart(void **state) {
        struct err e;
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A "/grants", w.plugin_dir);
        daemon_ready();
        world_stop(w.claims);
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        world_start(BOOT);
        world_turn();
        assert_int_equal(access(dir, F_OK), -1);
        assert_int_equal(use(), IMEX_USE_NONE);
}

/* The process was killed while it granted the claim. */
/* failure: the plugin is killed while it grants a claim -> the grant is waiting after the restart */
static void an_unprepared_claim_has_a_waiting_grant_after_a_restart(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 300 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
        world_stop(w.claims);
        tree_put(w.plugin_dir, "domains/" DOMAIN_A "/grants/" CLAIM_1, "granting");
        assert_int_equal(use(), IMEX_USE_NONE); /* the process is dead */
        world_start(BOOT);
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
}

/* As during an update: the earlier process is about to write the CDI file. */
/* failure: a second plugin process starts while the first grants a claim -> the grant stays */
static void a_grant_of_a_living_process_is_not_changed_by_the_next_one(void **state) {
        struct dra_op op = { .timeout_ms = 300 };
        struct claims *first = w.claims;
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
        tree_put(w.plugin_dir, "domains/" DOMAIN_A "/grants/" CLAIM_1, "granting");
        struct claims *next = world_process(BOOT);
        world_turn();
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "granting");
        assert_int_equal(use(), IMEX_USE_GRANTING);
        world_stop(first);
        w.claims = next;
        uv_run(&w.loop, UV_RUN_ONCE); /* the next process looks again */
        world_wait_note(DOMAIN_A, CLAIM_1, "waiting");
}

/* Folders that cannot be opened, before and after the one with the stray grant. */
/* failure: the grants of one domain cannot be read -> the others are corrected, and it is read later */
static void an_unreadable_domain_hides_the_grants_of_no_other(void **state) {
        struct dra_op op = { .timeout_ms = 300 };
        struct err e;
        world_stop(w.claims);
        for (unsigned i = 0; i < 8; i++) {
                _cleanup_(freep) char *dir =
                        xasprintf("%s/domains/dddddddd-0000-4000-8000-00000000000%u", w.plugin_dir, i);
                _cleanup_(freep) char *link = file_join(dir, "grants");
                assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
                assert_int_equal(symlink("grants", link), 0);
        }
        tree_put(w.plugin_dir, "domains/" DOMAIN_B "/grants/" STRAY, "granting");
        world_start(BOOT);
        world_wait_note(DOMAIN_B, STRAY, "");
        _cleanup_(freep) char *repaired =
                xasprintf("%s/domains/dddddddd-0000-4000-8000-000000000000/grants", w.plugin_dir);
        assert_int_equal(unlink(repaired), 0);
        tree_put(repaired, STRAY, "granting");
        prepare(&op, "c1", CLAIM_1); /* the table changes */
        world_wait(&op, FAILED);
        world_wait_note("dddddddd-0000-4000-8000-000000000000", STRAY, "");
}

/* failure: a grant cannot be written -> the claim is not prepared until it can */
static void a_claim_without_a_writable_grant_is_not_prepared(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        struct err e;
        _cleanup_(freep) char *path = xasprintf("%s/domains/" DOMAIN_A "/grants", w.plugin_dir);
        daemon_ready();
        tree_put(w.plugin_dir, "domains/" DOMAIN_A "/grants", "in the way");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_non_null(
                strstr(op.msg, "n0: cannot write the grant of the claim into the folder of its IMEX domain"));
        assert_null(world_cdi(CLAIM_1));
        assert_int_equal(file_remove(path, &e), 0);
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "granting");
}

/* The daemon could not notice that the plugin that grants something is alive. */
static void without_its_lock_the_plugin_grants_nothing(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        struct err e;
        _cleanup_(freep) char *path = xasprintf("%s/domains/" IMEX_GRANTS_LOCK, w.plugin_dir);
        daemon_ready();
        assert_int_equal(file_mkdirs(path, 0755, &e), 0);
        tree_put(path, "x", "");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_non_null(
                strstr(op.msg, "n0: cannot write the grant of the claim into the folder of its IMEX domain"));
        assert_null(world_cdi(CLAIM_1));
        tree_remove(xstrdup(path));
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        assert_int_equal(use(), IMEX_USE_PREPARED);
}

/* ---- for the next daemon ---- */

/* failure: a daemon is replaced while claims are prepared -> the next daemon finds their grants */
static void the_next_daemon_gets_the_grants_of_prepared_claims(void **state) {
        (void)state;
        struct dra_op op = { 0 }, late = { .timeout_ms = 20000 };
        _cleanup_(freep) char *note = xasprintf("%s/domains/" DOMAIN_A "/grants/" CLAIM_1, w.plugin_dir);
        daemon_comes(DAEMON_1);
        fabric_lists(1, "");
        daemon_writes_state(DAEMON_1, DOMAIN_A, true, "READY", READY_IN);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        daemon_dies();
        /* The next daemon is prepared while its predecessor still runs, which removes the grants when it
         * ends. */
        api_daemon_claim("driver", NEXT, "");
        kubelet_prepare(w.claims, &late, "driver", "daemon-claim", NEXT);
        world_turn();
        assert_int_equal(late.answer, PENDING);
        assert_int_equal(unlink(note), 0);
        daemon_ends(DAEMON_1);
        while (late.answer == PENDING) {
                uv_run(&w.loop, UV_RUN_NOWAIT);
                world_turn();
        }
        assert_int_equal(late.answer, PREPARED);
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "granting");
}

/* failure: the folder of a domain is removed while claims are prepared -> the plugin writes their grants
 * again
 */
static void a_removed_folder_gets_the_grants_of_prepared_claims_again(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        tree_remove(xstrdup(dir));
        assert_int_equal(use(), IMEX_USE_NONE);
        world_wait_note(DOMAIN_A, CLAIM_1, "granting");
        assert_int_equal(use(), IMEX_USE_PREPARED);
}

static void a_daemon_claim_waits_until_the_grants_are_written(void **state) {
        (void)state;
        struct dra_op op = { 0 }, failed = { 0 };
        struct err e;
        _cleanup_(freep) char *folder = xasprintf("%s/domains/" DOMAIN_A "/grants", w.plugin_dir);
        daemon_comes(DAEMON_1);
        fabric_lists(1, "");
        daemon_writes_state(DAEMON_1, DOMAIN_A, true, "READY", READY_IN);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        daemon_dies();
        daemon_ends(DAEMON_1);
        tree_remove(xstrdup(folder));
        assert_int_equal(file_replace(folder, "x", 1, 0644, &e), 0);
        api_daemon_claim("driver", NEXT, "");
        kubelet_prepare(w.claims, &failed, "driver", "daemon-claim", NEXT);
        world_wait(&failed, FAILED);
        assert_non_null(
                strstr(failed.msg,
                       "n0: cannot write the grants of the claims that use IMEX here for its new daemon"));
        assert_int_equal(file_remove(folder, &e), 0);
        daemon_comes(NEXT);
        assert_string_equal(world_note(DOMAIN_A, CLAIM_1), "granting");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(a_grant_exists_from_prepare_until_unprepare),
                T(readiness_withdrawn_before_the_grant_is_durable_prepares_no_claim),
                T(a_waiting_grant_stays_until_unprepare),
                T(a_failed_or_cancelled_prepare_sets_its_grant_to_waiting),
                T(a_claim_that_waits_for_another_claim_has_a_waiting_grant),
                T(a_refused_claim_gets_no_grant),
                T(grants_match_the_checkpoint_after_a_restart),
                T(an_empty_folder_of_grants_is_removed_at_a_restart),
                T(an_unprepared_claim_has_a_waiting_grant_after_a_restart),
                T(a_grant_of_a_living_process_is_not_changed_by_the_next_one),
                T(an_unreadable_domain_hides_the_grants_of_no_other),
                T(a_claim_without_a_writable_grant_is_not_prepared),
                T(without_its_lock_the_plugin_grants_nothing),
                T(the_next_daemon_gets_the_grants_of_prepared_claims),
                T(a_removed_folder_gets_the_grants_of_prepared_claims_again),
                T(a_daemon_claim_waits_until_the_grants_are_written),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
