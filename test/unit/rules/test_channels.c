/* SPDX-License-Identifier: Apache-2.0 */
/* Which ComputeDomain gets which channel. test_channels_bounds.c tests the rule at its limits,
 * test_channels_histories.c in random histories. */
#include "channels_world.h"

/* failure: a decision about channels would be wrong -> it is not written, and DecisionWrong reports it */
static void the_check_finds_every_wrong_channel(void **state) {
        struct small *s = *state;
        give(s, 3, B, 0);
        want(&s->owners[0]);
        want(&s->owners[1]);
        decide(s);
        const struct channels_decision right = s->d;
        assert_int_equal(id_of(s, A), 1);

        s->d.fabric.channels[0].id = 0;
        assert_broken(s, "has channel 0");
        s->d.fabric.channels[0].id = FABRIC_CHANNELS_MAX;
        assert_broken(s, "has channel ");
        s->d.fabric.channels[0].id = 1;

        s->d.assigned[0].id = 2;
        assert_broken(s, "without an entry");
        s->d.assigned[0].id = s->d.fabric.channels[0].id = 3;
        assert_broken(s, "channel 3 of ComputeDomain " B " is assigned to " A);
        s->d.assigned[0].id = s->d.fabric.channels[0].id = 1;

        s->held[0] = (struct channel_report_hold){ 1, C };
        s->nodes[1].held = s->held;
        s->nodes[1].n_held = 1;
        assert_broken(s, "channel 1 of ComputeDomain " C " is assigned to " A);
        s->nodes[1].gone = true;
        assert_null(channels_check(&s->f, &s->d, s->a));

        s->d.fabric.n_channels = 1; /* without B's */
        assert_broken(s, "channel 3 of ComputeDomain " B " is freed before its release");
        s->channels[0].releasing = NOW - 1;
        assert_null(channels_check(&s->f, &s->d, s->a));
        s->channels[0].releasing = 0;
        s->old.table_of = "another object";
        assert_null(channels_check(&s->f, &s->d, s->a));
        s->old.table_of = OBJECT;
        s->d = right;
        assert_null(channels_check(&s->f, &s->d, s->a));
}

static void a_decision_that_fails_its_check_leaves_the_object_as_it_is(void **state) {
        struct small *s = *state;
        give(s, 3, B, 0);
        channels_keep(&s->f, "two owners", s->a, &s->d);
        assert_int_equal(s->d.step, CHANNELS_PATCH);
        assert_string_equal(condition_text(s, "DecisionWrong"), "two owners");
        assert_int_equal(id_of(s, B), 3);
        s->old.conditions = s->d.fabric.conditions;
        s->old.n_conditions = s->d.fabric.n_conditions;
        channels_keep(&s->f, "two owners", s->a, &s->d);
        assert_int_equal(s->d.step, CHANNELS_KEEP);
        assert_int_equal(s->d.fabric.n_conditions, 1);
        s->f.old = NULL; /* and none is created */
        channels_keep(&s->f, "two owners", s->a, &s->d);
        assert_int_equal(s->d.step, CHANNELS_KEEP);
        decide(s);
        assert_string_equal(condition_text(s, "DecisionWrong"), "");
}

/* failure: two ComputeDomains share a partition -> each gets its own channel, and never 0 */
static void each_domain_gets_its_own_channel_and_never_0(void **state) {
        struct small *s = *state;
        want(&s->owners[0]);
        want(&s->owners[1]);
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_PATCH);
        assert_true(s->d.urgent);
        assert_int_equal(s->d.n_assigned, 2);
        assert_int_equal(id_of(s, A), 1);
        assert_int_equal(id_of(s, B), 2);
        assert_int_equal(id_of(s, C), -1);
        assert_int_equal(s->d.fabric.next, 3);
        assert_int_equal(s->d.fabric.channels_in_use, 2);
        assert_string_equal(s->d.fabric.channels[0].owner.name, "train");
}

static void without_changes_nothing_is_written(void **state) {
        struct small *s = *state;
        give(s, 3, A, 0);
        want(&s->owners[0]);
        s->channels[0].owner.ns = "team-a";
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_KEEP);
        assert_int_equal(s->d.n_ask, 0);
        assert_false(s->d.ask_leases);
        assert_int_equal(s->d.recheck_s, 0);
}

static void ids_are_reused_as_late_as_possible(void **state) {
        struct small *s = *state;
        give(s, 1, B, 0);
        s->old.next = 4;
        want(&s->owners[0]);
        want(&s->owners[2]);
        decide(s);
        assert_int_equal(id_of(s, A), 4);
        assert_int_equal(id_of(s, C), 2);
}

/* The fabric object of a new partition exists before any channel is assigned. */
/* failure: a new rack has a dead node -> channels are assigned without it */
static void a_new_partition_gets_its_object_first_and_waits_for_no_node(void **state) {
        struct small *s = *state;
        want(&s->owners[0]);
        s->f.old = NULL;
        s->nodes[0].uid = s->nodes[1].uid = "";
        s->nodes[1].reported = false;
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_CREATE);
        assert_int_equal(s->d.fabric.n_channels, 0);
        assert_int_equal(s->d.waiting, 1);
        s->f.old = &s->old;
        s->old.table_of = NULL;
        s->old.o.meta.created = NOW - 1;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_string_equal(s->d.fabric.table_of, OBJECT);
        assert_string_equal(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "");
}

/* The node was cut off before somebody deleted the table that it knows, and its Pod and claims were
 * force-deleted. */
/* failure: a cut-off node is silent and the fabric object is lost -> nothing is assigned without it [etcd] */
static void the_table_waits_for_a_silent_node_that_is_older_than_the_object(void **state) {
        struct small *s = *state;
        want(&s->owners[0]);
        s->old.table_of = NULL;
        s->old.o.meta.created = NOW - 1;
        s->nodes[1].reported = false;
        s->nodes[1].uid = NULL;
        s->nodes[1].stated = NOW - 1 - CHANNELS_NEW_S; /* as new as the fabric */
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        s->nodes[1].stated--;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "node-2"));
        s->nodes[1].gone = true;
        s->f.now += CHANNELS_QUARANTINE_S;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
}

/* The same, and its plugin reports to the new table before the controller sees the node's sign. */
static void a_new_table_waits_although_all_nodes_have_reported_to_it(void **state) {
        struct small *s = *state;
        want(&s->owners[0]);
        s->old.table_of = NULL;
        s->old.o.meta.created = NOW - 1;
        s->nodes[1].stated = NOW - 2 - CHANNELS_NEW_S;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "deleted Nodes"));
        s->f.remembers = true; /* the controller knows the entries of the previous object */
        decide(s);
        assert_int_equal(id_of(s, A), 1);
}

/* A Node, its Pods and its claims were deleted while no controller was leader, and so was the object. The
 * node may still run its containers. */
/* failure: Node and fabric object are deleted while no controller leads -> no channel is assigned for a
 * minute [etcd] */
static void a_lost_list_of_channels_without_memory_assigns_nothing_for_a_minute(void **state) {
        struct small *s = *state;
        want(&s->owners[0]);
        s->owners[0].oldest = NOW - 3;
        s->old.table_of = NULL;
        s->old.o.meta.created = NOW - 1;
        s->nodes[0].stated = NOW - 1 - CHANNELS_NEW_S;
        decide(s);
        assert_int_equal(id_of(s, A), 1); /* the partition is new */
        s->nodes[0].stated--;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        assert_non_null(
                strstr(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "may still run on deleted Nodes"));
        assert_int_equal(s->d.recheck_s, CHANNELS_QUARANTINE_S - 1);
        s->f.remembers = true;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        s->f.remembers = false;
        s->f.now = s->old.o.meta.created + CHANNELS_QUARANTINE_S;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_string_equal(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "");
}

/* The previous table lacked the channel that the Node's plugin prepared last, because the controller had read
 * the table before. */
static void a_new_table_waits_for_deleted_nodes_although_the_previous_one_is_known(void **state) {
        struct small *s = *state;
        want(&s->owners[0]);
        s->old.table_of = NULL;
        s->old.o.meta.created = NOW - 1;
        s->f.remembers = true;
        s->f.vanished_s = 17;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "at most a minute"));
        assert_int_equal(s->d.recheck_s, 17);
        s->f.vanished_s = 0;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_string_equal(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "");
}

/* Until the plugins have noticed the restore, their Pods show the reports of the backup, and these name the
 * table. */
/* failure: the version of the fabric object goes back -> no channel is assigned for three minutes [etcd] */
static void a_restored_table_waits_until_all_plugins_have_noticed_it(void **state) {
        struct small *s = *state;
        want(&s->owners[0]);
        give(s, 3, B, NOW - 1000);
        s->owners[1].lives = false;
        s->owners[1].confirmed = true;
        s->f.restored_s = 99;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        assert_int_equal(id_of(s, B), 3);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "have noticed"));
        assert_int_equal(s->d.recheck_s, 99);
        s->f.restored_s = 0;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_int_equal(id_of(s, B), -1);
        assert_string_equal(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "");
}

/* failure: a node holds a channel that the fabric object lacks -> the node counts [etcd] */
static void a_held_channel_counts_more_than_the_fabric_object(void **state) {
        struct small *s = *state;
        s->held[0] = (struct channel_report_hold){ 1, B };
        s->nodes[1].held = s->held;
        s->nodes[1].n_held = 1;
        want(&s->owners[0]);
        want(&s->owners[1]);
        decide(s);
        assert_int_equal(id_of(s, B), 1);
        assert_int_equal(id_of(s, A), 2);
}

/* A machine that was off returns, and for a second its Pod reports the channels that it held before. */
/* failure: a powered-off node returns with an old report -> it takes no channel from its owner */
static void an_old_report_takes_no_channel_from_its_owner(void **state) {
        struct small *s = *state;
        give(s, 1, A, 0);
        want(&s->owners[0]);
        want(&s->owners[1]);
        s->held[0] = (struct channel_report_hold){ 1, B };
        s->nodes[1].held = s->held;
        s->nodes[1].n_held = 1;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_int_equal(id_of(s, B), 2);
}

/* The entry from that report is removed when no node reports it any more, although its owner waits for a
 * channel. While it counted for the owner's namespace, the owner might get no other channel. */
/* failure: an entry comes from an old report -> it is removed although its owner waits for a channel */
static void an_entry_of_an_old_report_is_removed_while_its_owner_waits(void **state) {
        struct small *s = *state;
        struct fabric_channel was[] = { { 1, { CD_KIND, "team-a", "a", A }, 0 },
                                        { 1, { CD_KIND, "team-b", "b", B }, NOW - CHANNELS_QUARANTINE_S } };
        want(&s->owners[0]);
        want(&s->owners[1]);
        s->old.channels = was;
        s->old.n_channels = 2;
        s->nodes[0].alive_after = s->nodes[1].alive_after = NOW;
        decide(s);
        assert_int_equal(s->d.fabric.n_channels, 2);
        assert_int_equal(id_of(s, A), 1);
        assert_int_equal(id_of(s, B), 2);
        was[1].releasing++; /* not before the minute has passed */
        decide(s);
        assert_int_equal(s->d.fabric.n_channels, 3);
        was[1].releasing--;
        s->nodes[1].alive_after = 0; /* and not before each node has shown life */
        decide(s);
        assert_int_equal(s->d.fabric.n_channels, 3);
}

/* The same when the table is lost, too, in either order of the nodes. */
/* failure: two nodes report one channel after the list was lost -> the running plugin counts */
static void the_report_of_a_running_plugin_counts_more(void **state) {
        struct small *s = *state;
        struct channel_report_hold now = { 1, A };
        want(&s->owners[0]);
        want(&s->owners[1]);
        s->old.table_of = C;
        s->held[0] = (struct channel_report_hold){ 1, B };
        s->nodes[0].held = s->held;
        s->nodes[0].n_held = 1;
        s->nodes[0].settled = false;
        s->nodes[1].held = &now;
        s->nodes[1].n_held = 1;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_int_equal(id_of(s, B), 2); /* for its future pods */
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(s->d.fabric.channels[i].releasing != 0,
                                 streq(s->d.fabric.channels[i].owner.uid, B));
}

/* Two plugins seem to run, as a Pod does for a while after its node was cut off. */
/* failure: two running plugins report one channel -> the one that knows the fabric object counts */
static void a_running_plugin_that_knows_the_object_counts_more(void **state) {
        struct small *s = *state;
        struct channel_report_hold now = { 1, A };
        want(&s->owners[0]);
        want(&s->owners[1]);
        s->old.table_of = C;
        s->held[0] = (struct channel_report_hold){ 1, B };
        s->nodes[0].held = s->held;
        s->nodes[0].n_held = 1;
        s->nodes[0].uid = C; /* the previous object */
        s->nodes[1].held = &now;
        s->nodes[1].n_held = 1;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(s->d.fabric.channels[i].releasing != 0,
                                 streq(s->d.fabric.channels[i].owner.uid, B));
}

/* failure: two equal reports name one channel -> neither counts */
static void two_equal_reports_of_one_channel_do_not_count(void **state) {
        struct small *s = *state;
        struct channel_report_hold now = { 1, A };
        want(&s->owners[0]);
        want(&s->owners[1]);
        s->old.table_of = C;
        s->held[0] = (struct channel_report_hold){ 1, B };
        s->nodes[0].held = s->held;
        s->nodes[1].held = &now;
        s->nodes[0].n_held = s->nodes[1].n_held = 1;
        decide(s);
        for (size_t i = 0; i < s->d.fabric.n_channels; i++)
                assert_int_equal(s->d.fabric.channels[i].releasing != 0, s->d.fabric.channels[i].id == 1);
}

/* failure: the list of channels is lost -> nothing is assigned until every node has reported [etcd] */
static void a_lost_list_of_channels_assigns_nothing_until_each_node_has_reported(void **state) {
        struct small *s = *state;
        struct condition lost;
        want(&s->owners[0]);
        want(&s->owners[1]);
        s->held[0] = (struct channel_report_hold){ 3, B };
        s->nodes[0].held = s->held;
        s->nodes[0].n_held = 1;
        s->nodes[1].uid = A; /* of another object */
        decide(s);
        assert_int_equal(id_of(s, B), 3); /* confirmed at once */
        assert_int_equal(id_of(s, A), -1);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "node-2"));
        assert_null(strstr(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "node-1,"));
        lost = s->d.fabric.conditions[0];
        s->nodes[1].uid = NULL;
        s->nodes[1].reported = false; /* still silent */
        s->old.conditions = &lost;
        s->old.n_conditions = 1;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        s->nodes[1].gone = true;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        assert_string_equal(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "");
        /* A node that becomes silent later delays nothing. */
        s->old.n_conditions = 0;
        s->nodes[1].gone = false;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        /* The object is newer than a claim, so there was an earlier object. */
        s->old.table_of = NULL;
        s->old.o.meta.created = NOW;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
}

/* failure: an old fabric object is restored -> its channels do not count [etcd] */
static void a_copy_does_not_count(void **state) {
        struct small *s = *state;
        give(s, 1, A, 0);
        want(&s->owners[0]);
        s->held[0] = (struct channel_report_hold){ 1, B };
        s->nodes[0].held = s->held;
        s->nodes[0].n_held = 1;
        s->nodes[1].reported = false;
        s->nodes[1].uid = NULL;
        s->old.table_of = C;
        assert_null(fabric_channel_of(&s->old, A));
        decide(s);
        assert_int_equal(id_of(s, A), -1);
        assert_int_equal(id_of(s, B), 1);
        assert_string_equal(s->d.fabric.table_of, OBJECT);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_INCOMPLETE), "node-2"));
}

/* failure: somebody deletes the fabric object -> the controller restores its channels from memory [etcd] */
static void a_deleted_list_of_channels_is_remembered(void **state) {
        struct small *s = *state;
        struct fabric_channel was[] = { { 3, { CD_KIND, "team-a", "train", A }, 0 } };
        s->f.old = NULL;
        s->f.remembered = was;
        s->f.n_remembered = 1;
        want(&s->owners[0]);
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_CREATE);
        assert_int_equal(s->d.fabric.channels[0].id, 3);
        /* Another leader has begun the new table without this entry. */
        s->f.old = &s->old;
        give(s, 3, B, 0);
        decide(s);
        assert_int_equal(id_of(s, B), 3);
        assert_int_equal(id_of(s, A), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                RULE(each_domain_gets_its_own_channel_and_never_0),
                RULE(without_changes_nothing_is_written),
                RULE(ids_are_reused_as_late_as_possible),
                RULE(a_new_partition_gets_its_object_first_and_waits_for_no_node),
                RULE(the_table_waits_for_a_silent_node_that_is_older_than_the_object),
                RULE(a_new_table_waits_although_all_nodes_have_reported_to_it),
                RULE(a_lost_list_of_channels_without_memory_assigns_nothing_for_a_minute),
                RULE(a_new_table_waits_for_deleted_nodes_although_the_previous_one_is_known),
                RULE(a_restored_table_waits_until_all_plugins_have_noticed_it),
                RULE(a_held_channel_counts_more_than_the_fabric_object),
                RULE(an_old_report_takes_no_channel_from_its_owner),
                RULE(the_check_finds_every_wrong_channel),
                RULE(a_decision_that_fails_its_check_leaves_the_object_as_it_is),
                RULE(an_entry_of_an_old_report_is_removed_while_its_owner_waits),
                RULE(the_report_of_a_running_plugin_counts_more),
                RULE(a_running_plugin_that_knows_the_object_counts_more),
                RULE(two_equal_reports_of_one_channel_do_not_count),
                RULE(a_lost_list_of_channels_assigns_nothing_until_each_node_has_reported),
                RULE(a_copy_does_not_count),
                RULE(a_deleted_list_of_channels_is_remembered),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
