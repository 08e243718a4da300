/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions and Events of a verdict about IMEX, channels and claims that ComputeDomains share. */
#include "verdict_world.h"

/* ---- IMEX that ComputeDomains share ---- */

static struct verdict judge_hosts(struct arena *a, const struct compute_domain *cd, const struct host *h,
                                  bool of_daemons, const char *problem) {
        static const struct own_channel channel = { CLIQUE_1, NULL, 5, NULL };
        const struct verdict_hosts hosts = { h, h ? 1 : 0, of_daemons, of_daemons ? &channel : NULL, 1 };
        struct verdict v;
        verdict_make_host(&(struct verdict_input){ cd, { problem, problem }, true, 1000 }, &hosts, a, &v);
        assert_null(verdict_check(&v, a));
        return v;
}

static void with_a_shared_imex_ready_means_only_that_it_is_admitted(void **st) {
        struct arena *a = arena_new(4096);
        const struct compute_domain cd = { .o.meta.uid = "u" };
        const struct host down = { "a", true, HOST_DOWN, "why" };
        struct verdict v = judge_hosts(a, &cd, &down, false, NULL);
        assert_string_equal(v.status, "Ready");
        assert_string_equal(v.conditions[0].reason, "Admitted");
        assert_non_null(strstr(v.conditions[0].message, "the state of IMEX on the hosts"));
        assert_string_equal(v.conditions[1].type, "HostIMEXHealthy");
        assert_string_equal(v.conditions[1].status, "False");
        assert_int_equal(v.n_conditions, 2);
        assert_false(v.warns);
        assert_false(v.has_nodes);
        v = judge_hosts(a, &cd, &down, true, NULL);
        assert_non_null(strstr(v.conditions[0].message, "which the daemons run for all ComputeDomains"));
        assert_string_equal(v.conditions[1].type, "IMEXHealthy");
        assert_string_equal(v.conditions[2].type, "ChannelAssigned");
        assert_string_equal(v.conditions[2].message, "channel 5 on " CLIQUE_1);
        assert_int_equal(v.n_conditions, 3);
        v = judge_hosts(a, &cd, &down, true, "TemplateNameTaken");
        assert_string_equal(v.status, "NotReady");
        assert_string_equal(v.conditions[0].reason, "TemplateNameTaken");
        assert_string_equal(v.conditions[0].message, "TemplateNameTaken");
        assert_true(v.warns);
        arena_free(a);
}

/* The Events of a ComputeDomain whose object has `before` as the state of its host. */
static const char *host_events(struct arena *a, const struct host *before, const struct host *now,
                               bool of_daemons) {
        struct compute_domain cd = { .o.meta.uid = "u" };
        struct membership none = { 0 };
        struct verdict was = judge_hosts(a, &cd, before, of_daemons, NULL);
        cd.status = was.status;
        cd.conditions = was.conditions;
        cd.n_conditions = was.n_conditions;
        struct verdict v = judge_hosts(a, &cd, now, of_daemons, NULL);
        struct verdict_event *events;
        size_t n = verdict_events(&cd, &none, &v, a, &events);
        assert_in_range(n, 0, 1);
        return n ? message_of(a, "%s%s", events[0].warning ? "!" : "", events[0].reason) : "";
}

/* failure: a shared IMEX fails, and works again -> an Event of each ComputeDomain in use reports both */
static void the_failure_and_recovery_of_a_shared_imex_have_events(void **st) {
        struct arena *a = arena_new(4096);
        const struct host up = { "a", true, HOST_UP, NULL }, down = { "a", true, HOST_DOWN, "why" },
                          degraded = { "a", true, HOST_DEGRADED, "why" },
                          unknown = { "a", false, HOST_UNKNOWN, NULL };
        const struct {
                const struct host *before, *now;
                const char *of_host, *of_daemon;
        } cases[] = { { &up, &down, "!HostIMEXDown", "!IMEXDown" },
                      { NULL, &down, "!HostIMEXDown", "!IMEXDown" },
                      { &up, &degraded, "!HostIMEXDegraded", "!IMEXDown" },
                      { &down, &down, "", "" },
                      { &down, &up, "HostIMEXUp", "IMEXUp" },
                      { &unknown, &up, "HostIMEXUp", "IMEXUp" },
                      { &up, &up, "", "" },
                      { NULL, &up, "", "" }, /* its first pod */
                      { &up, &unknown, "", "" },
                      { &down, NULL, "", "" } };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_string_equal(host_events(a, cases[i].before, cases[i].now, false), cases[i].of_host);
                assert_string_equal(host_events(a, cases[i].before, cases[i].now, true), cases[i].of_daemon);
        }
        arena_free(a);
}

/* ---- the claim that pods on several nodes share ---- */

/* failure: pods cannot use a shared claim, or can again -> an Event of the ComputeDomain reports it */
static void a_shared_claim_that_cannot_be_used_has_events(void **st) {
        struct arena *a = arena_new(4096);
        const struct cd_condition full = { "SharedClaimAvailable", "False", .reason = "ResourceClaimFull",
                                           .message = "256 pods" },
                                  usable = { "SharedClaimAvailable", "True", .reason = "SharedClaimCreated",
                                             .message = "yes" };
        const struct cd_condition *steps[] = { NULL, &full, &usable, &usable };
        static const char *const wanted[] = { "", "!ResourceClaimFull", "SharedClaimCreated", "" };
        struct compute_domain cd = { .o.meta.uid = "u" };
        struct membership none = { 0 };
        for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
                struct verdict v;
                struct verdict_event *events;
                const struct verdict_hosts hosts = { 0 };
                verdict_make_host(
                        &(struct verdict_input){
                                .cd = &cd, .conditions = true, .shared_claim = steps[i], .now = 1 },
                        &hosts, a, &v);
                size_t n = verdict_events(&cd, &none, &v, a, &events);
                assert_string_equal(n ? message_of(a, "%s%s", events[0].warning ? "!" : "", events[0].reason)
                                      : "",
                                    wanted[i]);
                assert_in_range(n, 0, 1);
                cd.status = v.status;
                cd.conditions = arena_alloc(a, sizeof v.conditions);
                memcpy(cd.conditions, v.conditions, sizeof v.conditions);
                cd.n_conditions = v.n_conditions;
        }
        arena_free(a);
}

static void the_condition_of_a_group_on_one_node_ends_with_the_group(void **st) {
        struct arena *a = arena_new(4096);
        const struct host host = { "n0", true, HOST_UP, NULL };
        const struct verdict_hosts hosts = { &host, 1 };
        const struct cd_condition grouped = { CONDITION_SHARED_CLAIM_AVAILABLE, "False",
                                              REASON_GROUP_ON_ONE_NODE, "text" };
        const struct cd_condition *const rows[] = { &grouped, &grouped, NULL, NULL };
        static const bool changed[] = { true, false, true, false };
        const struct compute_domain *was = fake_cd_json(a, CD("{}"), 1);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct verdict v;
                verdict_make_host(&(struct verdict_input){ was, { 0 }, true, 1000, NULL, rows[i] }, &hosts, a,
                                  &v);
                assert_int_equal(v.changed, changed[i]);
                was = written(a, was, &v, &(size_t){ 0 });
        }
        arena_free(a);
}

static void ready_refers_to_the_condition_of_a_shared_claim(void **st) {
        struct arena *a = arena_new(4096);
        struct cd_channel shared = { .claim_name = "c" }, template = { .template_name = "t" };
        for (int of_daemons = 0; of_daemons < 2; of_daemons++) {
                struct compute_domain cd = { .o.meta.uid = "u", .channel = &shared };
                const char *imex = of_daemons ? "which the daemons run for all ComputeDomains"
                                              : "the state of IMEX on the hosts";
                const char *text = judge_hosts(a, &cd, NULL, of_daemons, NULL).conditions[0].message;
                assert_non_null(strstr(text, "SharedClaimAvailable"));
                assert_non_null(strstr(text, imex));
                cd.channel = &template;
                text = judge_hosts(a, &cd, NULL, of_daemons, NULL).conditions[0].message;
                assert_non_null(strstr(text, "the claim template for its pods exists"));
                assert_non_null(strstr(text, imex));
        }
        arena_free(a);
}

/* The Events of a ComputeDomain with all six conditions, when the reason of SharedClaimAvailable changes. */
static const char *shared_claim_events(struct arena *a, const char *before, const char *now) {
        static const struct cd_condition shortage = { CONDITION_CHANNEL_AVAILABLE, "False",
                                                      REASON_NO_FREE_CHANNEL, "none is free" };
        static const struct own_channel channel = { CLIQUE_1, NULL, 5, NULL };
        static const struct host up = { "a", true, HOST_UP, NULL };
        const struct verdict_hosts hosts = { &up, 1, true, &channel, 1 };
        const char *const reasons[] = { before, now };
        struct compute_domain cd = { .o.meta = { .uid = "u", .generation = 3 },
                                     .num_nodes = 2,
                                     .start_gate = "true" };
        struct verdict v[2];
        struct verdict_event *events;
        for (size_t i = 0; i < ARRAY_LEN(v); i++) {
                bool created = streq(reasons[i], REASON_SHARED_CLAIM_CREATED);
                const struct cd_condition claim = { CONDITION_SHARED_CLAIM_AVAILABLE,
                                                    created ? "True" : "False", reasons[i], "text" };
                verdict_make_host(
                        &(struct verdict_input){
                                &cd, { 0 }, true, 1000, &shortage, reasons[i] ? &claim : NULL },
                        &hosts, a, &v[i]);
                for (size_t k = 0; k < v[i].n_conditions; k++)
                        assert_int_equal(v[i].conditions[k].observed_generation, 3);
                cd.status = v[i].status;
                cd.conditions = v[0].conditions;
                cd.n_conditions = v[0].n_conditions;
        }
        assert_int_equal(v[1].n_conditions, VERDICT_CONDITIONS);
        assert_int_equal(v[1].changed, !streq(before, now));
        size_t n = verdict_events(&cd, &(struct membership){ 0 }, &v[1], a, &events);
        assert_in_range(n, 0, 1);
        return n ? message_of(a, "%s%s", events[0].warning ? "!" : "", events[0].reason) : "";
}

/* failure: pods cannot use their shared claim -> an Event reports it, and another one when they can */
static void a_shared_claim_has_an_Event_when_pods_can_or_cannot_use_it(void **st) {
        static const struct {
                const char *before, *now, *event;
        } cases[] = {
                { NULL, REASON_SHARED_CLAIM_PENDING, "" },
                { NULL, REASON_SHARED_CLAIM_CREATED, REASON_SHARED_CLAIM_CREATED },
                { REASON_SHARED_CLAIM_PENDING, REASON_SHARED_CLAIM_CREATED, REASON_SHARED_CLAIM_CREATED },
                { REASON_SHARED_CLAIM_CREATED, REASON_SHARED_CLAIM_CREATED, "" },
                { REASON_SHARED_CLAIM_CREATED, REASON_SHARED_CLAIM_PENDING, "!SharedClaimPending" },
                { REASON_SHARED_CLAIM_CREATED, REASON_NO_CHANNEL_OFFERED, "!NoChannelOffered" },
                { REASON_NO_CHANNEL_OFFERED, REASON_SHARED_CLAIM_PENDING, "" },
                { REASON_SHARED_CLAIM_CREATED, REASON_SHARED_CLAIMS_NOT_SUPPORTED,
                  "!SharedClaimsNotSupported" },
                { REASON_SHARED_CLAIMS_NOT_SUPPORTED, REASON_SHARED_CLAIMS_NOT_SUPPORTED, "" },
        };
        struct arena *a = arena_new(4096);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(shared_claim_events(a, cases[i].before, cases[i].now), cases[i].event);
        arena_free(a);
}

/* ---- start gates and channels ---- */

/* failure: the annotation of a start gate is removed -> the condition about it is removed from the status */
static void the_condition_of_a_start_gate_follows_the_annotation(void **st) {
        static const struct {
                const char *gate;
                bool connected, changed;
                const char *status, *event; /* NULL: none */
        } rows[] = { { "yes", false, true, "False", REASON_START_GATE_INVALID },
                     { "yes", false, false, "False", NULL },
                     { "true", false, true, "False", NULL },
                     { "true", true, true, "True", REASON_START_GATE_OPENED },
                     { "true", true, false, "True", NULL },
                     { "false", true, true, NULL, NULL },
                     { NULL, true, false, NULL, NULL } };
        struct arena *a = arena_new(1024);
        const struct host host = { "n0", true, HOST_UP, NULL };
        const struct own_channel channel = { .fabric = "c", .id = 1 };
        const struct cd_condition shortage = { CONDITION_CHANNEL_AVAILABLE, "False", REASON_NO_FREE_CHANNEL,
                                               "1" },
                                  shared = { CONDITION_SHARED_CLAIM_AVAILABLE, "True",
                                             REASON_SHARED_CLAIM_CREATED, "2" };
        const struct compute_domain *was = fake_cd_json(a, CD("{}"), 1);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct compute_domain cd = *was;
                const struct verdict_hosts hosts = { &host, rows[i].connected, .channels = &channel,
                                                     .n_channels = 1 };
                const char *event = NULL;
                struct verdict_event *events;
                struct verdict v;
                cd.start_gate = rows[i].gate;
                cd.num_nodes = 1;
                /* All conditions at once. */
                verdict_make_host(&(struct verdict_input){ &cd, { 0 }, true, 1000, &shortage, &shared },
                                  &hosts, a, &v);
                const struct cd_condition *c = &v.conditions[v.n_conditions - 1];
                size_t n = verdict_events(&cd, &(struct membership){ 0 }, &v, a, &events);
                for (size_t k = 0; k < n; k++)
                        if (str_starts(events[k].reason, "StartGate")) {
                                event = events[k].reason;
                                assert_int_equal(events[k].warning, i == 0);
                        }
                if (v.changed != rows[i].changed || !streq(event, rows[i].event) ||
                    !streq(streq(c->type, CONDITION_START_GATE_OPEN) ? c->status : NULL, rows[i].status))
                        fail_msg("row %zu: changed %d, %s %s, event %s", i, v.changed, c->type, c->status,
                                 event);
                was = written(a, &cd, &v, &(size_t){ 0 });
        }
        arena_free(a);
}

/* failure: no pod waits for a channel any more -> the condition about it is removed from the status */
static void the_condition_of_waiting_pods_is_added_and_removed(void **st) {
        static const struct cd_condition shortage = { CONDITION_CHANNEL_AVAILABLE, "False",
                                                      REASON_NO_FREE_CHANNEL,
                                                      "All channels are in use: 1 of 1" };
        struct arena *a = arena_new(1024);
        const struct compute_domain *cd = fake_cd_json(a, CD("{}"), 0);
        const struct membership f = { 0 };
        const struct verdict_hosts hosts = { 0 };
        struct verdict_input in = { cd, { 0 }, true, 1000, &shortage };
        struct verdict v;
        verdict_make_host(&in, &hosts, a, &v);
        assert_string_equal(v.conditions[v.n_conditions - 1].type, CONDITION_CHANNEL_AVAILABLE);
        verdict_make(&in, &f, a, &v);
        assert_string_equal(v.conditions[v.n_conditions - 1].type, CONDITION_CHANNEL_AVAILABLE);
        assert_string_equal(v.conditions[0].status, "True");
        in.cd = written(a, cd, &v, &(size_t){ 0 });
        verdict_make(&in, &f, a, &v);
        assert_false(v.changed);
        in.shortage = NULL;
        verdict_make(&in, &f, a, &v);
        assert_true(v.changed);
        in.cd = written(a, in.cd, &v, &(size_t){ 0 });
        verdict_make(&in, &f, a, &v);
        assert_false(v.changed);
        /* The API server drops all conditions. */
        in.conditions = false;
        in.shortage = &shortage;
        verdict_make(&in, &f, a, &v);
        assert_false(v.changed);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(with_a_shared_imex_ready_means_only_that_it_is_admitted),
                cmocka_unit_test(the_failure_and_recovery_of_a_shared_imex_have_events),
                cmocka_unit_test(a_shared_claim_that_cannot_be_used_has_events),
                cmocka_unit_test(the_condition_of_a_group_on_one_node_ends_with_the_group),
                cmocka_unit_test(ready_refers_to_the_condition_of_a_shared_claim),
                cmocka_unit_test(a_shared_claim_has_an_Event_when_pods_can_or_cannot_use_it),
                cmocka_unit_test(the_condition_of_a_start_gate_follows_the_annotation),
                cmocka_unit_test(the_condition_of_waiting_pods_is_added_and_removed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
