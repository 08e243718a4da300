/* SPDX-License-Identifier: Apache-2.0 */
/* When a channel is released, how many there are, and what the fabric object reports. test_channels.c has the
 * assignments. */
#include "channels_world.h"

/* The other controller's clock is behind. The minute begins when this controller sees the mark and the
 * object. */
/* failure: another controller's clock is behind -> a release counts from when this controller saw it */
static void a_release_of_another_controller_counts_from_when_it_was_seen(void **state) {
        struct small *s = *state;
        int64_t seen = NOW - CHANNELS_QUARANTINE_S + 1;
        s->owners[0].lives = false;
        s->owners[0].confirmed = true;
        give(s, 1, A, NOW - 1000);
        s->f.leases_at = s->f.leases_before = s->nodes[0].alive_after = s->nodes[1].alive_after = NOW;
        s->f.complete_since = 1000;
        s->f.releasing_since = &seen;
        channels_decide(&s->f, s->a, &s->d);
        assert_int_equal(id_of(s, A), 1);
        assert_int_equal(s->d.recheck_s, 1);
        seen--;
        channels_decide(&s->f, s->a, &s->d);
        assert_int_equal(id_of(s, A), -1);
        /* The same applies to the first minute of a table with older Nodes. */
        s->nodes[0].stated = s->old.o.meta.created - CHANNELS_NEW_S - 1;
        assert_int_equal(channels_unreported_s(&s->f), 0);
        s->f.complete_since = NOW - 1;
        assert_int_equal(channels_unreported_s(&s->f), CHANNELS_QUARANTINE_S - 1);
}

/* From the deletion of the owner to the next owner, and what delays each step. */
/* failure: a node is off, deleted or silent -> its channels are free only when nothing can hold them */
static void a_channel_of_a_powered_off_or_force_deleted_node_waits_for_proof(void **state) {
        struct small *s = *state;
        s->owners[0].lives = false;
        give(s, 1, A, 0);
        decide(s);
        assert_int_equal(s->d.fabric.channels[0].releasing, NOW);
        s->channels[0].releasing = NOW;
        s->f.now = NOW + CHANNELS_QUARANTINE_S - 1;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_int_equal(s->d.recheck_s, 1);
        s->f.now++;
        decide(s); /* the lists of Leases are too old */
        assert_true(s->d.ask_leases);
        assert_int_equal(id_of(s, A), 1);
        s->f.leases_at = s->f.now;
        decide(s); /* one list of Leases proves no life */
        assert_true(s->d.ask_leases);
        s->f.leases_before = s->f.now - 5;
        s->nodes[0].alive_after = s->f.now - 5;
        s->nodes[1].alive_after = NOW + CHANNELS_LIFE_S; /* cut off since */
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_false(s->d.ask_leases);
        assert_int_equal(s->d.recheck_s, CHANNELS_RETRY_S);
        assert_non_null(
                strstr(condition_text(s, FABRIC_CHANNELS_HELD), "node node-2 has not renewed its Lease"));
        s->nodes[1].alive_after = s->f.now;
        s->f.stale = true;
        decide(s);
        assert_true(s->d.pause);
        assert_int_equal(id_of(s, A), 1);
        s->f.stale = false;
        decide(s);
        assert_int_equal(s->d.n_ask, 1);
        assert_int_equal(id_of(s, A), 1);
        s->owners[0].confirmed = true;
        want(&s->owners[1]);
        give(s, 2, "2", 0), give(s, 3, "3", 0), give(s, 4, "4", 0);
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        assert_int_equal(id_of(s, B), -1); /* not in the same write */
        assert_int_equal(s->d.waiting, 1);
}

/* failure: a pod is force-deleted, or its plugin is down -> the channel stays taken */
static void a_channel_that_a_node_holds_or_does_not_report_stays(void **state) {
        struct small *s = *state;
        static const char *const texts[] = { "node node-1 holds it", "node node-1 has no plugin",
                                             "node node-1 has no plugin" };
        s->owners[0].lives = false;
        s->owners[0].confirmed = true;
        give(s, 1, A, NOW - 1000);
        s->held[0] = (struct channel_report_hold){ 1, A };
        s->nodes[0].held = s->held;
        for (size_t i = 0; i < 3; i++) {
                s->nodes[0].n_held = i == 0;
                s->nodes[0].reported = i != 1;
                s->nodes[0].settled = i != 2;
                decide(s);
                assert_int_equal(id_of(s, A), 1);
                assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_HELD), texts[i]));
        }
        s->nodes[0].gone = true;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        /* A node whose slice the kubelet has deleted still belongs to the partition. */
        s->nodes[0].gone = s->nodes[0].states = false;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_int_equal(s->d.fabric.nodes, 2);
        s->nodes[0].moved = s->nodes[0].reported = s->nodes[0].settled = true;
        decide(s);
        assert_int_equal(s->d.fabric.nodes, 1);
        assert_int_equal(id_of(s, A), -1);
}

/* failure: a claim comes while its channel is being released -> the release ends */
static void a_claim_keeps_a_channel_and_ends_its_release(void **state) {
        struct small *s = *state;
        s->owners[0].confirmed = true;
        give(s, 1, A, NOW - 1000);
        s->owners[0].claimed = true;
        decide(s);
        assert_int_equal(s->d.fabric.channels[0].releasing, 0);
        assert_true(s->d.urgent);
        s->owners[0].lives = false; /* it is being deleted while pods use it */
        decide(s);
        assert_int_equal(s->d.fabric.channels[0].releasing, NOW - 1000);
}

/* failure: a cache is stale -> no channel is released, freed or removed */
static void a_stale_cache_ends_nothing(void **state) {
        struct small *s = *state;
        give(s, 1, A, 0);
        s->owners[0].lives = false;
        s->f.stale = true;
        decide(s);
        assert_int_equal(s->d.fabric.channels[0].releasing, 0);
        assert_true(s->d.pause);
        s->owners[0].ends = true; /* it cannot be revoked */
        decide(s);
        assert_int_equal(s->d.fabric.channels[0].releasing, NOW);
        s->nodes[0].gone = s->nodes[1].gone = true;
        decide(s);
        assert_int_equal(s->d.fabric.nodes, 2);
}

/* No other change queues the partition again when the caches are current. */
/* failure: only a stale cache casts doubt on the channels -> they are checked again when it is current */
static void a_doubt_from_a_stale_cache_is_checked_again(void **state) {
        struct small *s = *state;
        struct condition lost = { .type = FABRIC_CHANNELS_INCOMPLETE, .status = "True" };
        s->old.conditions = &lost;
        s->old.n_conditions = 1;
        want(&s->owners[0]);
        s->f.stale = true;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        assert_true(s->d.pause);
        s->f.stale = false;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_false(s->d.pause);
        s->old.n_conditions = 0;
        s->nodes[1].states = false;
        s->nodes[1].moved = true;
        s->f.stale = true;
        decide(s);
        assert_int_equal(s->d.fabric.nodes, 2);
        assert_true(s->d.pause);
}

/* failure: one namespace takes many channels -> it gets at most half, and a condition reports it [tenants] */
static void one_namespace_has_at_most_half_and_exhaustion_is_reported(void **state) {
        struct small *s = *state;
        s->owners[1].ns = s->owners[2].ns = "team-a";
        for (size_t i = 0; i < 3; i++)
                want(&s->owners[i]);
        decide(s); /* four channels can be assigned */
        assert_int_equal(s->d.n_assigned, 2);
        assert_int_equal(s->d.waiting, 1);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_EXHAUSTED), "their namespace has half"));
        /* all waiting ComputeDomains repeat the message */
        assert_null(strstr(condition_text(s, FABRIC_CHANNELS_EXHAUSTED), "team-a"));
        s->owners[1].ns = "team-b";
        s->nodes[0].count = s->nodes[1].count = 3;
        decide(s); /* two channels can be assigned */
        assert_int_equal(s->d.waiting, 1);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_EXHAUSTED), "All 2 channels"));
        s->nodes[0].count = s->nodes[1].count = 0;
        decide(s);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_EXHAUSTED), "has only IMEX channel 0"));
}

static void the_condition_counts_the_ComputeDomains_that_wait(void **state) {
        static const struct {
                int64_t count;
                const char *ns_of_c, *text;
        } rows[] = {
                { 2, "team-c", "are assigned, and 2 ComputeDomains wait for one." },
                { 3, "team-c", "are assigned, and 1 ComputeDomain waits for one." },
                { 3, "team-a", "2 ComputeDomains wait because their namespace" },
                { 5, "team-a", "1 ComputeDomain waits because their namespace" },
        };
        struct small *s = *state;
        for (size_t i = 0; i < 3; i++)
                want(&s->owners[i]);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                s->nodes[0].count = s->nodes[1].count = rows[i].count;
                s->owners[2].ns = rows[i].ns_of_c;
                s->owners[1].ns = i < 2 ? "team-b" : rows[i].ns_of_c;
                decide(s);
                if (!strstr(condition_text(s, FABRIC_CHANNELS_EXHAUSTED), rows[i].text))
                        fail_msg("row %zu: %s", i, condition_text(s, FABRIC_CHANNELS_EXHAUSTED));
        }
}

/* failure: clocks are wrong -> a channel is free only after two lists of Leases */
static void leases_are_listed_twice_before_a_channel_is_free(void **state) {
        struct small *s = *state;
        s->owners[0].lives = false;
        give(s, 1, A, NOW);
        decide(s);
        assert_false(s->d.ask_leases);
        assert_int_equal(s->d.recheck_s, CHANNELS_LIFE_S + 1);
        s->f.now = NOW + CHANNELS_LIFE_S + 1;
        decide(s);
        assert_true(s->d.ask_leases);
        s->f.leases_at = s->f.now;
        s->f.now += 15;
        decide(s);
        assert_true(s->d.ask_leases);
        s->f.leases_before = s->f.leases_at;
        s->f.leases_at = s->f.now;
        decide(s);
        assert_false(s->d.ask_leases);
        assert_int_equal(s->d.recheck_s, CHANNELS_QUARANTINE_S - CHANNELS_LIFE_S - 16);
}

/* failure: several namespaces have half of the channels -> idle channels of each are released [tenants] */
static void each_namespace_at_its_limit_has_idle_channels_released(void **state) {
        struct small *s = *state;
        static const char *const uids[] = { "a1", "a2", "a3", "b1", "b2", "b3" };
        struct channels_owner owners[ARRAY_LEN(uids)];
        s->nodes[0].count = s->nodes[1].count = 6;
        for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
                owners[i] = (struct channels_owner){ .uid = uids[i],
                                                     .ns = i < 3 ? "team-a" : "team-b",
                                                     .lives = true };
                if (i % 3 == 2) {
                        want(&owners[i]);
                        continue;
                }
                give(s, (int64_t)i + 1, uids[i], 0);
                s->channels[s->old.n_channels - 1].owner.ns = owners[i].ns;
        }
        s->f.owners = owners;
        s->f.n_owners = ARRAY_LEN(owners);
        decide(s);
        assert_int_equal(s->d.waiting, 2);
        assert_int_equal(s->d.fabric.channels[0].releasing, NOW);
        assert_int_equal(s->d.fabric.channels[1].releasing, 0);
        assert_int_equal(s->d.fabric.channels[2].releasing, NOW);
        assert_int_equal(s->d.fabric.channels[3].releasing, 0);
}

/* failure: no channel is free -> an idle one is released */
static void an_idle_channel_is_released_when_none_is_free(void **state) {
        struct small *s = *state;
        s->nodes[0].count = s->nodes[1].count = 2;
        give(s, 1, A, 0);
        want(&s->owners[1]);
        s->held[0] = (struct channel_report_hold){ 1, A };
        s->nodes[0].held = s->held;
        s->nodes[0].n_held = 1;
        decide(s);
        assert_int_equal(s->d.fabric.channels[0].releasing, 0); /* it is in use */
        s->nodes[0].n_held = 0;
        decide(s);
        assert_int_equal(s->d.fabric.channels[0].releasing, NOW);
        assert_int_equal(s->d.waiting, 1);
        s->owners[0].claimed = true;
        decide(s);
        assert_int_equal(s->d.fabric.channels[0].releasing, 0);
}

/* failure: nodes have different numbers of channels -> that of most nodes counts */
static void most_nodes_decide_how_many_channels_there_are(void **state) {
        struct small *s = *state;
        s->nodes[1].count = 9;
        decide(s);
        assert_int_equal(s->d.fabric.channel_count, 5); /* the value so far */
        assert_non_null(strstr(condition_text(s, FABRIC_NODES_DIFFER), "node-2"));
        s->old.channel_count = 0;
        decide(s);
        assert_int_equal(s->d.fabric.channel_count, 5);
        s->nodes[0].count = 9;
        decide(s);
        assert_int_equal(s->d.fabric.channel_count, 9);
        assert_string_equal(condition_text(s, FABRIC_NODES_DIFFER), "");
}

/* failure: nodes have different versions of IMEX -> that of most nodes counts, and the others are named */
static void most_nodes_decide_the_imex_version_of_the_partition(void **state) {
        struct small *s = *state;
        decide(s);
        assert_null(s->d.fabric.imex_version); /* older plugins report none */
        assert_int_equal(s->d.step, CHANNELS_KEEP);
        s->nodes[1].imex = "580.2";
        decide(s);
        assert_string_equal(s->d.fabric.imex_version, "580.2");
        assert_int_equal(s->d.step, CHANNELS_PATCH);
        assert_string_equal(condition_text(s, FABRIC_NODES_DIFFER), "");
        s->nodes[0].imex = "575.1";
        s->old.imex_version = "580.2";
        decide(s);
        assert_string_equal(s->d.fabric.imex_version, "580.2"); /* equally many nodes report each, so the
                                                                   value so far counts */
        assert_string_equal(condition_text(s, FABRIC_NODES_DIFFER),
                            "Most nodes have nvidia-imex 580.2, but node-1 (575.1) have another version. "
                            "Those nodes offer no channels until the version is the same");
        s->old.imex_version = "570.9"; /* which no node has any more */
        decide(s);
        assert_string_equal(s->d.fabric.imex_version, "575.1");
        s->nodes[1].count = 9;
        decide(s);
        assert_non_null(strstr(condition_text(s, FABRIC_NODES_DIFFER),
                               "NVreg_ImexChannelCount is the same. Most nodes have nvidia-imex"));
        s->nodes[0].imex = s->nodes[1].imex = NULL; /* plugins of an earlier version, after a rollback */
        decide(s);
        assert_string_equal(s->d.fabric.imex_version, "570.9");
}

/* failure: nodes of a partition state different racks -> the rack keeps its name [racks] */
static void a_node_does_not_rename_the_rack_of_another(void **state) {
        struct small *s = *state;
        s->old.rack = "rack-b";
        s->nodes[0].rack = "rack-a";
        s->nodes[1].rack = "rack-b";
        decide(s);
        assert_string_equal(s->d.fabric.rack, "rack-b");
}

/* failure: a node withholds its channels -> the fabric object names it with the reason */
static void withholding_nodes_are_named_with_the_reason(void **state) {
        struct small *s = *state;
        decide(s);
        assert_string_equal(condition_text(s, FABRIC_NODES_WITHHOLD), "");
        s->nodes[0].withheld = "HostIMEXNotUp";
        s->nodes[1].withheld = "ToolkitGivesChannels";
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_PATCH);
        assert_non_null(strstr(condition_text(s, FABRIC_NODES_WITHHOLD),
                               ": node-1 (HostIMEXNotUp), node-2 (ToolkitGivesChannels)"));
        /* This does not affect the assignment of channels. */
        want(&s->owners[0]);
        decide(s);
        assert_int_equal(id_of(s, A), 1);
}

/* failure: a partition is removed permanently -> its fabric object is deleted after a day */
static void an_empty_fabric_object_is_deleted_after_a_day(void **state) {
        struct small *s = *state;
        s->nodes[0].gone = s->nodes[1].gone = true;
        s->f.n_owners = 0;
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_PATCH);
        assert_string_equal(s->d.fabric.empty_since, "1970-01-12T13:46:40Z");
        assert_int_equal(s->d.recheck_s, CHANNELS_EMPTY_S);
        s->old.empty_since = s->d.fabric.empty_since;
        s->f.now += CHANNELS_EMPTY_S;
        s->f.stale = true;
        decide(s);
        assert_int_not_equal(s->d.step, CHANNELS_DELETE);
        s->f.stale = false;
        s->old.n_members = 0;
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_DELETE);
        give(s, 1, A, 0);
        decide(s);
        assert_int_not_equal(s->d.step, CHANNELS_DELETE);
        s->old.n_channels = 0;
        s->old.empty_since = "tomorrow";
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_PATCH);
        s->nodes[0].gone = false;
        decide(s);
        assert_null(s->d.fabric.empty_since);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                RULE(a_release_of_another_controller_counts_from_when_it_was_seen),
                RULE(a_channel_of_a_powered_off_or_force_deleted_node_waits_for_proof),
                RULE(a_channel_that_a_node_holds_or_does_not_report_stays),
                RULE(a_claim_keeps_a_channel_and_ends_its_release),
                RULE(a_stale_cache_ends_nothing),
                RULE(a_doubt_from_a_stale_cache_is_checked_again),
                RULE(one_namespace_has_at_most_half_and_exhaustion_is_reported),
                RULE(the_condition_counts_the_ComputeDomains_that_wait),
                RULE(leases_are_listed_twice_before_a_channel_is_free),
                RULE(each_namespace_at_its_limit_has_idle_channels_released),
                RULE(an_idle_channel_is_released_when_none_is_free),
                RULE(most_nodes_decide_how_many_channels_there_are),
                RULE(most_nodes_decide_the_imex_version_of_the_partition),
                RULE(a_node_does_not_rename_the_rack_of_another),
                RULE(withholding_nodes_are_named_with_the_reason),
                RULE(an_empty_fabric_object_is_deleted_after_a_day),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
