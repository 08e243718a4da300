/* SPDX-License-Identifier: Apache-2.0 */
/* The condition ChannelAssigned of a ComputeDomain. */
#include "rules/channel_condition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "api/reasons.h"

static struct arena *arena;

static int setup(void **state) {
        arena = arena_new(1024);
        return 0;
}

static int teardown(void **state) {
        arena_free(arena);
        return 0;
}

static void assert_condition(const struct own_channel *list, size_t n, const char *status, const char *reason,
                             const char *message) {
        struct cd_condition c;
        channel_condition(list, n, arena, &c);
        assert_string_equal(c.type, CONDITION_CHANNEL_ASSIGNED);
        assert_string_equal(c.status, status);
        assert_string_equal(c.reason, reason);
        assert_string_equal(c.message, message);
}

static void a_domain_without_claims_has_an_unknown_channel(void **state) {
        assert_condition(NULL, 0, "Unknown", REASON_NO_NODES, "No pod uses this ComputeDomain yet");
}

static void an_assigned_channel_is_listed_with_its_rack_or_partition(void **state) {
        static const struct own_channel list[] = { { "c.1", NULL, 7, NULL }, { "c.2", "rack-2", 0, NULL } };
        assert_condition(list, 1, "True", REASON_ASSIGNED, "channel 7 on c.1");
        assert_condition(list, 2, "True", REASON_ASSIGNED, "channel 7 on c.1; channel 0 on rack-2");
}

/* failure: a ComputeDomain lacks a channel in one of several partitions -> its condition lists that one first
 */
static void missing_channels_are_listed_first(void **state) {
        static const struct own_channel list[] = { { "", NULL, -1, NULL },
                                                   { "c.1", NULL, 4, NULL },
                                                   { "c.2", NULL, -1, "no channel is free" },
                                                   { "c.3", NULL, -1, NULL } };
#define NOWHERE "a node with a claim of it has no NVLink partition, so no channel can be assigned there"
        assert_condition(list, 1, "False", REASON_WAITING, NOWHERE);
        assert_condition(list + 1, 2, "False", REASON_WAITING,
                         "none on c.2 yet: no channel is free; channel 4 on c.1");
        assert_condition(list + 2, 1, "False", REASON_WAITING, "none on c.2 yet: no channel is free");
        assert_condition(list + 1, 3, "False", REASON_WAITING,
                         "none on c.2 yet: no channel is free; none on c.3 yet: the controller assigns it; "
                         "channel 4 on c.1");
        static const struct own_channel two[] = { { "", NULL, -1, NULL }, { "c.0", NULL, -1, "x" } };
        assert_condition(two, 2, "False", REASON_WAITING, NOWHERE "; none on c.0 yet: x");
}

static void five_partitions_are_listed_and_the_others_counted(void **state) {
        static const struct own_channel list[] = { { "c.1", NULL, 1, NULL },  { "c.2", NULL, 2, NULL },
                                                   { "c.3", NULL, -1, NULL }, { "c.4", NULL, 4, NULL },
                                                   { "c.5", NULL, 5, NULL },  { "c.6", NULL, 6, NULL },
                                                   { "c.7", NULL, 7, NULL } };
#define FIVE                                                                                                 \
        "none on c.3 yet: the controller assigns it; channel 1 on c.1; channel 2 on c.2; channel 4 on c.4; " \
        "channel 5 on c.5"
        assert_condition(list, 5, "False", REASON_WAITING, FIVE);
        assert_condition(list, 6, "False", REASON_WAITING, FIVE "; and 1 more");
        assert_condition(list, 7, "False", REASON_WAITING, FIVE "; and 2 more");
}

/* failure: a node with a claim withholds its devices -> the condition does not state that it has no partition
 */
static void a_partition_that_is_not_known_is_not_called_absent(void **state) {
        static const struct own_channel list[] = { { "", NULL, -1, NULL, .unknown = true } };
        assert_condition(list, 1, "False", REASON_WAITING,
                         "the NVLink partition of a node with a claim of it is not known: the node has no "
                         "ResourceSlice with channels");
        const struct own_channel two[] = { list[0], { "c.0", NULL, -1, "x" } };
        assert_condition(two, 2, "False", REASON_WAITING,
                         "the NVLink partition of a node with a claim of it is not known: the node has no "
                         "ResourceSlice with channels; none on c.0 yet: x");
}

#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_domain_without_claims_has_an_unknown_channel),
                T(an_assigned_channel_is_listed_with_its_rack_or_partition),
                T(missing_channels_are_listed_first),
                T(five_partitions_are_listed_and_the_others_counted),
                T(a_partition_that_is_not_known_is_not_called_absent),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
