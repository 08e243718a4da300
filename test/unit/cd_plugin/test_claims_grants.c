/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever runs IMEX for a domain can see who uses it, or is about to. */
#include "fake_world.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define STRAY "c0000000-0000-4000-8000-00000000000f"

static bool noted(const char *domain, const char *claim) {
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s/grants/%s", w.plugin_dir, domain, claim);
        return access(path, F_OK) == 0;
}

static void wait_for_note(const char *domain, const char *claim, bool there) {
        for (int i = 0; i < 5000 && noted(domain, claim) != there; i++) {
                world_turn();
                usleep(1000);
        }
        assert_int_equal(noted(domain, claim), there);
}

static void claim_is_noted_before_readiness_is_judged_and_until_it_is_unprepared(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 };
        prepare(&op, "c1", CLAIM_1);
        wait_for_note(DOMAIN_A, CLAIM_1, true);
        assert_int_equal(op.answer, PENDING);
        daemon_ready();
        world_wait(&op, PREPARED);
        assert_true(noted(DOMAIN_A, CLAIM_1));
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        wait_for_note(DOMAIN_A, CLAIM_1, false);
}

static void claim_that_waits_is_noted_until_the_kubelet_gives_it_up(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 300 }, gone = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_true(noted(DOMAIN_A, CLAIM_1)); /* it comes again, as it is recorded */
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        wait_for_note(DOMAIN_A, CLAIM_1, false);
        /* No daemon has come that would have removed it. */
        world_turn();
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        assert_int_equal(access(dir, F_OK), -1);
}

static void claim_that_is_refused_is_not_noted(void **state) {
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

static void notes_are_made_equal_to_the_checkpoint_at_the_start(void **state) {
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
        tree_put(w.plugin_dir, stray, "");
        world_start(BOOT);
        wait_for_note(DOMAIN_A, CLAIM_1, true);
        wait_for_note(DOMAIN_B, STRAY, false);
}

static void claim_that_cannot_be_noted_is_not_prepared_until_it_can(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        struct err e;
        _cleanup_(freep) char *path = xasprintf("%s/domains/" DOMAIN_A "/grants", w.plugin_dir);
        daemon_ready();
        tree_put(w.plugin_dir, "domains/" DOMAIN_A "/grants", "in the way");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_non_null(
                strstr(op.msg, "n0: the claim cannot be noted in the folder of its IMEX domain, under "));
        assert_null(world_cdi(CLAIM_1));
        assert_int_equal(file_remove(path, &e), 0);
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        assert_true(noted(DOMAIN_A, CLAIM_1));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(claim_is_noted_before_readiness_is_judged_and_until_it_is_unprepared),
                T(claim_that_waits_is_noted_until_the_kubelet_gives_it_up),
                T(claim_that_is_refused_is_not_noted),
                T(notes_are_made_equal_to_the_checkpoint_at_the_start),
                T(claim_that_cannot_be_noted_is_not_prepared_until_it_can),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
