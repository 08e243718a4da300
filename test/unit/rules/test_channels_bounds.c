/* SPDX-License-Identifier: Apache-2.0 */
/* rules/channels at its limits: times to the second, first and last entries, and what the object shows of the
 * IMEX domains of the driver's daemons. */
#include "channels_world.h"
#include "api/reasons.h"
#include "rules/majority.h"

static void give_kind(struct small *s, int64_t id, const char *uid, const char *kind) {
        give(s, id, uid, 0);
        s->channels[s->old.n_channels - 1].owner.kind = kind;
}

static const struct fabric_channel *entry_of(const struct small *s, int64_t id) {
        for (size_t i = 0; i < s->d.fabric.n_channels; i++)
                if (s->d.fabric.channels[i].id == id)
                        return &s->d.fabric.channels[i];
        return NULL;
}

static bool has_condition(const struct small *s, const char *type) {
        return condition_find(s->d.fabric.conditions, s->d.fabric.n_conditions, type);
}

/* ---- times ---- */

static void the_earliest_time_of_all_entries_counts(void **state) {
        for (int64_t first = 0; first < 2; first++) {
                struct small *s = *state;
                s->old.n_channels = 0;
                give(s, 1, A, NOW - first);
                give(s, 2, B, NOW - 1 + first);
                s->owners[0].lives = s->owners[1].lives = false;
                decide(s);
                assert_int_equal(s->d.recheck_s, CHANNELS_LIFE_S);
        }
}

/* Leases are useful from 31 seconds after the release on. */
static void leases_are_listed_when_they_can_show_life(void **state) {
        static const struct {
                int64_t age, recheck_s;
                bool asks;
        } rows[] = { { CHANNELS_LIFE_S, 1, false },
                     { CHANNELS_LIFE_S + 1, CHANNELS_QUARANTINE_S - CHANNELS_LIFE_S - 1, true } };
        struct small *s = *state;
        give(s, 1, A, NOW);
        s->owners[0].lives = false;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                s->f.now = NOW + rows[i].age;
                decide(s);
                assert_int_equal(s->d.recheck_s, rows[i].recheck_s);
                assert_int_equal(s->d.ask_leases, rows[i].asks);
        }
}

static void a_lease_shows_life_if_it_was_renewed_long_enough_after_the_release(void **state) {
        struct small *s = *state;
        give(s, 1, A, NOW - 1000);
        s->owners[0].lives = false;
        s->owners[0].confirmed = true;
        s->nodes[1].alive_after = NOW - 1000 + CHANNELS_LIFE_S;
        decide(s);
        assert_int_equal(id_of(s, A), 1);
        s->nodes[1].alive_after++;
        decide(s);
        assert_int_equal(id_of(s, A), -1);
}

static void leases_are_listed_again_after_a_minute_if_the_node_is_ready(void **state) {
        static const struct {
                int64_t before, at;
                bool ready, asks;
                int64_t recheck_s;
        } rows[] = { { NOW - 100, NOW - CHANNELS_RETRY_S, true, true, 0 },
                     { NOW - 100, NOW - CHANNELS_RETRY_S + 1, true, false, CHANNELS_RETRY_S },
                     { NOW - 100, NOW - CHANNELS_RETRY_S, false, false, 0 },
                     /* The first of the two lists began before the release could be seen. */
                     { NOW - 1000 + CHANNELS_LIFE_S, NOW, true, true, 0 } };
        struct small *s = *state;
        give(s, 1, A, NOW - 1000);
        s->owners[0].lives = false;
        s->nodes[1].alive_after = 0;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                s->f.leases_before = rows[i].before;
                s->f.leases_at = rows[i].at;
                s->nodes[1].is_ready = rows[i].ready;
                decide(s);
                if (s->d.ask_leases != rows[i].asks || s->d.recheck_s != rows[i].recheck_s)
                        fail_msg("row %zu", i);
        }
}

static void the_day_of_an_empty_object_is_counted_to_the_second(void **state) {
        static const struct {
                const char *recorded, *shown;
        } rows[] = { { "1970-01-01T00:00:01Z", "1970-01-01T00:00:01Z" },
                     { "1970-01-01T00:00:00Z", "1970-01-12T13:46:40Z" },
                     { "1970-01-12T13:46:41Z", "1970-01-12T13:46:40Z" } }; /* in the future */
        struct small *s = *state;
        s->f.n_nodes = s->f.n_owners = 0;
        s->old.n_members = 0;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                s->old.empty_since = rows[i].recorded;
                decide(s);
                assert_string_equal(s->d.fabric.empty_since, rows[i].shown);
        }
        s->old.empty_since = "1970-01-12T13:46:40Z"; /* NOW */
        for (int stale = 0; stale < 2; stale++) {
                s->f.stale = stale;
                s->f.now = NOW + CHANNELS_EMPTY_S - 1;
                decide(s);
                assert_int_not_equal(s->d.step, CHANNELS_DELETE);
                assert_false(s->d.pause);
                assert_int_equal(s->d.recheck_s, 1);
                s->f.now++;
                decide(s);
                assert_int_equal(s->d.step == CHANNELS_DELETE, !stale);
                assert_int_equal(s->d.pause, stale);
                assert_int_equal(s->d.recheck_s, 1);
        }
}

static void a_condition_keeps_the_time_at_which_it_became_true(void **state) {
        struct small *s = *state;
        struct condition was = { .type = FABRIC_NODES_WITHHOLD, .status = "True", .since = 77 };
        s->old.conditions = &was;
        s->nodes[0].withheld = "HostIMEXNotUp";
        decide(s);
        assert_string_equal(s->d.fabric.conditions[0].type, FABRIC_NODES_WITHHOLD);
        assert_int_equal(s->d.fabric.conditions[0].since, NOW);
        s->old.n_conditions = 1;
        decide(s);
        assert_int_equal(s->d.fabric.conditions[0].since, 77);
        was.status = "False";
        decide(s);
        assert_int_equal(s->d.fabric.conditions[0].since, NOW);
}

/* ---- a table that may have been lost ---- */

static void a_new_or_lost_table_waits_for_deleted_nodes_and_another_does_not(void **state) {
        struct small *s = *state;
        struct condition lost = { .type = FABRIC_CHANNELS_INCOMPLETE, .status = "True" };
        s->f.vanished_s = 17;
        s->f.complete_since = 1000;
        assert_int_equal(channels_unreported_s(&s->f), 0);
        s->old.conditions = &lost;
        s->old.n_conditions = 1;
        assert_int_equal(channels_unreported_s(&s->f), 17);
        s->f.old = NULL;
        assert_int_equal(channels_unreported_s(&s->f), 0);
        s->f.old = &s->old;
        s->f.complete_since = NOW - CHANNELS_QUARANTINE_S + 18;
        s->nodes[1].stated = 1; /* older than the object */
        assert_int_equal(channels_unreported_s(&s->f), 18);
}

static void a_new_table_stays_younger_than_a_plugin_whose_pod_was_replaced(void **state) {
        struct small *s = *state;
        s->f.complete_since = NOW - CHANNELS_QUARANTINE_S + 18;
        s->old.table_of = NULL;
        assert_int_equal(channels_older_s(&s->f), 0);
        s->f.was_older = true;
        assert_int_equal(channels_older_s(&s->f), 18);
        assert_int_equal(channels_unlisted_s(&s->f), 18);
        s->f.complete_since = NOW - CHANNELS_QUARANTINE_S + 1;
        assert_int_equal(channels_older_s(&s->f), 1);
        s->f.vanished_s = 2;
        assert_int_equal(channels_unreported_s(&s->f), 2);
        s->old.table_of = OBJECT; /* an earlier leader has waited */
        assert_int_equal(channels_unlisted_s(&s->f), 0);
        s->f.remembers = true;
        assert_int_equal(channels_older_s(&s->f), 0);
}

/* With stale caches, a sign of a lost table suffices to assign nothing. */
static void only_signs_of_an_earlier_table_delay_assignments(void **state) {
        enum { GONE, REPORTS, KNOWN, CLAIM, SILENT, SIGNS };
        for (int i = 0; i < SIGNS; i++) {
                struct small *s = *state;
                want(&s->owners[0]);
                s->f.stale = s->f.remembers = true;
                s->old.table_of = i == KNOWN ? OBJECT : NULL;
                s->old.o.meta.created = NOW - 5;
                s->owners[0].oldest = s->owners[2].oldest = NOW - 1;
                s->nodes[1].stated = NOW - 6 - CHANNELS_NEW_S;
                s->nodes[1].gone = i == GONE;
                s->nodes[1].reported = i == REPORTS || i == CLAIM;
                if (i == CLAIM)
                        s->owners[2].oldest = NOW - 6; /* older than the object */
                decide(s);
                assert_int_equal(id_of(s, A), i < CLAIM ? 1 : -1);
        }
}

/* ---- nodes ---- */

/* The Node's annotation names the partition, although its slice is missing. */
static void a_marked_node_belongs_to_an_existing_object(void **state) {
        struct small *s = *state;
        s->old.n_members = 1;
        s->nodes[1].states = s->nodes[1].reported = s->nodes[1].settled = false;
        decide(s);
        assert_int_equal(s->d.fabric.nodes, 1);
        s->nodes[1].marked = true;
        decide(s);
        assert_int_equal(s->d.fabric.nodes, 2);
        s->f.old = NULL;
        decide(s);
        assert_int_equal(s->d.fabric.nodes, 1);
}

static void nothing_is_paused_without_a_reason(void **state) {
        struct small *s = *state;
        for (int stale = 0; stale < 2; stale++)
                for (s->f.n_nodes = 1; s->f.n_nodes <= 2; s->f.n_nodes++) {
                        s->f.stale = stale;
                        s->old.n_members = s->f.n_nodes;
                        decide(s);
                        assert_false(s->d.pause);
                        assert_false(s->d.urgent);
                }
}

static void the_nodes_that_hold_a_channel_are_named(void **state) {
        struct small *s = *state;
        give(s, 1, A, NOW - 1000);
        s->owners[0].lives = false;
        s->held[0] = (struct channel_report_hold){ 1, A };
        s->nodes[0].held = s->nodes[1].held = s->held;
        s->nodes[1].n_held = 1;
        s->nodes[0].settled = false;
        s->f.leases_before = 0; /* no list of Leases is necessary for this */
        decide(s);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_HELD),
                               ": channel 1 of ComputeDomain ns/name: node node-1 has no plugin that is "
                               "Ready and reports; channel 1 of ComputeDomain ns/name: node node-2 holds "
                               "it."));
        assert_int_equal(s->d.recheck_s, CHANNELS_SETTLED_S);
        s->nodes[0].reported = false;
        decide(s);
        assert_int_equal(s->d.recheck_s, 0);
        /* One holder suffices. */
        s->nodes[0].reported = s->nodes[0].settled = true;
        s->nodes[0].n_held = 1;
        s->channels[0].owner.ns = s->channels[0].owner.name = NULL;
        decide(s);
        assert_non_null(strstr(condition_text(s, FABRIC_CHANNELS_HELD),
                               ": channel 1 of ComputeDomain " A ": node node-1 holds it."));
}

/* ---- the values of most nodes ---- */

static void the_number_of_most_nodes_counts_and_others_are_named(void **state) {
        static const struct {
                int64_t old, counts[3], majority;
                const char *others; /* "": none */
        } rows[] = { { 0, { 4, 4, 5 }, 4, "but c have" },  { 5, { 5, 4, -1 }, 5, "but b have" },
                     { 5, { 4, 5, -1 }, 5, "but a have" }, { 5, { 9, 7, -1 }, 7, "but a have" },
                     { 5, { 7, 9, -1 }, 7, "but b have" }, { 5, { 5, 5, -1 }, 5, "" },
                     { 5, { 5, 5, 0 }, 5, "but c have" } };
        struct small *s = *state;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                static const char *const names[] = { "a", "b", "c" };
                struct channels_node nodes[3];
                const struct channels_node *list[3];
                struct majority m;
                struct majority_words words;
                for (size_t k = 0; k < 3; k++) {
                        nodes[k] = (struct channels_node){ .name = names[k], .count = rows[i].counts[k] };
                        list[k] = &nodes[k];
                }
                s->old.channel_count = rows[i].old;
                majority_find(list, 3, &s->old, &m);
                bool differ = majority_differ(&m, s->a, &words);
                if (m.channel_count != rows[i].majority || differ != (*rows[i].others != '\0') ||
                    !strstr(words.message, rows[i].others))
                        fail_msg("row %zu: %lld, %s", i, (long long)m.channel_count, words.message);
        }
}

static void the_reason_names_what_differs(void **state) {
        struct small *s = *state;
        s->nodes[1].count = 9;
        decide(s);
        assert_string_equal(s->d.fabric.conditions[0].reason, REASON_CHANNEL_COUNT);
        s->nodes[1].count = 5;
        s->nodes[0].imex = "575.1";
        s->nodes[1].imex = "580.2";
        decide(s);
        assert_string_equal(s->d.fabric.conditions[0].reason, REASON_IMEX_VERSION);
}

/* ---- entries ---- */

static void only_entries_of_domains_are_released(void **state) {
        struct small *s = *state;
        s->f.n_owners = 0;
        give_kind(s, 1, "u1", NULL);
        give_kind(s, 2, "u2", CD_KIND);
        give_kind(s, 3, "u3", "Other");
        decide(s);
        assert_int_equal(entry_of(s, 1)->releasing, NOW);
        assert_int_equal(entry_of(s, 2)->releasing, NOW);
        assert_int_equal(entry_of(s, 3)->releasing, 0);
}

static void entries_are_listed_by_id_and_owner_and_owners_counted_once(void **state) {
        static const struct {
                int64_t id;
                const char *uid;
        } orders[][4] = { { { 4, A }, { 3, C }, { 3, B }, { 2, A } },
                          { { 2, A }, { 3, B }, { 3, C }, { 4, A } } };
        for (size_t k = 0; k < ARRAY_LEN(orders); k++) {
                struct small *s = *state;
                s->old.n_channels = 0;
                for (size_t i = 0; i < 4; i++)
                        give(s, orders[k][i].id, orders[k][i].uid, 0);
                decide(s);
                for (size_t i = 0; i < 4; i++) {
                        assert_int_equal(s->d.fabric.channels[i].id, orders[1][i].id);
                        assert_string_equal(s->d.fabric.channels[i].owner.uid, orders[1][i].uid);
                }
                assert_int_equal(s->d.fabric.domain_count, 3);
        }
        struct small *s = *state;
        s->old.n_channels = 0;
        give(s, 1, A, 0), give(s, 2, A, 0), give(s, 3, B, 0);
        decide(s);
        assert_int_equal(s->d.fabric.domain_count, 2);
}

static void entries_without_nodes_are_a_reason_to_create_the_object(void **state) {
        struct small *s = *state;
        struct fabric_channel was = { 3, { CD_KIND, "team-a", "train", A }, 0 };
        s->f.old = NULL;
        s->f.n_nodes = 0;
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_KEEP);
        assert_true(s->d.urgent);
        s->f.remembered = &was;
        s->f.n_remembered = 1;
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_CREATE);
}

/* The sanitizer sees writes behind the end of the list of entries. */
static void a_node_may_hold_many_channels(void **state) {
        enum { MANY = 1000 };
        struct small *s = *state;
        struct channel_report_hold *held = xnew_n(struct channel_report_hold, MANY);
        for (int i = 0; i < MANY; i++)
                held[i] = (struct channel_report_hold){ i + 1, A };
        s->nodes[1].held = held;
        s->nodes[1].n_held = MANY;
        decide(s);
        assert_int_equal(s->d.fabric.n_channels, MANY);
        free(held);
}

/* ---- free IDs ---- */

static void the_next_free_id_is_assigned(void **state) {
        static const struct {
                int64_t count, next, taken, id, then;
        } rows[] = { { 5, 1, 0, 1, 2 },
                     { 5, 3, 0, 3, 4 },
                     { 5, 4, 0, 4, 1 },
                     { 5, 5, 0, 1, 2 },
                     { 5, 3, 3, 4, 1 },
                     { 5, 4, 4, 1, 2 },
                     { FABRIC_CHANNELS_MAX - 1, FABRIC_CHANNELS_MAX - 1, 0, 1, 2 },
                     { FABRIC_CHANNELS_MAX, FABRIC_CHANNELS_MAX - 1, 0, FABRIC_CHANNELS_MAX - 1, 1 } };
        struct small *s = *state;
        want(&s->owners[0]);
        s->owners[1].claimed = true;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                s->nodes[0].count = s->nodes[1].count = rows[i].count;
                s->old.next = rows[i].next;
                s->old.n_channels = 0;
                if (rows[i].taken)
                        give(s, rows[i].taken, B, 0);
                decide(s);
                if (id_of(s, A) != rows[i].id || s->d.fabric.next != rows[i].then)
                        fail_msg("row %zu", i);
        }
}

static void the_oldest_domain_gets_the_last_channel(void **state) {
        struct small *s = *state;
        s->nodes[0].count = s->nodes[1].count = 2;
        for (size_t i = 0; i < 3; i++) {
                want(&s->owners[0]);
                want(&s->owners[1]);
                s->owners[0].oldest = NOW - 10 + (int64_t)i;
                s->owners[1].oldest = NOW - 9;
                decide(s);
                assert_int_equal(id_of(s, i < 2 ? A : B), 1); /* of the same age: by UID */
        }
}

/* failure: other namespaces have channels -> a namespace gets half of the rest [tenants] */
static void a_namespace_has_at_most_half_of_what_others_leave(void **state) {
        struct small *s = *state;
        s->owners[1].ns = "team-a";
        want(&s->owners[0]);
        want(&s->owners[1]);
        give(s, 1, "x", 0);
        give(s, 2, "y", 0);
        decide(s);
        assert_int_equal(s->d.n_assigned, 1);
        assert_int_equal(s->d.waiting, 1);
}

static void a_missing_count_of_channels_is_reported(void **state) {
        static const struct {
                int64_t old, counts[2];
                bool reported;
        } rows[] = { { 0, { -1, -1 }, false }, { 1, { -1, -1 }, true }, { 0, { 0, -1 }, true },
                     { 0, { -1, 0 }, true },   { 0, { 1, 1 }, true },   { 0, { 0, 0 }, true } };
        struct small *s = *state;
        want(&s->owners[0]);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                s->old.channel_count = rows[i].old;
                s->nodes[0].count = rows[i].counts[0];
                s->nodes[1].count = rows[i].counts[1];
                decide(s);
                if (!strstr(condition_text(s, FABRIC_CHANNELS_EXHAUSTED),
                            rows[i].reported ? "has only IMEX channel 0" : "No kubelet plugin has reported"))
                        fail_msg("row %zu: %s", i, condition_text(s, FABRIC_CHANNELS_EXHAUSTED));
                const struct condition *c = condition_find(s->d.fabric.conditions, s->d.fabric.n_conditions,
                                                           FABRIC_CHANNELS_EXHAUSTED);
                assert_string_equal(c->reason,
                                    rows[i].reported ? REASON_NO_CHANNELS : REASON_CHANNEL_COUNT_UNKNOWN);
        }
}

/* ---- idle channels are released for others ---- */

/* All channels are assigned to "a1" to "a4", and A waits. */
static void take_all(struct small *s, const int64_t *ids, size_t n, struct channels_owner *owners) {
        static const char *const uids[] = { "a1", "a2", "a3", "a4" };
        s->old.n_channels = 0;
        for (size_t i = 0; i < n; i++) {
                owners[i] = (struct channels_owner){ .uid = uids[i], .ns = "team-x", .lives = true };
                give(s, ids[i], uids[i], 0);
        }
        owners[n] = (struct channels_owner){ .uid = "w", .ns = "team-w", .lives = true };
        want(&owners[n]);
        s->f.owners = owners;
        s->f.n_owners = n + 1;
}

static void the_idle_channel_that_was_assigned_first_is_released(void **state) {
        static const int64_t orders[][4] = { { 1, 2, 3, 4 }, { 4, 3, 2, 1 }, { 2, 1, 4, 3 }, { 3, 4, 1, 2 } };
        struct channels_owner owners[5];
        struct small *s = *state;
        for (size_t k = 0; k < ARRAY_LEN(orders); k++)
                for (int64_t next = 1; next <= 4; next++)
                        for (int64_t busy = 0; busy <= 4; busy++) {
                                int64_t first = next == busy ? next % 4 + 1 : next;
                                take_all(s, orders[k], 4, owners);
                                s->old.next = next;
                                for (size_t i = 0; i < 4; i++)
                                        owners[i].claimed = orders[k][i] == busy;
                                decide(s);
                                for (int64_t id = 1; id <= 4; id++)
                                        assert_int_equal(entry_of(s, id)->releasing != 0, id == first);
                                assert_int_equal(s->d.waiting, 1);
                                assert_false(s->d.urgent);
                                assert_false(s->d.pause);
                        }
}

static void a_channel_that_is_being_released_counts_for_those_that_wait(void **state) {
        static const int64_t ids[] = { 1, 2, 3, 4 };
        struct channels_owner owners[5];
        struct small *s = *state;
        for (int64_t already = 1; already <= 4; already++) {
                take_all(s, ids, 4, owners);
                s->channels[already - 1].releasing = NOW - 1;
                s->f.stale = already == 2;
                decide(s);
                for (int64_t id = 1; id <= 4; id++)
                        assert_int_equal(entry_of(s, id)->releasing != 0, id == already);
                assert_false(s->d.pause);
        }
        take_all(s, ids, 4, owners);
        s->f.stale = true;
        decide(s);
        for (int64_t id = 1; id <= 4; id++)
                assert_int_equal(entry_of(s, id)->releasing, 0);
        assert_true(s->d.pause);
}

static void a_channel_that_the_last_node_holds_is_not_released(void **state) {
        static const int64_t ids[] = { 1, 2, 3, 4 };
        struct channels_owner owners[5];
        struct small *s = *state;
        take_all(s, ids, 4, owners);
        s->held[0] = (struct channel_report_hold){ 1, "a1" };
        s->nodes[1].held = s->held;
        s->nodes[1].n_held = 1;
        decide(s);
        assert_int_equal(entry_of(s, 1)->releasing, 0);
        assert_int_equal(entry_of(s, 2)->releasing, NOW);
}

/* Two entries of one ID: the first of the list is released. */
static void one_of_two_entries_with_one_id_is_released(void **state) {
        static const int64_t ids[] = { 1, 1 };
        struct channels_owner owners[3];
        struct small *s = *state;
        s->nodes[0].count = s->nodes[1].count = 2;
        take_all(s, ids, 2, owners);
        decide(s);
        assert_int_equal(s->d.fabric.channels[0].releasing, NOW);
        assert_int_equal(s->d.fabric.channels[1].releasing, 0);
}

/* ---- the IMEX domains of the driver's daemons ---- */

static void the_object_shows_the_imex_domains_of_the_partition(void **state) {
        static const struct fabric_domain list[] = { { .owner = { .kind = CD_FABRIC_KIND, .uid = "s" } },
                                                     { .owner = { .kind = CD_KIND, .uid = "a" } },
                                                     { .owner = { .kind = CD_KIND, .uid = "b" } } };
        struct small *s = *state;
        struct fabric_domain *domains = xnew_n(struct fabric_domain, ARRAY_LEN(list));
        memcpy(domains, list, sizeof list);
        struct assignment r = { .domains = domains, .n_domains = ARRAY_LEN(list), .epoch = 7, .recount = 6 };
        s->f.assignments = &r;
        decide(s);
        assert_int_equal(s->d.fabric.domain_count, 2);
        assert_int_equal(s->d.fabric.epoch, 7);
        assert_int_equal(s->d.fabric.recount, 6);
        assert_false(s->d.urgent);
        assert_int_equal(s->d.fabric.n_conditions, 0);
        s->old = s->d.fabric;
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_KEEP);
        r.changed = true;
        decide(s);
        assert_int_equal(s->d.step, CHANNELS_PATCH);
        assert_true(s->d.urgent);
        want(&s->owners[0]); /* a new channel is urgent, too */
        r.changed = false;
        decide(s);
        assert_true(s->d.urgent);
        free(domains);
}

static void the_object_shows_why_nodes_have_no_assignment(void **state) {
        struct small *s = *state;
        struct assignment r = { .n_refused = 3 };
        s->f.assignments = &r;
        decide(s);
        assert_int_equal(s->d.fabric.n_conditions, 1);
        assert_non_null(strstr(condition_text(s, FABRIC_DOMAINS_EXHAUSTED), "3 wait"));
        r.n_refused = 0;
        s->f.recount_why = "recount";
        decide(s);
        assert_int_equal(s->d.fabric.n_conditions, 1);
        assert_string_equal(condition_text(s, FABRIC_ASSIGNMENTS_INCOMPLETE), "recount");
        s->f.recount_why = NULL;
        s->f.full_why = "full";
        decide(s);
        assert_int_equal(s->d.fabric.n_conditions, 1);
        assert_string_equal(condition_text(s, FABRIC_DOMAIN_FULL), "full");
        s->f.full_why = NULL;
        s->f.wrong = "wrong";
        decide(s);
        assert_int_equal(s->d.fabric.n_conditions, 1);
        assert_string_equal(condition_text(s, FABRIC_DECISION_WRONG), "wrong");
}

/* ---- the check, and what replaces a wrong decision ---- */

/* failure: a plugin reports a channel ID that no ComputeDomain can have -> the ID is ignored, and decisions
 * continue [tenants] */
static void a_held_id_that_cannot_be_assigned_is_ignored(void **state) {
        static const int64_t ids[] = { 0, FABRIC_CHANNELS_MAX, 1 << 19, 1, FABRIC_CHANNELS_MAX - 1 };
        for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
                struct small *s = *state;
                s->held[0] = (struct channel_report_hold){ ids[i], B };
                s->nodes[0].held = s->held;
                s->nodes[0].n_held = 1;
                want(&s->owners[0]);
                decide(s);
                assert_int_equal(id_of(s, B), i < 3 ? -1 : ids[i]);
                assert_int_equal(s->d.n_assigned, 1);
        }
}

static void the_check_sees_the_last_entry_and_the_last_id(void **state) {
        struct small *s = *state;
        give(s, 3, B, 0);
        want(&s->owners[0]);
        want(&s->owners[1]);
        decide(s);
        struct fabric_channel *channels = s->d.fabric.channels, *exact = xnew_n(struct fabric_channel, 2);
        memcpy(exact, channels, 2 * sizeof *exact);
        s->d.fabric.channels = exact; /* the sanitizer sees a read behind its end */
        assert_null(channels_check(&s->f, &s->d, s->a));
        exact[0].id = s->d.assigned[0].id = FABRIC_CHANNELS_MAX - 1;
        assert_null(channels_check(&s->f, &s->d, s->a));
        exact[1].id = 0;
        assert_broken(s, "has channel 0");
        s->d.fabric.channels = channels;
        free(exact);
}

static void a_kept_object_keeps_its_other_conditions(void **state) {
        static const char *const types[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
        static struct condition was[ARRAY_LEN(types)];
        struct small *s = *state;
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                was[i] = (struct condition){ .type = types[i], .status = "True" };
        s->old.conditions = was;
        for (size_t n = 0; n <= ARRAY_LEN(types); n++) { /* there is room for seven beside DecisionWrong */
                s->old.n_conditions = n;
                channels_keep(&s->f, "why", s->a, &s->d);
                assert_int_equal(s->d.fabric.n_conditions, n < 7 ? n + 1 : 8);
                for (size_t i = 0; i < n && i < 7; i++)
                        assert_true(has_condition(s, types[i]));
                assert_string_equal(condition_text(s, FABRIC_DECISION_WRONG), "why");
        }
}

/* The sanitizer sees a read behind the end of the lists. */
static void no_list_is_read_beyond_its_end(void **state) {
        struct small *s = *state;
        struct channels_owner *owners = xnew_n(struct channels_owner, 2);
        struct fabric_channel *channels = xnew_n(struct fabric_channel, 1);
        memcpy(owners, s->owners, 2 * sizeof *owners);
        owners[0].lives = false;
        channels[0] = (struct fabric_channel){ 1, { CD_KIND, "ns", "name", A }, 0 };
        s->f.owners = owners;
        s->f.n_owners = 2;
        s->old.channels = channels;
        s->old.n_channels = 1;
        decide(s); /* the entry becomes releasing, so the old list does not have it */
        assert_int_equal(s->d.fabric.channels[0].releasing, NOW);
        s->old.table_of = NULL;
        s->f.remembers = true;
        s->old.n_channels = 0;
        decide(s);
        free(owners);
        free(channels);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                RULE(the_earliest_time_of_all_entries_counts),
                RULE(leases_are_listed_when_they_can_show_life),
                RULE(a_lease_shows_life_if_it_was_renewed_long_enough_after_the_release),
                RULE(leases_are_listed_again_after_a_minute_if_the_node_is_ready),
                RULE(the_day_of_an_empty_object_is_counted_to_the_second),
                RULE(a_condition_keeps_the_time_at_which_it_became_true),
                RULE(a_new_or_lost_table_waits_for_deleted_nodes_and_another_does_not),
                RULE(a_new_table_stays_younger_than_a_plugin_whose_pod_was_replaced),
                RULE(only_signs_of_an_earlier_table_delay_assignments),
                RULE(a_marked_node_belongs_to_an_existing_object),
                RULE(nothing_is_paused_without_a_reason),
                RULE(the_nodes_that_hold_a_channel_are_named),
                RULE(the_number_of_most_nodes_counts_and_others_are_named),
                RULE(the_reason_names_what_differs),
                RULE(only_entries_of_domains_are_released),
                RULE(entries_are_listed_by_id_and_owner_and_owners_counted_once),
                RULE(entries_without_nodes_are_a_reason_to_create_the_object),
                RULE(a_node_may_hold_many_channels),
                RULE(the_next_free_id_is_assigned),
                RULE(the_oldest_domain_gets_the_last_channel),
                RULE(a_namespace_has_at_most_half_of_what_others_leave),
                RULE(a_missing_count_of_channels_is_reported),
                RULE(the_idle_channel_that_was_assigned_first_is_released),
                RULE(a_channel_that_is_being_released_counts_for_those_that_wait),
                RULE(a_channel_that_the_last_node_holds_is_not_released),
                RULE(one_of_two_entries_with_one_id_is_released),
                RULE(the_object_shows_the_imex_domains_of_the_partition),
                RULE(the_object_shows_why_nodes_have_no_assignment),
                RULE(a_held_id_that_cannot_be_assigned_is_ignored),
                RULE(the_check_sees_the_last_entry_and_the_last_id),
                RULE(a_kept_object_keeps_its_other_conditions),
                RULE(no_list_is_read_beyond_its_end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
