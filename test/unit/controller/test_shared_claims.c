/* SPDX-License-Identifier: Apache-2.0 */
/* A leading controller and claims that pods on several nodes share: the claim of a ComputeDomain, and its
 * channel in the fabric object. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shared_claims_world.h"

/* ---- the claim ---- */

/* failure: a claim of another owner has the name -> a condition names it, and nothing is taken over */
static void a_name_that_is_taken_is_reported(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->taken = true;
        w->holder = "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"c\","
                    "\"resourceVersion\":\"2\"},\"spec\":{}}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "ResourceClaimNameTaken"));
        assert_non_null(strstr(w->status, "ResourceClaim team-a/train already exists"));
        assert_int_equal(w->n_claims_deleted, 0);
}

/* failure: the claim of an earlier ComputeDomain is still being deleted -> a condition names what keeps it */
static void a_name_that_becomes_free_is_not_reported_as_taken(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->taken = true;
        w->holder = "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"c\","
                    "\"resourceVersion\":\"2\",\"deletionTimestamp\":\"2026-02-01T00:00:00Z\","
                    "\"finalizers\":[\"resource.kubernetes.io/delete-protection\",\"" CD_FINALIZER
                    "\"]},\"spec\":{}}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "ResourceClaimTerminating"));
        assert_non_null(strstr(w->status, "ended and these finalizers are removed: "
                                          "resource.kubernetes.io/delete-protection\""));
        assert_null(strstr(w->status, "ResourceClaimNameTaken"));
}

#define OF_EARLIER(more)                                                                                     \
        "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"c\",\"resourceVersion\":"      \
        "\"2\","                                                                                             \
        "\"deletionTimestamp\":\"2026-02-01T00:00:00Z\",\"ownerReferences\":[{\"apiVersion\":"               \
        "\"" CD_API_VERSION "\",\"kind\":\"ComputeDomain\",\"name\":\"train\",\"uid\":"                      \
        "\"aaaaaaaa-8f4e-4f0e-9f0a-000000000002\",\"controller\":true}]" more "},\"spec\":{}}"

/* failure: a ComputeDomain is recreated while its pods end -> its claim is created when the earlier one is
 * deleted */
static void the_name_of_an_earlier_claim_is_used_at_once(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = OF_EARLIER(",\"finalizers\":[\"example.com/keep\"]");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "ResourceClaimTerminating") && w->watch);
        run_for(&w->l.loop, 60000);
        assert_int_equal(w->n_claims, 0);
        fake_chunk(w->watch, "{\"type\":\"DELETED\",\"object\":" OF_EARLIER("") "}\n");
        run_for(&w->l.loop, 200);
        assert_int_equal(w->n_claims, 1);
}

static char *full_claim(void) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        static const char part[] = ",\"reservedFor\":[";
        buf_adds(&b, ALLOCATED_IN("team-a", ""));
        b.n -= 2; /* the end of the status and of the claim */
        buf_adds(&b, part);
        for (int i = 0; i < 256; i++)
                buf_addf(&b, "%s{\"resource\":\"pods\",\"name\":\"p%d\",\"uid\":\"p%d\"}", i ? "," : "", i,
                         i);
        buf_adds(&b, "]}}");
        return xstrdup(buf_str(&b));
}

/* failure: 256 pods use a shared claim -> a condition reports that the next one waits */
static void a_claim_with_256_pods_is_reported(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *claim = full_claim();
        w->slices = PUBLISHED;
        w->claims = claim;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "ResourceClaimFull"));
        assert_non_null(strstr(w->status, "256 pods use ResourceClaim team-a/train"));
        assert_int_equal(w->n_claims, 0);
}

/* JobSet and others create the claim of a PodGroup from a template. */
static void a_template_of_shared_claims_is_created_beside_the_local_one(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->channel =
                "\"resourceClaimTemplate\":{\"name\":\"t\"},\"sharedResourceClaimTemplate\":{\"name\":\"s\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_templates == 2);
        assert_int_equal(w->n_claims, 0);
}

/* ---- the allocation ---- */

#define BY_GROUP                                                                                             \
        "{\"apiVersion\":\"scheduling.k8s.io/"                                                               \
        "v1beta1\",\"kind\":\"PodGroup\",\"name\":\"g\",\"uid\":\"g-uid\"}"
#define GROUP(name, claim, more)                                                                             \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"team-a\",\"uid\":\"" name                      \
        "-uid\",\"resourceVersion\":\"3\"" more "},\"spec\":{\"resourceClaims\":[{\"name\":\"channel\","     \
        "\"resourceClaimName\":\"" claim "\"}]}}"
#define DELETED "\"deletionTimestamp\":\"2026-02-01T00:00:00Z\""
#define FOR_GROUP                                                                                            \
        "{\"apiGroup\":\"scheduling.k8s.io\",\"resource\":\"podgroups\",\"name\":\"g\",\"uid\":\"g-uid\"}"

static void the_controller_allocates_the_claim_in_advance(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->of_claim);
        assert_non_null(
                strstr(w->of_claim, "{\"metadata\":{\"uid\":\"" CLAIM "\",\"resourceVersion\":\"7\"}"));
        assert_non_null(strstr(w->of_claim,
                               "\"results\":[{\"request\":\"channel\",\"driver\":\"" CD_DRIVER
                               "\",\"pool\":\"" CD_POOL_SHARED "\",\"device\":\"" CD_DEVICE_SHARED
                               "\",\"shareID\":\"" CLAIM "\"}]"));
        assert_non_null(strstr(w->of_claim, "\"config\":[{\"source\":\"FromClaim\""));
        assert_non_null(strstr(w->of_claim, "\"domainID\":\"" DOMAIN "\",\"isolation\":\"Channel\""));
        assert_non_null(strstr(w->of_claim, "\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchExpressions\":["
                                            "{\"key\":\"" CD_LABEL_SHARED "\""));
        assert_non_null(strstr(w->of_claim, "\"allocationTimestamp\":\"20"));
        assert_null(strstr(w->of_claim, "reservedFor"));
}

/* failure: the answer to the claim's creation is lost, and the watch is late -> the claim is used */
static void a_claim_whose_creation_got_no_answer_is_used(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->label = LABEL;
        w->taken = true;
        w->holder = CLAIM_AT(12, BY_DOMAIN, "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->of_claim && strstr(w->status, "SharedClaimCreated"));
        assert_null(strstr(w->event, "ResourceClaimNameTaken"));
}

/* failure: the API server drops a field of the shared device -> no claim is allocated */
static void without_the_device_no_claim_is_allocated(void **state) {
        struct world *w = *state;
        w->drops = true;
        w->claims = CLAIM_OF(BY_DOMAIN, "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_deleted);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_patches, 0);
}

static void an_allocated_claim_is_not_written_again(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", "");
        w->patched = CLAIM_AT(11, BY_DOMAIN, "", ALLOCATION);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_patches);
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_patches, 1);
}

/* failure: a user forges the owner of a claim -> the controller does not allocate it [tenants] */
static void only_the_claims_of_the_ComputeDomain_are_allocated(void **state) {
        static const struct {
                const char *claim, *channel;
        } cases[] = {
                { CLAIM_OF("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"p\"}", "", ""),
                  NAMED },
                { CLAIM_OF(BY_DOMAIN, "", ""), "\"resourceClaim\":{\"name\":\"other\"}" },
                { CLAIM_OF(BY_GROUP, "", ""), NAMED },
                { ALLOCATED_IN("team-a", ""), NAMED },
        };
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->taken = true;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                w->claims = cases[i].claim;
                w->channel = cases[i].channel;
                leading_start(&w->l);
                run_for(&w->l.loop, 400);
                if (w->n_patches)
                        fail_msg("case %zu: %s", i, w->of_claim);
                controller_stop(&w->l.c);
        }
}

/* The claim that Kubernetes creates from a claim template for a PodGroup. */
static void the_claim_of_a_PodGroup_is_allocated_and_reserved_at_once(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->channel = "\"sharedResourceClaimTemplate\":{\"name\":\"s\"}";
        w->claims = CLAIM_OF(BY_GROUP, "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->of_claim);
        assert_non_null(strstr(w->of_claim, "\"shareID\":\"" CLAIM "\""));
        assert_non_null(strstr(w->of_claim, "\"reservedFor\":[" FOR_GROUP "]"));
        assert_int_equal(w->n_group_lists, 0);
}

/* ---- the reservation ---- */

#define FOR_POD "{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"p\"}"

static void a_claim_is_reserved_for_the_PodGroups_that_name_it(void **state) {
        static const char *const versions[] = { "/v1beta1/", "/v1alpha2/" };
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION ",\"reservedFor\":[" FOR_POD "]");
        w->groups = GROUP("g", "train", "") "," GROUP("other", "else", "") "," GROUP("ends", "train",
                                                                                     "," DELETED);
        for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
                w->groups_version = versions[i];
                w->of_claim[0] = 0;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, *w->of_claim);
                assert_non_null(strstr(w->of_claim, "\"resourceVersion\":\"7\""));
                assert_non_null(
                        strstr(w->of_claim, "\"status\":{\"reservedFor\":[" FOR_POD "," FOR_GROUP "]}"));
                controller_stop(&w->l.c);
        }
}

/* failure: the API server serves no PodGroups -> no watch, and no warning */
static void without_the_API_of_PodGroups_nothing_is_reserved(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_group_lists == 2);
        run_for(&w->l.loop, 1000);
        assert_int_equal(w->n_group_lists, 2);
        assert_int_equal(w->n_patches, 0);
}

static void PodGroups_are_watched_only_for_a_named_claim(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->channel = "\"resourceClaimTemplate\":{\"name\":\"t\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_templates);
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_group_lists, 0);
}

/* failure: the scheduler removes the reservation of a gang -> the controller restores it after a pause */
static void a_removed_reservation_is_restored_after_a_pause(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->groups_version = "/v1beta1/";
        w->groups = GROUP("g", "train", "");
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION);
        /* The answer is the claim as the scheduler has left it. */
        w->patched = CLAIM_AT(11, BY_DOMAIN, "", ALLOCATION ",\"reservedFor\":[" FOR_GROUP "]");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_patches == 1);
        run_for(&w->l.loop, 300);
        fake_chunk(w->watch,
                   "{\"type\":\"MODIFIED\",\"object\":" CLAIM_AT(12, BY_DOMAIN, "", ALLOCATION) "}\n");
        run_for(&w->l.loop, 1500);
        assert_int_equal(w->n_patches, 1);
        RUN_UNTIL(&w->l.loop, w->n_patches == 2);
}

/* failure: a JobSet is restarted -> the claim is reserved for its new PodGroup at once */
static void the_end_of_a_PodGroup_does_not_delay_the_next_one(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->groups_version = "/v1beta1/";
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION ",\"reservedFor\":[" FOR_GROUP "]");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->watch && w->of_groups);
        fake_chunk(w->watch,
                   "{\"type\":\"MODIFIED\",\"object\":" CLAIM_AT(12, BY_DOMAIN, "", ALLOCATION) "}\n");
        run_for(&w->l.loop, 300);
        fake_chunk(w->of_groups, "{\"type\":\"ADDED\",\"object\":" GROUP("next", "train", "") "}\n");
        run_for(&w->l.loop, 700);
        assert_true(w->n_patches > 0);
        assert_non_null(strstr(w->of_claim, "next-uid"));
}

/* ---- the end ---- */

/* failure: a shared claim is deleted while pods use it -> it exists until the last pod has ended */
static void a_deleted_claim_is_released_when_it_is_unused(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, DELETED ",", ALLOCATION ",\"reservedFor\":[" FOR_POD "]");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "ResourceClaimTerminating"));
        run_for(&w->l.loop, 300);
        assert_string_equal(w->metadata, "");
        controller_stop(&w->l.c);
        w->claims = CLAIM_OF(BY_DOMAIN, DELETED ",", ALLOCATION);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->metadata);
        assert_string_equal(w->metadata, "{\"metadata\":{\"uid\":\"" CLAIM
                                         "\",\"resourceVersion\":\"7\",\"finalizers\":[]}}");
        assert_int_equal(w->n_patches, 0);
}

static void the_finalizers_that_keep_a_deleted_claim_are_reported(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->accepts = true;
        w->label = LABEL;
        w->claims = CLAIM_OF(BY_DOMAIN, DELETED ",", ALLOCATION ",\"reservedFor\":[" FOR_POD "]");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->watch && w->n_statuses && strstr(w->status, "ResourceClaimTerminating"));
        run_for(&w->l.loop, 10000);
        fake_chunk(w->watch,
                   "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"ResourceClaim\",\"apiVersion\":"
                   "\"resource.k8s.io/v1\"," CLAIM_TAIL(11, ",\"example.com/keep\"", BY_DOMAIN, DELETED ",",
                                                        ALLOCATION ",\"reservedFor\":[" FOR_POD "]") "}\n");
        run_for(&w->l.loop, 1000);
        assert_non_null(strstr(w->status, "these finalizers are removed: example.com/keep\""));
}

/* ---- the channel ---- */

/* The report of the node and the allocated claim are both needed. */
static void a_channel_is_assigned_where_a_shared_claim_waits(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = ALLOCATED_IN("team-a", RESERVED);
        w->reports = "\\\"held\\\":{},\\\"asks\\\":[\\\"" DOMAIN "\\\"]";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"channels\":[{\"id\":1"));
        assert_non_null(strstr(w->fabric, "\"uid\":\"" DOMAIN "\""));
}

static void no_channel_is_assigned_where_no_shared_claim_waits(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = ALLOCATED_IN("team-a", RESERVED);
        leading_start(&w->l);
        run_for(&w->l.loop, 1000);
        assert_null(strstr(w->fabric, "\"id\":1"));
}

/* failure: a node reports a ComputeDomain whose shared claim is unused or missing -> it gets no channel
 * [tenants]
 */
static void a_report_alone_gets_no_channel(void **state) {
        static const char *const claims[] = { "", ALLOCATED_IN("team-b", RESERVED),
                                              ALLOCATED_IN("team-a", "") };
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->reports = "\\\"held\\\":{},\\\"asks\\\":[\\\"" DOMAIN "\\\"]";
        for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
                w->claims = claims[i];
                leading_start(&w->l);
                run_for(&w->l.loop, 500);
                assert_null(strstr(w->fabric, "\"id\":1"));
                controller_stop(&w->l.c);
        }
}

/* failure: a shared claim is allocated again while its channel is being released -> the channel is kept */
static void an_allocated_shared_claim_keeps_the_channel_in_every_partition(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = ALLOCATED_IN("team-a", RESERVED);
        w->channels = ENTRY ",\"releasing\":\"2026-01-02T00:00:00Z\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"channels\":[" ENTRY "}"));
}

/* ---- the start gate ---- */

#define WAS(type, reason)                                                                                    \
        "{\"type\":\"" type "\",\"status\":\"True\",\"reason\":\"" reason "\",\"message\":\"was " type       \
        "\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}"

/* A controller starts, and the gate was open. */
static void gate_was_open(struct world *w, const char *claims) {
        w->slices = PUBLISHED;
        w->claims = claims;
        w->channels = ENTRY "}";
        w->gate = GATE;
        w->before = ",\"status\":{\"status\":\"Ready\",\"conditions\":[" WAS(
                "StartGateOpen", "StartGateOpened") "," WAS("HostIMEXHealthy",
                                                            "HostIMEXUp") "," WAS("ChannelAssigned",
                                                                                  "Assigned") "]}";
        w->accepts = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_statuses && w->plugins && w->nodes);
}

/* The gate is open, one of the two pods has completed, and the other one runs on n1. */
static void open_gate(struct world *w) {
        gate_was_open(w, ALLOCATED_IN("team-a", RESERVED));
        assert_non_null(strstr(w->status, "\"StartGateOpened\""));
}

static void send_plugin(struct world *w, const char *type, unsigned version) {
        _cleanup_(freep) char *pod = plugin_of(w, version),
                              *event = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, pod);
        fake_chunk(w->plugins, event);
}

#define HELD "\\\"held\\\":{\\\"2\\\":\\\"" DOMAIN "\\\"}"

static void stays_open(struct world *w) {
        run_for(&w->l.loop, 1500);
        assert_null(strstr(w->status, "StartGateClosed"));
        assert_null(strstr(w->status, "No pod uses this ComputeDomain yet"));
}

/* failure: an upgrade replaces the plugin's Pod -> its node stays in the ComputeDomain, and an open start
 * gate stays open [upgrade] */
static void an_open_gate_stays_open_while_a_plugin_is_replaced(void **state) {
        struct world *w = *state;
        w->reports = HELD;
        open_gate(w);
        send_plugin(w, "DELETED", 11);
        stays_open(w);
        w->reports = NULL;
        send_plugin(w, "ADDED", 12);
        stays_open(w);
        assert_non_null(strstr(w->status, "\"channel 2 on " CLIQUE "\""));
        fake_chunk(w->nodes, "{\"type\":\"DELETED\",\"object\":{\"kind\":\"Node\",\"apiVersion\":\"v1\","
                             "\"metadata\":{\"name\":\"n1\",\"uid\":\"n1\",\"resourceVersion\":\"13\"}}}\n");
        RUN_UNTIL(&w->l.loop, strstr(w->status, "StartGateClosed"));
}

/* failure: a controller starts while an upgrade replaces the plugins' Pods -> an open start gate stays open
 * until they have reported [upgrade] */
static void a_new_controller_keeps_an_open_gate_until_the_plugins_report(void **state) {
        struct world *w = *state;
        w->reports = NULL;
        open_gate(w);
        stays_open(w);
        assert_non_null(strstr(w->status, "was ChannelAssigned"));
        w->reports = "\\\"held\\\":{}";
        send_plugin(w, "MODIFIED", 11);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "StartGateClosed"));
}

/* failure: only a claim of another namespace names a ComputeDomain -> it does not keep the start gate open
 * [tenants] */
static void a_claim_of_another_namespace_keeps_no_gate_open(void **state) {
        struct world *w = *state;
        w->reports = NULL;
        gate_was_open(w, ALLOCATED_IN("team-b", RESERVED));
        RUN_UNTIL(&w->l.loop, strstr(w->status, "StartGateClosed"));
}

/* No use and no other object changes with this report. */
/* failure: the last plugin of a partition reports that it uses nothing -> an open start gate closes [upgrade]
 */
static void an_open_gate_closes_when_the_last_plugin_reports_no_use(void **state) {
        struct world *w = *state;
        w->two_nodes = true;
        w->label = MARKS;
        open_gate(w);
        stays_open(w);
        assert_string_equal(w->fabric, "");
        assert_string_equal(w->node, "");
        _cleanup_(freep) char *pod = plugin_on("n2", "\\\"held\\\":{}", 11),
                              *event = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", pod);
        fake_chunk(w->plugins, event);
        run_for(&w->l.loop, 1500);
        assert_non_null(strstr(w->status, "StartGateClosed"));
        assert_string_equal(w->fabric, "");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, leading_teardown)
        const struct CMUnitTest tests[] = {
                T(a_name_that_is_taken_is_reported),
                T(a_name_that_becomes_free_is_not_reported_as_taken),
                T(the_name_of_an_earlier_claim_is_used_at_once),
                T(a_claim_with_256_pods_is_reported),
                T(a_template_of_shared_claims_is_created_beside_the_local_one),
                T(the_controller_allocates_the_claim_in_advance),
                T(a_claim_whose_creation_got_no_answer_is_used),
                T(without_the_device_no_claim_is_allocated),
                T(an_allocated_claim_is_not_written_again),
                T(only_the_claims_of_the_ComputeDomain_are_allocated),
                T(the_claim_of_a_PodGroup_is_allocated_and_reserved_at_once),
                T(a_claim_is_reserved_for_the_PodGroups_that_name_it),
                T(without_the_API_of_PodGroups_nothing_is_reserved),
                T(PodGroups_are_watched_only_for_a_named_claim),
                T(a_removed_reservation_is_restored_after_a_pause),
                T(the_end_of_a_PodGroup_does_not_delay_the_next_one),
                T(a_deleted_claim_is_released_when_it_is_unused),
                T(the_finalizers_that_keep_a_deleted_claim_are_reported),
                T(a_channel_is_assigned_where_a_shared_claim_waits),
                T(no_channel_is_assigned_where_no_shared_claim_waits),
                T(a_report_alone_gets_no_channel),
                T(an_allocated_shared_claim_keeps_the_channel_in_every_partition),
                T(an_open_gate_stays_open_while_a_plugin_is_replaced),
                T(a_new_controller_keeps_an_open_gate_until_the_plugins_report),
                T(a_claim_of_another_namespace_keeps_no_gate_open),
                T(an_open_gate_closes_when_the_last_plugin_reports_no_use),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
