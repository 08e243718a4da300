/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of the channels. test_channels_histories.c tests it in random histories. */
#include "rules/channels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/names.h"

#define FABRIC "3f7c1b2a-1111-2222-3333-444455556666.1"
#define OBJECT "00000000-0000-4000-8000-000000000001"
#define A "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define B "bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define C "cccccccc-8f4e-4f0e-9f0a-1b2c3d4e5f60"

enum { NOW = 1000000 };

/* Two healthy nodes and three ComputeDomains, with a table that is older than all of them. */
struct small {
        struct arena *a;
        struct compute_domain_fabric old;
        struct fabric_channel channels[8];
        const char *members[2];
        struct channels_node nodes[2];
        struct channels_owner owners[3];
        struct channel_report_hold held[2];
        struct channels_facts f;
        struct channels_decision d;
};

static int set_up(void **state) {
        struct small *s = calloc(1, sizeof *s);
        s->a = arena_new(4096);
        s->old = (struct compute_domain_fabric){
                .o.meta = { .name = FABRIC, .uid = OBJECT, .rv = "7", .created = 1000 },
                .channels = s->channels,
                .table_of = OBJECT,
                .members = s->members,
                .n_members = 2,
                .nodes = 2,
                .channel_count = 5,
                .next = 1,
        };
        for (size_t i = 0; i < 2; i++) {
                static const char *const names[] = { "node-1", "node-2" };
                s->members[i] = names[i];
                s->nodes[i] = (struct channels_node){ .name = names[i],
                                                      .states = true,
                                                      .is_ready = true,
                                                      .reported = true,
                                                      .settled = true,
                                                      .uid = OBJECT,
                                                      .count = 5,
                                                      .alive_after = NOW };
        }
        s->owners[0] = (struct channels_owner){ .uid = A, .ns = "team-a", .name = "train", .lives = true };
        s->owners[1] = (struct channels_owner){ .uid = B, .ns = "team-b", .name = "infer", .lives = true };
        s->owners[2] = (struct channels_owner){ .uid = C, .ns = "team-c", .name = "rest", .lives = true };
        s->f = (struct channels_facts){ .fabric = FABRIC,
                                        .old = &s->old,
                                        .nodes = s->nodes,
                                        .n_nodes = 2,
                                        .owners = s->owners,
                                        .n_owners = 3,
                                        .leases_at = NOW,
                                        .leases_before = NOW,
                                        .now = NOW };
        *state = s;
        return 0;
}

static int tear_down(void **state) {
        struct small *s = *state;
        arena_free(s->a);
        free(s);
        return 0;
}

static void want(struct channels_owner *o) {
        o->claimed = o->wants = true;
        o->oldest = NOW - 1;
}

static void give(struct small *s, int64_t id, const char *uid, int64_t releasing) {
        s->channels[s->old.n_channels++] =
                (struct fabric_channel){ id, { CD_KIND, "ns", "name", uid }, releasing };
        s->old.channels_in_use = s->old.domain_count = (int64_t)s->old.n_channels;
}

static int64_t id_of(const struct small *s, const char *uid) {
        const struct fabric_channel *x = fabric_channel_of(&s->d.fabric, uid);
        return x ? x->id : -1;
}

static const char *condition_text(const struct small *s, const char *type) {
        const struct condition *c = condition_find(s->d.fabric.conditions, s->d.fabric.n_conditions, type);
        return c ? c->message : "";
}

/* This controller has run all the time, so it saw everything when it happened. */
static void decide(struct small *s) {
        int64_t since[8];
        for (size_t i = 0; i < s->old.n_channels; i++)
                since[i] = s->old.channels[i].releasing;
        s->f.releasing_since = since;
        s->f.known_since = s->f.old ? s->f.old->o.meta.created : 0;
        channels_decide(&s->f, s->a, &s->d);
        assert_null(channels_check(&s->f, &s->d, s->a));
}

static void assert_broken(struct small *s, const char *why) {
        const char *broken = channels_check(&s->f, &s->d, s->a);
        assert_non_null(broken);
        if (!strstr(broken, why))
                fail_msg("%s", broken);
}

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
        s->f.known_since = 1000;
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
        s->f.known_since = NOW - 1;
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

#define RULE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
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
                RULE(a_release_of_another_controller_counts_from_when_it_was_seen),
                RULE(a_channel_of_a_powered_off_or_force_deleted_node_waits_for_proof),
                RULE(a_channel_that_a_node_holds_or_does_not_report_stays),
                RULE(a_claim_keeps_a_channel_and_ends_its_release),
                RULE(a_stale_cache_ends_nothing),
                RULE(a_doubt_from_a_stale_cache_is_checked_again),
                RULE(one_namespace_has_at_most_half_and_exhaustion_is_reported),
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
