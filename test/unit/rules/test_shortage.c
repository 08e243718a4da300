/* SPDX-License-Identifier: Apache-2.0 */
/* The condition ChannelAvailable of a ComputeDomain whose pods wait for a channel device. */
#include "rules/shortage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "api/reasons.h"
#include "base/stderr.h"

static struct arena *arena;

static int setup(void **state) {
        arena = arena_new(1024);
        return 0;
}

static int teardown(void **state) {
        arena_free(arena);
        return 0;
}

#define FACTS(list, ...) ((struct shortage_facts){ .nodes = list, .n_nodes = ARRAY_LEN(list), __VA_ARGS__ })
#define OWN(...) .own = (const char *[]){ __VA_ARGS__ }, .n_own = ARRAY_LEN(((const char *[]){ __VA_ARGS__ }))

static void assert_reported(const struct shortage_facts *f, const char *reason, const char *message) {
        struct cd_condition c;
        assert_true(shortage_condition(f, arena, &c));
        assert_string_equal(c.type, CONDITION_CHANNEL_AVAILABLE);
        assert_string_equal(c.status, "False");
        assert_string_equal(c.reason, reason);
        assert_string_equal(c.message, message);
        assert_null(shortage_check(f, &c, arena));
}

static void assert_nothing(const struct shortage_facts *f) {
        struct cd_condition c;
        assert_false(shortage_condition(f, arena, &c));
}

#define USED(partition, rack)                                                                                \
        { partition, rack, 1, 1, true, NULL }
#define FREE(partition, rack)                                                                                \
        { partition, rack, 1, 0, true, NULL }
#define OFF(partition, rack)                                                                                 \
        { partition, rack, 1, 0, false, NULL }
#define WITHHELD(partition, rack, why)                                                                       \
        { partition, rack, 0, 0, true, why }

static void a_free_channel_is_nothing_to_report(void **state) {
        static const struct shortage_node nodes[] = { USED("c.1", "r1"), FREE("c.1", "r1") };
        assert_nothing(&FACTS(nodes));
        assert_nothing(&FACTS(nodes, .rack = "r1"));
        assert_nothing(&FACTS(nodes, OWN("c.1")));
}

/* failure: all channels are in use -> the ComputeDomain of a waiting pod has a condition with the counts */
static void channels_in_use_are_counted(void **state) {
        static const struct shortage_node nodes[] = { USED("c.1", "r1"),
                                                      USED("c.1", "r1"),
                                                      { "c.2", "r2", 16, 16, true, NULL } };
        assert_reported(&FACTS(nodes), REASON_NO_FREE_CHANNEL, "All channels are in use: 18 of 18");
        assert_reported(&FACTS(nodes, .rack = "r1"), REASON_NO_FREE_CHANNEL,
                        "All channels of rack r1 are in use: 2 of 2");
}

/* More claims than devices: the slice has just become smaller. */
static void a_device_is_not_counted_twice(void **state) {
        static const struct shortage_node nodes[] = { { "c.1", NULL, 1, 3, true, NULL }, OFF("c.1", NULL) };
        assert_reported(
                &FACTS(nodes), REASON_NO_FREE_CHANNEL,
                "No node that is Ready and not cordoned has a free channel: 1 of 2 channels are in use");
}

static void nodes_that_withhold_their_channel_are_counted_too(void **state) {
        static const struct shortage_node nodes[] = { USED("c.1", "r1"), WITHHELD("c.1", "r1", "FabricError"),
                                                      WITHHELD("c.1", "r1", "FabricError") };
        assert_reported(&FACTS(nodes), REASON_NO_FREE_CHANNEL,
                        "All channels are in use: 1 of 1; 2 nodes withhold their channel (FabricError)");
        assert_reported(&(struct shortage_facts){ .nodes = nodes, .n_nodes = 2 }, REASON_NO_FREE_CHANNEL,
                        "All channels are in use: 1 of 1; 1 node withholds its channel (FabricError)");
}

/* failure: all nodes withhold their channels -> the condition names the most frequent reason */
static void the_most_frequent_reason_of_withheld_channels_is_named(void **state) {
        static const struct shortage_node nodes[] = { WITHHELD("", "r1", "NoGPUs"),
                                                      WITHHELD("", "r1", "FabricError"),
                                                      WITHHELD("", "r2", "FabricError"),
                                                      WITHHELD("", "r2", NULL) };
        static const struct shortage_node reversed[] = { WITHHELD("", "r1", "FabricError"),
                                                         WITHHELD("", "r1", "NoGPUs") };
        assert_reported(&FACTS(nodes), REASON_NO_CHANNEL_OFFERED,
                        "No node offers a channel (FabricError): 3 of 4 nodes withhold it");
        assert_reported(&FACTS(nodes, .rack = "r1"), REASON_NO_CHANNEL_OFFERED,
                        "No node of rack r1 offers a channel (FabricError): 2 of 2 nodes withhold it");
        assert_reported(&FACTS(reversed), REASON_NO_CHANNEL_OFFERED,
                        "No node offers a channel (FabricError): 2 of 2 nodes withhold it");
        assert_reported(&(struct shortage_facts){ .nodes = nodes, .n_nodes = 1 }, REASON_NO_CHANNEL_OFFERED,
                        "No node offers a channel (NoGPUs): 1 of 1 nodes withholds it");
}

/* Not all of them are compared. */
static void more_reasons_than_the_catalogue_has_are_counted(void **state) {
        struct shortage_node nodes[40];
        char reasons[ARRAY_LEN(nodes)][4];
        for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
                snprintf(reasons[i], sizeof reasons[i], "R%02zu", i);
                nodes[i] = (struct shortage_node)WITHHELD("", "r1", reasons[i]);
        }
        assert_reported(&FACTS(nodes), REASON_NO_CHANNEL_OFFERED,
                        "No node offers a channel (R00): 40 of 40 nodes withhold it");
}

static void nodes_without_a_report_are_counted(void **state) {
        static const struct shortage_node nodes[] = { WITHHELD("", "", NULL) };
        assert_reported(&FACTS(nodes), REASON_NO_CHANNEL_OFFERED,
                        "No node offers a channel: 1 with a GPU, and none of them reports why");
        assert_reported(&FACTS(nodes, .rack = "r9"), REASON_NO_CHANNEL_OFFERED,
                        "No node of rack r9 offers a channel: 0 with a GPU, and none of them reports why");
}

/* failure: the partition of a ComputeDomain is full -> the condition names it, and that others have room */
static void a_full_partition_of_other_pods_is_named(void **state) {
        static const struct shortage_node nodes[] = { USED("c.1", "r1"), USED("c.1", "r1"), FREE("c.2", NULL),
                                                      USED("c.2", NULL) };
#define FULL "where pods of this ComputeDomain run: "
        assert_reported(&FACTS(nodes, OWN("c.1")), REASON_PARTITION_FULL,
                        "No channel is free on r1, " FULL "2 of 2 are in use, and 1 are free elsewhere");
        static const struct shortage_node last[] = { FREE("c.2", NULL), USED("c.1", "r1") };
        assert_reported(&FACTS(last, OWN("c.1")), REASON_PARTITION_FULL,
                        "No channel is free on r1, " FULL "1 of 1 are in use, and 1 are free elsewhere");
        assert_nothing(&FACTS(nodes, OWN("c.1", "c.2")));
        assert_nothing(&FACTS(nodes, OWN("")));
        assert_nothing(&FACTS(nodes, OWN("c.3")));
        static const struct shortage_node three[] = { USED("c.1", "r1"), USED("c.2", NULL),
                                                      FREE("c.3", NULL) };
        assert_reported(&FACTS(three, OWN("c.1", "c.2")), REASON_PARTITION_FULL,
                        "No channel is free on r1, c.2, " FULL "2 of 2 are in use, and 1 are free elsewhere");
}

static void only_the_first_racks_are_named(void **state) {
        static const struct shortage_node nodes[] = { USED("c.1", "r1"), USED("c.2", "r2"), USED("c.3", "r3"),
                                                      USED("c.4", "r4"), USED("c.5", "r5"), USED("c.6", "r6"),
                                                      USED("c.7", "r7"), FREE("c.8", "r8") };
        assert_reported(&FACTS(nodes, OWN("c.1", "c.2", "c.3", "c.4", "c.5", "c.6", "", "c.7")),
                        REASON_PARTITION_FULL,
                        "No channel is free on r1, r2, r3, r4, r5 and 2 more, " FULL
                        "7 of 7 are in use, and 1 are free elsewhere");
}

static void a_condition_that_is_false_fails_its_check(void **state) {
        static const struct shortage_node full[] = { USED("c.1", "r1") }, room[] = { FREE("c.1", "r1") },
                                          none[] = { WITHHELD("c.1", "r1", NULL) };
        struct cd_condition c = { .type = CONDITION_CHANNEL_AVAILABLE, .status = "False" };
        c.reason = REASON_NO_FREE_CHANNEL;
        assert_null(shortage_check(&FACTS(full), &c, arena));
        assert_string_equal(shortage_check(&FACTS(room), &c, arena), "1 channels are free");
        assert_string_equal(shortage_check(&FACTS(none), &c, arena), "no node offers a channel");
        c.reason = REASON_NO_CHANNEL_OFFERED;
        assert_null(shortage_check(&FACTS(none), &c, arena));
        assert_string_equal(shortage_check(&FACTS(full), &c, arena), "1 nodes offer a channel");
        c.reason = REASON_PARTITION_FULL;
        assert_string_equal(shortage_check(&FACTS(room, OWN("c.1")), &c, arena),
                            "1 channels are free in its partitions");
        assert_string_equal(shortage_check(&FACTS(full, OWN("c.1")), &c, arena),
                            "no channel is free elsewhere");
        assert_string_equal(shortage_check(&FACTS(full), &c, arena),
                            "no node of its partitions offers a channel");
        c.reason = NULL;
        assert_string_equal(shortage_check(&FACTS(full), &c, arena), "its reason is missing");
        c.status = "True";
        assert_non_null(shortage_check(&FACTS(full), &c, arena));
}

/* ---- when it is written ---- */

static const struct cd_condition in_use = { CONDITION_CHANNEL_AVAILABLE, "False", REASON_NO_FREE_CHANNEL,
                                            "All channels are in use: 18 of 18" },
                                 fewer = { CONDITION_CHANNEL_AVAILABLE, "False", REASON_NO_FREE_CHANNEL,
                                           "All channels are in use: 17 of 17" },
                                 withheld = {
                                         CONDITION_CHANNEL_AVAILABLE, "False", REASON_NO_CHANNEL_OFFERED,
                                         "No node offers a channel (FabricError): 3 of 4 nodes withhold it"
                                 };

static struct shortage_memory memory;

/* Returns the condition at this time, and checks when it is looked at again. */
static const struct cd_condition *at(int64_t now, const struct cd_condition *is,
                                     const struct cd_condition *was, int64_t recheck_s) {
        int64_t s;
        struct shortage_input in = { .waits = true, .is = is, .was = was, .may_change = true, .now = now };
        const struct cd_condition *c = shortage_settle(&memory, &in, &s);
        assert_int_equal(s, recheck_s);
        return c;
}

static int forget(void **state) {
        memory = (struct shortage_memory){ 0 };
        return 0;
}

static void a_pod_that_has_just_begun_to_wait_causes_no_look(void **state) {
        assert_false(shortage_is_due(&memory, 100));
        assert_null(at(100, NULL, NULL, SHORTAGE_LOOKS_S));
        assert_false(shortage_is_due(&memory, 104));
        assert_null(at(104, NULL, NULL, 1));
        assert_true(shortage_is_due(&memory, 105));
}

static void the_first_condition_is_written_when_it_has_lasted(void **state) {
        at(100, NULL, NULL, SHORTAGE_LOOKS_S);
        assert_null(at(105, &in_use, NULL, SHORTAGE_WAITS_S));
        assert_null(at(114, &in_use, NULL, 1));
        assert_ptr_equal(at(115, &in_use, NULL, SHORTAGE_SETTLES_S), &in_use);
}

/* failure: the counts of used channels change while pods wait -> the status is not written again */
static void a_change_of_a_count_keeps_the_message(void **state) {
        at(100, NULL, &in_use, SHORTAGE_LOOKS_S);
        assert_ptr_equal(at(105, &fewer, &in_use, SHORTAGE_SETTLES_S), &in_use);
        assert_ptr_equal(at(1000, &fewer, &in_use, SHORTAGE_SETTLES_S), &in_use);
}

/* failure: a channel becomes free and another pod takes it -> no ComputeDomain that waits is written */
static void a_class_that_lasts_for_a_moment_is_not_written(void **state) {
        at(100, NULL, &in_use, SHORTAGE_LOOKS_S);
        at(105, &in_use, &in_use, SHORTAGE_SETTLES_S);
        assert_ptr_equal(at(140, NULL, &in_use, SHORTAGE_SETTLES_S), &in_use);
        assert_ptr_equal(at(150, &in_use, &in_use, SHORTAGE_SETTLES_S), &in_use);
        assert_ptr_equal(at(171, NULL, &in_use, SHORTAGE_SETTLES_S), &in_use);
        assert_ptr_equal(at(200, NULL, &in_use, 1), &in_use);
        assert_null(at(201, NULL, &in_use, SHORTAGE_SETTLES_S));
}

static void another_class_replaces_it_when_it_has_lasted(void **state) {
        at(100, NULL, &in_use, SHORTAGE_LOOKS_S);
        assert_ptr_equal(at(105, &withheld, &in_use, SHORTAGE_SETTLES_S), &in_use);
        assert_ptr_equal(at(135, &withheld, &in_use, SHORTAGE_SETTLES_S), &withheld);
}

/* A new leader keeps what the previous one has written until it has looked. */
static void a_new_leader_keeps_the_condition(void **state) {
        assert_ptr_equal(at(100, NULL, &in_use, SHORTAGE_LOOKS_S), &in_use);
        assert_ptr_equal(at(105, &in_use, &in_use, SHORTAGE_SETTLES_S), &in_use);
}

static void the_condition_ends_when_no_pod_waits(void **state) {
        int64_t s = 7;
        at(100, NULL, &in_use, SHORTAGE_LOOKS_S);
        struct shortage_input in = { .was = &in_use, .now = 101 };
        assert_null(shortage_settle(&memory, &in, &s));
        assert_int_equal(s, 0);
        assert_int_equal(memory.waiting_since, 0);
}

/* failure: a thousand ComputeDomains wait for the same change -> their conditions are written one after
 * another
 */
static void a_change_waits_while_too_many_others_change(void **state) {
        int64_t s;
        at(100, NULL, NULL, SHORTAGE_LOOKS_S);
        at(105, &in_use, NULL, SHORTAGE_WAITS_S);
        struct shortage_input in = { .waits = true, .is = &in_use, .now = 120 };
        assert_null(shortage_settle(&memory, &in, &s));
        assert_int_equal(s, 1);
        assert_ptr_equal(at(121, &in_use, NULL, SHORTAGE_SETTLES_S), &in_use);
}

/* failure: the API server refuses the status -> the change stays decided, and counts once */
static void a_change_that_has_begun_begins_only_once(void **state) {
        int64_t s;
        at(100, NULL, NULL, SHORTAGE_LOOKS_S);
        at(105, &in_use, NULL, SHORTAGE_WAITS_S);
        assert_false(memory.changes);
        at(115, &in_use, NULL, SHORTAGE_SETTLES_S);
        assert_true(memory.changes);
        struct shortage_input in = { .waits = true, .is = &in_use, .now = 116 };
        assert_ptr_equal(shortage_settle(&memory, &in, &s), &in_use);
        assert_true(memory.changes);
        at(117, &in_use, &in_use, SHORTAGE_SETTLES_S);
        assert_false(memory.changes);
        /* The next change needs permission again. */
        at(120, &withheld, &in_use, SHORTAGE_SETTLES_S);
        in = (struct shortage_input){ .waits = true, .is = &withheld, .was = &in_use, .now = 150 };
        assert_ptr_equal(shortage_settle(&memory, &in, &s), &in_use);
        assert_false(memory.changes);
        at(151, &withheld, &in_use, SHORTAGE_SETTLES_S);
        assert_true(memory.changes);
        at(152, &fewer, &in_use, SHORTAGE_SETTLES_S);
        assert_false(memory.changes);
        at(160, NULL, &in_use, SHORTAGE_SETTLES_S);
        assert_null(at(190, NULL, &in_use, SHORTAGE_SETTLES_S));
        assert_true(memory.changes);
}

#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
#define S(t) cmocka_unit_test_setup(t, forget)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_free_channel_is_nothing_to_report),
                T(channels_in_use_are_counted),
                T(a_device_is_not_counted_twice),
                T(nodes_that_withhold_their_channel_are_counted_too),
                T(the_most_frequent_reason_of_withheld_channels_is_named),
                T(more_reasons_than_the_catalogue_has_are_counted),
                T(nodes_without_a_report_are_counted),
                T(a_full_partition_of_other_pods_is_named),
                T(only_the_first_racks_are_named),
                T(a_condition_that_is_false_fails_its_check),
                S(a_pod_that_has_just_begun_to_wait_causes_no_look),
                S(the_first_condition_is_written_when_it_has_lasted),
                S(a_change_of_a_count_keeps_the_message),
                S(a_class_that_lasts_for_a_moment_is_not_written),
                S(another_class_replaces_it_when_it_has_lasted),
                S(a_new_leader_keeps_the_condition),
                S(the_condition_ends_when_no_pod_waits),
                S(a_change_waits_while_too_many_others_change),
                S(a_change_that_has_begun_begins_only_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
