/* SPDX-License-Identifier: Apache-2.0 */
/* When the controller allocates, reserves and releases a claim that pods on several nodes share. */
#include "rules/shared_claim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/mem.h"
#include "base/str.h"

enum { NOW = 1000 };

static struct arena *arena;

static int setup(void **state) {
        arena = arena_new(1024);
        return 0;
}

static int teardown(void **state) {
        arena_free(arena);
        return 0;
}

#define FACTS(...) ((struct shared_claim_facts){ .now = NOW, __VA_ARGS__ })
#define CLAIM(...) FACTS(.device = true, .lives = true, .finalizer = true, __VA_ARGS__)
#define CONSUMERS(list) .consumers = list, .n_consumers = ARRAY_LEN(list)
#define GROUPS(list) .groups = list, .n_groups = ARRAY_LEN(list)

static const struct claim_consumer pods[] = { { NULL, "pods", "p", "p" }, { NULL, "pods", "q", "q" } };
static const struct claim_consumer groups[] = { { CLAIM_GROUP_API, CLAIM_GROUP_RESOURCE, "g", "g" },
                                                { CLAIM_GROUP_API, CLAIM_GROUP_RESOURCE, "h", "h" } };

static struct shared_claim_decision decided(const struct shared_claim_facts f) {
        struct shared_claim_decision d;
        shared_claim_decide(&f, arena, &d);
        return d;
}

static void assert_step(enum shared_claim_step step, const struct shared_claim_facts f) {
        struct shared_claim_decision d = decided(f);
        assert_int_equal(d.step, step);
        assert_int_equal(d.recheck_s, 0);
}

static void assert_waits(int64_t seconds, const struct shared_claim_facts f) {
        struct shared_claim_decision d = decided(f);
        assert_int_equal(d.step, SHARED_CLAIM_KEEP);
        assert_int_equal(d.recheck_s, seconds);
}

static void a_claim_is_allocated_before_a_pod_uses_it(void **state) {
        assert_step(SHARED_CLAIM_ALLOCATE, CLAIM(.allocated = false));
        assert_step(SHARED_CLAIM_KEEP, CLAIM(.allocated = true));
        assert_step(SHARED_CLAIM_KEEP, CLAIM(.allocated = true, CONSUMERS(pods)));
}

static void without_a_device_or_a_ComputeDomain_nothing_is_written(void **state) {
        for (int allocated = 0; allocated < 2; allocated++) {
                assert_step(SHARED_CLAIM_KEEP, FACTS(.lives = true, .allocated = allocated, GROUPS(groups)));
                assert_step(SHARED_CLAIM_KEEP, FACTS(.device = true, .allocated = allocated, GROUPS(groups)));
        }
}

static void one_write_allocates_and_reserves(void **state) {
        struct shared_claim_decision d = decided(CLAIM(GROUPS(groups)));
        assert_int_equal(d.step, SHARED_CLAIM_ALLOCATE);
        assert_int_equal(d.n_reserved, 2);
}

static void a_reservation_keeps_the_others(void **state) {
        const struct claim_consumer list[] = { pods[0], groups[0], pods[1] };
        struct shared_claim_decision d = decided(CLAIM(.allocated = true, CONSUMERS(list), GROUPS(groups)));
        assert_int_equal(d.step, SHARED_CLAIM_RESERVE);
        assert_int_equal(d.n_reserved, 4);
        for (size_t i = 0; i < ARRAY_LEN(list); i++)
                assert_string_equal(d.reserved[i].uid, list[i].uid);
        assert_string_equal(d.reserved[3].uid, "h");
        assert_string_equal(d.reserved[3].api_group, CLAIM_GROUP_API);
}

static void a_reserved_claim_is_not_written_again(void **state) {
        assert_step(SHARED_CLAIM_KEEP, CLAIM(.allocated = true, CONSUMERS(groups), GROUPS(groups)));
}

/* failure: 256 pods use a claim -> no PodGroup is added */
static void a_full_claim_is_not_reserved(void **state) {
        struct claim_consumer list[CLAIM_PODS_MAX];
        char uids[CLAIM_PODS_MAX][8];
        for (int i = 0; i < CLAIM_PODS_MAX; i++) {
                snprintf(uids[i], sizeof uids[i], "%d", i);
                list[i] = (struct claim_consumer){ NULL, "pods", uids[i], uids[i] };
        }
        assert_step(SHARED_CLAIM_KEEP, CLAIM(.allocated = true, CONSUMERS(list), GROUPS(groups)));
        struct shared_claim_decision d = decided(CLAIM(.allocated = true, .consumers = list,
                                                       .n_consumers = CLAIM_PODS_MAX - 1, GROUPS(groups)));
        assert_int_equal(d.step, SHARED_CLAIM_RESERVE);
        assert_int_equal(d.n_reserved, CLAIM_PODS_MAX);
}

/* Each write wakes the gang for another attempt, which makes its back-off longer. */
static void a_removed_reservation_is_restored_after_three_seconds(void **state) {
        assert_waits(3, CLAIM(.allocated = true, .unreserved = NOW, GROUPS(groups)));
        assert_waits(1, CLAIM(.allocated = true, .unreserved = NOW - 2, GROUPS(groups)));
        assert_step(SHARED_CLAIM_RESERVE, CLAIM(.allocated = true, .unreserved = NOW - 3, GROUPS(groups)));
        assert_step(SHARED_CLAIM_KEEP,
                    CLAIM(.allocated = true, .unreserved = NOW, CONSUMERS(groups), GROUPS(groups)));
}

static void a_claim_is_allocated_again_after_a_pause(void **state) {
        assert_waits(3, CLAIM(.deallocated = NOW, .was_used = true));
        assert_step(SHARED_CLAIM_ALLOCATE, CLAIM(.deallocated = NOW - 3, .was_used = true));
        assert_waits(30, CLAIM(.deallocated = NOW));
        assert_waits(27, CLAIM(.deallocated = NOW - 3));
        assert_step(SHARED_CLAIM_ALLOCATE, CLAIM(.deallocated = NOW - 30));
        /* The scheduler has allocated it in the meantime. */
        assert_step(SHARED_CLAIM_KEEP, CLAIM(.allocated = true, .deallocated = NOW));
        assert_step(SHARED_CLAIM_RESERVE, CLAIM(.allocated = true, .deallocated = NOW, GROUPS(groups)));
}

static void a_deleted_claim_is_released_after_its_last_pod(void **state) {
        for (int lives = 0; lives < 2; lives++) {
                assert_step(SHARED_CLAIM_KEEP, FACTS(.deleted = true, .finalizer = true, .lives = lives,
                                                     .allocated = true, CONSUMERS(pods), GROUPS(groups)));
                assert_step(SHARED_CLAIM_RELEASE, FACTS(.deleted = true, .finalizer = true, .lives = lives,
                                                        .device = lives, .allocated = true));
                assert_step(SHARED_CLAIM_RELEASE, FACTS(.deleted = true, .finalizer = true, .lives = lives));
                assert_step(SHARED_CLAIM_KEEP, FACTS(.deleted = true, .lives = lives));
        }
}

/* ---- PodGroups that share a claim for one node ---- */

static const char *on_one_node(bool shares, const char *group, struct cd_channel channel) {
        const struct compute_domain cd = { .o.meta.name = "train", .channel = &channel };
        return shared_claim_on_one_node(&cd, "gang-claim", group, shares, arena);
}

/* failure: a PodGroup shares a claim for one node -> the text names claim, cause and remedy */
static void a_group_on_one_node_is_described_with_its_remedy(void **state) {
        static const char both[] = "recreate the PodGroup with the claim template shared";
        const struct cd_channel local = { .template_name = "local" },
                                named = { .template_name = "local", .claim_name = "named" },
                                all = { .template_name = "local",
                                        .claim_name = "named",
                                        .shared_template_name = "shared" };
        assert_non_null(strstr(on_one_node(true, NULL, all), both));
        assert_non_null(
                strstr(on_one_node(true, NULL, named), "recreate the PodGroup with ResourceClaim named"));
        assert_non_null(strstr(on_one_node(true, NULL, local), "spec.channel.sharedResourceClaimTemplate"));
        assert_non_null(strstr(on_one_node(true, NULL, local), "let each Pod name the claim template local"));
        assert_null(strstr(on_one_node(false, NULL, all), "shared"));
        assert_non_null(strstr(on_one_node(false, NULL, all), "let each Pod name the claim template local"));
        assert_non_null(strstr(on_one_node(true, NULL, all),
                               "ResourceClaim gang-claim, which the Pods of this "
                               "group share"));
        assert_non_null(strstr(on_one_node(true, NULL, all), "ComputeDomain 'train'"));
        assert_non_null(
                strstr(on_one_node(true, "gang", all), "PodGroup gang share ResourceClaim gang-claim"));
        assert_non_null(strstr(on_one_node(true, "gang", all), both));
}

/* ---- nodes that offer the device ---- */

static void assert_reach(const char *reason, enum shared_claim_reach reach, const char *status,
                         const char *was) {
        struct cd_condition conditions[] = {
                { .type = CONDITION_READY, .status = "True", .reason = REASON_NO_CHANNEL_OFFERED },
                { .type = CONDITION_SHARED_CLAIM_AVAILABLE, .status = status, .reason = was },
        };
        const struct compute_domain cd = { .conditions = conditions, .n_conditions = status ? 2 : 1 };
        const char *found = NULL, *message = NULL;
        assert_int_equal(shared_claim_is_reachable(&cd, reach, &found, &message), !reason);
        assert_true(streq(found, reason));
        assert_int_equal(message == NULL, !reason);
        assert_ptr_equal(shared_claim_condition(&cd), status ? &conditions[1] : NULL);
}

static void a_claim_is_reachable_if_a_node_offers_the_device(void **state) {
        assert_reach(NULL, SHARED_REACH_NODES, NULL, NULL);
        assert_reach(NULL, SHARED_REACH_NODES, "False", REASON_NO_CHANNEL_OFFERED);
        assert_reach(REASON_NO_CHANNEL_OFFERED, SHARED_REACH_NONE, NULL, NULL);
        assert_reach(REASON_NO_CHANNEL_OFFERED, SHARED_REACH_NONE, "True", "Available");
}

static void an_unknown_reach_leaves_the_condition(void **state) {
        assert_reach(NULL, SHARED_REACH_UNKNOWN, "True", "Available");
        assert_reach(REASON_NO_CHANNEL_OFFERED, SHARED_REACH_UNKNOWN, "False", REASON_NO_CHANNEL_OFFERED);
        assert_reach(REASON_SHARED_CLAIM_PENDING, SHARED_REACH_UNKNOWN, "False", REASON_SHARED_CLAIM_PENDING);
        assert_reach(REASON_SHARED_CLAIM_PENDING, SHARED_REACH_UNKNOWN, NULL, NULL);
}

/* ---- claims that are being deleted ---- */

static void a_terminating_claim_is_described_with_the_finalizers_of_others(void **state) {
        static const char *const finalizers[] = { CD_FINALIZER, "a.example.com/x", "b.example.com/y" };
        assert_string_equal(shared_claim_terminating("ns", "train", finalizers, 1, arena),
                            "ResourceClaim ns/train is being deleted. The driver creates it again when all pods "
                            "that use it have ended");
        const char *two = shared_claim_terminating("ns", "train", finalizers, 2, arena);
        assert_non_null(strstr(two, "have ended and these finalizers are removed: "));
        assert_non_null(strstr(two, "a.example.com/x"));
        assert_null(strstr(two, "b.example.com/y"));
        assert_null(strstr(two, CD_FINALIZER));
        assert_non_null(
                strstr(shared_claim_terminating("ns", "train", finalizers, 3, arena), "b.example.com/y"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_claim_is_allocated_before_a_pod_uses_it),
                T(without_a_device_or_a_ComputeDomain_nothing_is_written),
                T(one_write_allocates_and_reserves),
                T(a_reservation_keeps_the_others),
                T(a_reserved_claim_is_not_written_again),
                T(a_full_claim_is_not_reserved),
                T(a_removed_reservation_is_restored_after_three_seconds),
                T(a_claim_is_allocated_again_after_a_pause),
                T(a_deleted_claim_is_released_after_its_last_pod),
                T(a_group_on_one_node_is_described_with_its_remedy),
                T(a_claim_is_reachable_if_a_node_offers_the_device),
                T(an_unknown_reach_leaves_the_condition),
                T(a_terminating_claim_is_described_with_the_finalizers_of_others),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
