/* SPDX-License-Identifier: Apache-2.0 */
/* Why a node offers no devices with isolation by channel, and how long that lasts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "cd_plugin/withhold.h"

static struct facts facts;
static struct withhold_input in;
static struct offering got;

static int setup(void **state) {
        (void)state;
        facts = (struct facts){ .known = true,
                                .usable = true,
                                .reason = "",
                                .channel_count = 2048,
                                .fabric = { .kind = GPU_FABRIC_CLIQUE, .clique_id = "c.1" } };
        in = (struct withhold_input){ .facts = &facts,
                                      .own_channels = true,
                                      .toolkit = TOOLKIT_IGNORES,
                                      .toolkit_why = "/etc/x does not say so",
                                      .fabric_count = 2048 };
        return 0;
}

static void withheld(const char *reason, const char *part) {
        withhold_evaluate(&in, &got);
        assert_string_equal(got.reason, reason);
        if (!strstr(got.message, part))
                print_message("'%s' is not in: %s\n", part, got.message);
        assert_non_null(strstr(got.message, part));
        assert_int_equal(got.offered, !*reason);
        bool listed = !*reason;
        for (const char *const *r = withhold_channel_reasons; *r; r++)
                listed = listed || streq(*r, reason);
        assert_true(listed || !facts.usable);
}

/* failure: the container toolkit gives channels to any container -> channels are withheld, unless the values
 * trust it */
static void a_toolkit_that_gives_channels_withholds_them(void **state) {
        (void)state;
        withheld("", "");
        in.toolkit = TOOLKIT_GIVES;
        withheld("ToolkitGivesChannels", "/etc/x does not say so, so any container can get any channel");
        in.trust_toolkit = true;
        withheld("", "");
}

/* failure: a node has no container toolkit -> its channels are offered */
static void without_a_toolkit_devices_are_offered(void **state) {
        (void)state;
        in.toolkit = TOOLKIT_NOT_FOUND;
        withheld("", "");
}

/* failure: a node has another number of channels than its partition -> it withholds them */
static void a_node_with_another_channel_count_than_its_partition_withholds(void **state) {
        (void)state;
        in.counts_differ = true;
        facts.channel_count = 4096;
        withheld("ChannelCountDiffers",
                 "the driver has 4096 IMEX channels (NVreg_ImexChannelCount), but most nodes of its NVLink "
                 "partition have 2048");
}

/* failure: the host's nvidia-imex is not READY -> the reason is on the Node */
static void a_node_whose_IMEX_is_not_READY_withholds(void **state) {
        (void)state;
        in.imex_down = true;
        in.imex_why = "the host's nvidia-imex is UNAVAILABLE";
        withheld("HostIMEXNotUp", "the host's nvidia-imex is UNAVAILABLE, so pods could not use their "
                                  "channels here; the driver does not start nvidia-imex on hosts");
}

/* failure: a node's daemon has not joined the standing domain -> the channels are withheld with that reason
 * [standing] */
static void a_node_whose_daemon_has_not_joined_withholds(void **state) {
        (void)state;
        in.of_daemon = in.not_joined = in.terminating = true;
        withheld("IMEXDaemonTerminating", "the IMEX daemon of this node is terminating");
        in.terminating = false;
        in.imex_why = "the IMEX daemon of this node has not joined yet";
        withheld("IMEXNotJoined",
                 "leaves while it is cordoned: the IMEX daemon of this node has not joined yet");
        in.no_index = "It has room for 18 nodes";
        withheld("IMEXNoIndex",
                 "this node has no index in the IMEX domain of its NVLink partition: It has room for 18 "
                 "nodes (on the node: the IMEX daemon of this node has not joined yet)");
        in.not_joined = false; /* it is in the domain, but not yet in the fabric object */
        in.imex_down = true;
        in.imex_why = "IMEX daemon is STARTING";
        withheld("IMEXNotUp", "IMEX daemon is STARTING, so pods could not use their channels here: see the "
                              "log of the Pod of DaemonSet compute-domain-daemon");
}

/* failure: IMEX of a node has another version than most -> the reason names both versions */
static void a_node_whose_IMEX_has_another_version_withholds(void **state) {
        (void)state;
        in.versions_differ = true;
        in.imex_version = "575.1";
        in.fabric_imex = "580.2";
        withheld("IMEXVersionDiffers",
                 "nvidia-imex has version 575.1 on this node, but version 580.2 on most nodes of its NVLink "
                 "partition");
}

/* failure: a node has no partition, or only channel 0 -> it withholds its channels with that reason */
static void without_a_partition_or_channels_a_node_withholds(void **state) {
        (void)state;
        facts.channel_count = 1;
        withheld("NoOwnIMEXChannels", "the driver has 1 IMEX channels");
        facts.fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_NONE, .reason = "no GPU reports a fabric" };
        withheld("NoNVLinkClique", "no GPU reports a fabric");
}

static void with_a_shared_channel_only_the_facts_count(void **state) {
        (void)state;
        in.own_channels = false;
        in.toolkit = TOOLKIT_GIVES;
        in.counts_differ = in.imex_down = in.versions_differ = in.not_joined = true;
        facts.fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_NONE };
        facts.channel_count = 0;
        withheld("", "");
}

static void problems_of_the_driver_come_first(void **state) {
        (void)state;
        facts.usable = false;
        facts.reason = "DriverNotFound";
        in.toolkit = TOOLKIT_GIVES;
        withheld("DriverNotFound", "");
}

/* failure: the majority of a partition flaps -> a change counts only when it has lasted */
static void a_changed_majority_counts_when_it_has_lasted(void **state) {
        (void)state;
        struct withhold_steady s = { 0 };
        uint64_t due;
        assert_true(withhold_steady(&s, true, 1000, &due)); /* the first state counts at once */
        assert_int_equal(due, UINT64_MAX);
        assert_true(withhold_steady(&s, false, 2000, &due));
        assert_int_equal(due, 2000 + WITHHOLD_LASTS_MS);
        assert_true(withhold_steady(&s, false, 20000, &due));
        assert_int_equal(due, 2000 + WITHHOLD_LASTS_MS);
        assert_true(withhold_steady(&s, true, 21000, &due)); /* and back: its time starts again */
        assert_int_equal(due, UINT64_MAX);
        assert_true(withhold_steady(&s, false, 30000, &due));
        assert_true(withhold_steady(&s, false, 30000 + WITHHOLD_LASTS_MS - 1, &due));
        assert_false(withhold_steady(&s, false, 30000 + WITHHOLD_LASTS_MS, &due));
        assert_int_equal(due, UINT64_MAX);
        /* However often it changes, the devices change at most once in that time. */
        unsigned changes = 0;
        bool last = false;
        for (uint64_t now = 100000; now < 700000; now += 1000) {
                bool is = withhold_steady(&s, now / 7000 % 2, now, &due);
                changes += is != last;
                last = is;
        }
        assert_int_equal(changes, 0);
}

/* failure: IMEX of a node flaps -> channels are withheld soon, and offered when it is stable */
static void an_IMEX_that_flaps_is_withheld_soon_and_offered_when_it_is_stable(void **state) {
        (void)state;
        struct withhold_steady s = { .true_ms = WITHHOLD_DOWN_MS };
        uint64_t due;
        assert_false(withhold_steady(&s, false, 1000, &due));
        assert_false(withhold_steady(&s, true, 2000, &due)); /* as in a restart */
        assert_int_equal(due, 2000 + WITHHOLD_DOWN_MS);
        assert_false(withhold_steady(&s, false, 4000, &due));
        assert_int_equal(due, UINT64_MAX);
        assert_false(withhold_steady(&s, true, 5000, &due));
        assert_true(withhold_steady(&s, true, 5000 + WITHHOLD_DOWN_MS, &due));
        assert_true(withhold_steady(&s, false, 20000, &due));
        assert_int_equal(due, 20000 + WITHHOLD_LASTS_MS);
        assert_true(withhold_steady(&s, true, 40000, &due)); /* it was not stable */
        assert_true(withhold_steady(&s, false, 41000, &due));
        assert_true(withhold_steady(&s, false, 41000 + WITHHOLD_LASTS_MS - 1, &due));
        assert_false(withhold_steady(&s, false, 41000 + WITHHOLD_LASTS_MS, &due));
        /* A state that changes each second for five minutes has no effect. */
        for (uint64_t now = 100000; now < 400000; now += 1000)
                assert_false(withhold_steady(&s, now / 1000 % 2, now, &due));
}

int main(void) {
#define T(f) cmocka_unit_test_setup(f, setup)
        const struct CMUnitTest tests[] = {
                T(a_toolkit_that_gives_channels_withholds_them),
                T(without_a_toolkit_devices_are_offered),
                T(a_node_with_another_channel_count_than_its_partition_withholds),
                T(a_node_whose_IMEX_is_not_READY_withholds),
                T(a_node_whose_daemon_has_not_joined_withholds),
                T(a_node_whose_IMEX_has_another_version_withholds),
                T(an_IMEX_that_flaps_is_withheld_soon_and_offered_when_it_is_stable),
                T(without_a_partition_or_channels_a_node_withholds),
                T(with_a_shared_channel_only_the_facts_count),
                T(problems_of_the_driver_come_first),
                T(a_changed_majority_counts_when_it_has_lasted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
