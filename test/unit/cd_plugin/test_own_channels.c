/* SPDX-License-Identifier: Apache-2.0 */
/* Assigned channels: which channel a claim gets, when it waits, and which channels the node reports as held
 * (imex.isolation=channel). */
#include "world/cd_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/file.h"

#define OWN ",\"isolation\":\"Channel\""
#define ENTRY_OF(id, domain, more)                                                                           \
        "{\"id\":" #id ",\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"user\",\"name\":\"cd\","      \
        "\"uid\":\"" domain "\"}" more "}"
#define ENTRY(id, domain) ENTRY_OF(id, domain, "")
#define RELEASING ",\"releasing\":\"2026-11-24T10:07:00Z\""
#define OTHER_CLIQUE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.3"
#define NODE_OF(id) "\"/dev/nvidia-caps-imex-channels/channel" #id "\""
#define CLAIM_3 "c0000000-0000-4000-8000-000000000003"

static int setup(void **state) {
        if (world_setup(state) < 0)
                return -1;
        world_mode_own_channels();
        world_start(BOOT);
        api_domain("user", "cd2", DOMAIN_B, false);
        api_claim("user", "c1", CLAIM_1, "channel-3", CHANNEL, DOMAIN_A, OWN);
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A,
                  OWN ",\"allocationMode\":\"Single\"");
        api_claim("user", "c3", CLAIM_3, "channel-10", CHANNEL, DOMAIN_B, OWN);
        return 0;
}

static void assigned(const char *channels, int rv) {
        api_fabric(CLIQUE, rv, channels, "");
}

static void prepared(struct dra_op *op, const char *name, const char *uid) {
        prepare(op, name, uid);
        world_wait(op, PREPARED);
}

static void has_channel(const char *uid, const char *node) {
        _cleanup_(freep) char *cdi = world_cdi(uid);
        assert_non_null(cdi);
        if (!strstr(cdi, node))
                print_message("no %s in %s\n", node, cdi);
        assert_non_null(strstr(cdi, node));
}

static void on_tick(uv_timer_t *t) {
        --*(int *)t->data;
}

static void on_tick_closed(uv_handle_t *h) {
        free(h);
}

/* The report of the node's holdings, after all changes that are written together. */
static void reports(const char *part) {
        int ticks = 400;
        uv_timer_t *tick = xnew(uv_timer_t);
        uv_timer_init(&w.loop, tick);
        tick->data = &ticks;
        uv_timer_start(tick, on_tick, 10, 10);
        while (ticks > 0 && !strstr(api.patch, part)) {
                uv_run(&w.loop, UV_RUN_ONCE);
                world_turn();
        }
        uv_close((uv_handle_t *)tick, on_tick_closed);
        if (!strstr(api.patch, part))
                print_message("'%s' is not in: %s\n", part, api.patch);
        assert_non_null(strstr(api.patch, part));
}

#define HELD(clique, uid, held)                                                                              \
        "\\\"" clique "\\\":{\\\"uid\\\":\\\"" uid "\\\",\\\"channelCount\\\":2048,\\\"held\\\":{" held "}}"
#define HOLD(id, owner) "\\\"" #id "\\\":\\\"" owner "\\\""

/* ---- the channel ---- */

static void a_pod_gets_the_channel_of_its_ComputeDomain(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A) "," ENTRY(8, DOMAIN_B), 5);
        prepared(&op, "c1", CLAIM_1);
        assert_string_equal(op.devices,
                            "r/n0/channel-3=k8s.compute-domain.nvidia.com/claim=" CLAIM_1 "-channel-3");
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        has_channel(CLAIM_1, NODE_OF(7));
        assert_non_null(strstr(cdi, "\"minor\":7"));
        assert_null(strstr(cdi, "channel0"));
        assert_null(strstr(cdi, "channel8"));
        assert_non_null(strstr(cdi, "# claim user/c1 domain " DOMAIN_A " channel channel-3=7 clique " CLIQUE
                                    " boot " BOOT "\n"));
        assert_int_equal(world_entry(w.claims, CLAIM_1)->devices[0].id, 7);
        reports(HELD(CLIQUE, FABRIC, HOLD(7, DOMAIN_A)));
        /* The claim, the domains of its namespace and the fabric object, at the same time; and two reports.
         */
        assert_in_range(api.requests, 4, 5);
}

static void several_pods_and_ComputeDomains_share_a_node(void **state) {
        struct dra_op op = { 0 }, again = { .timeout_ms = 200 };
        assigned(ENTRY(7, DOMAIN_A) "," ENTRY(8, DOMAIN_B), 5);
        prepared(&op, "c1", CLAIM_1);
        prepared(&op, "c2", CLAIM_2);
        prepared(&op, "c3", CLAIM_3);
        has_channel(CLAIM_1, NODE_OF(7));
        has_channel(CLAIM_2, NODE_OF(7));
        has_channel(CLAIM_3, NODE_OF(8));
        reports(HELD(CLIQUE, FABRIC, HOLD(7, DOMAIN_A) "," HOLD(8, DOMAIN_B)));
        /* Each channel device has one holder. */
        api_claim("user", "c4", DAEMON_1, "channel-3", CHANNEL, DOMAIN_B, OWN);
        prepare(&again, "c4", DAEMON_1);
        world_wait(&again, FAILED);
        assert_non_null(strstr(again.msg,
                               "n0: device 'channel-3', a place for one pod, is still held by claim "
                               "'user/c1': wait for that pod to end"));
}

/* failure: no channel is assigned yet -> the claim waits with that reason */
static void a_pod_waits_until_a_channel_is_assigned(void **state) {
        struct dra_op op = { 0 };
        waits_with("c1", CLAIM_1,
                   "n0: no channel has been assigned to ComputeDomain 'user/cd' on " CLIQUE " yet");
        assigned(ENTRY(8, DOMAIN_B), 5);
        waits_with("c1", CLAIM_1,
                   "n0: no channel has been assigned to ComputeDomain 'user/cd' on rack-7 yet");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assigned(ENTRY(8, DOMAIN_B) "," ENTRY(9, DOMAIN_A), 6);
        api_fabric_event();
        world_wait(&op, PREPARED);
        has_channel(CLAIM_1, NODE_OF(9));
}

/* failure: only a claim with admin access asks for a channel -> the error states why it gets none */
static void a_claim_with_admin_access_gets_no_channel(void **state) {
        api_claim_json("user", "c1",
                       "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                       "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":["
                       "{\"request\":\"r\",\"driver\":\"" CD_DRIVER
                       "\",\"pool\":\"n0\",\"device\":\"channel-3\",\"adminAccess\":true}],\"config\":[{"
                       "\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"" CD_DRIVER
                       "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION "\",\"kind\":\"" CHANNEL
                       "\",\"domainID\":\"" DOMAIN_A "\",\"isolation\":\"Channel\"}}}]}}}}");
        waits_with("c1", CLAIM_1,
                   "n0: this claim has admin access, which brings no node into ComputeDomain "
                   "'user/cd'");
}

/* The channel may now be another ComputeDomain's. */
/* failure: the plugin's watch of the fabric object hangs -> no channel is read from the old object */
static void a_channel_is_never_read_from_an_older_cache(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        api_fabric_event();
        /* The watch hangs; the object was deleted and is being recreated. */
        api_fabric(CLIQUE, 0, NULL, "");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        world_facts();
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assigned(ENTRY(9, DOMAIN_A), 9);
        api_fabric_event();
        world_wait(&op, PREPARED);
        has_channel(CLAIM_1, NODE_OF(9));
}

/* failure: the watch shows another channel than the API server -> the API server's answer counts */
static void an_answer_of_the_server_counts_more_than_the_watch(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        api_fabric_event();
        assigned(ENTRY(9, DOMAIN_A), 6);
        prepared(&op, "c1", CLAIM_1);
        has_channel(CLAIM_1, NODE_OF(9));
}

/* failure: etcd was restored, and the watch still shows a later version -> the claim waits for a list */
static void a_channel_is_never_read_from_before_a_restore(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 1000);
        api_fabric_event();
        assigned(ENTRY(7, DOMAIN_B) "," ENTRY(8, DOMAIN_A), 806);
        unsigned before = informers_relists;
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_true(informers_relists > before);
        informers_see(&kube_fabrics, true);
        world_wait(&op, PREPARED);
        has_channel(CLAIM_1, NODE_OF(8));
}

/* failure: a restored fabric object gives a channel to two ComputeDomains -> a node prepares it for one
 * [etcd] */
static void a_channel_that_another_domain_holds_here_is_not_prepared(void **state) {
        struct dra_op op = { 0 }, other = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        prepared(&op, "c1", CLAIM_1);
        assigned(ENTRY(7, DOMAIN_B), 6);
        api_fabric_event();
        waits_with("c3", CLAIM_3, "n0: channel 7 is still held by a claim of another ComputeDomain");
        prepare(&other, "c3", CLAIM_3);
        world_turn();
        assert_int_equal(other.answer, PENDING);
        struct dra_op ends = { 0 };
        kubelet_unprepare(w.claims, &ends, "user", "c1", CLAIM_1);
        world_wait(&ends, UNPREPARED);
        world_wait(&other, PREPARED);
        has_channel(CLAIM_3, NODE_OF(7));
}

/* The channel was not assigned when the server answered, and the watch shows no change: a Prepare that waits
 * for long sends the request again. */
/* failure: a channel is assigned while the watch hangs -> the waiting claim still gets it */
static void a_hanging_watch_does_not_block_an_assigned_channel(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(8, DOMAIN_B), 5);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assigned(ENTRY(9, DOMAIN_A), 6);
        assert_int_equal(op.answer, PENDING);
        waits_investigate(TAILQ_FIRST(&w.claims->ops));
        world_wait(&op, PREPARED);
        has_channel(CLAIM_1, NODE_OF(9));
}

/* failure: a channel is being released -> the claim waits until it is assigned again */
static void a_claim_waits_while_its_channel_is_being_released(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY_OF(7, DOMAIN_A, RELEASING), 5);
        waits_with("c1", CLAIM_1, "the channel of ComputeDomain 'user/cd' on rack-7 is being reclaimed");
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assigned(ENTRY(7, DOMAIN_A), 6);
        api_fabric_event();
        world_wait(&op, PREPARED);
        has_channel(CLAIM_1, NODE_OF(7));
}

/* failure: channels are exhausted, or their list is lost -> the claim reports the controller's reason */
static void the_reason_for_no_channel_is_that_of_the_controller(void **state) {
        api_fabric(CLIQUE, 5, "",
                   ",\"conditions\":[{\"type\":\"ChannelsExhausted\",\"status\":\"True\",\"reason\":\"x\","
                   "\"message\":\"all 2047 are in use\"}]");
        waits_with("c1", CLAIM_1, "on rack-7 yet: all 2047 are in use");
        api_fabric(CLIQUE, 6, "",
                   ",\"conditions\":[{\"type\":\"ChannelsExhausted\",\"status\":\"False\",\"reason\":\"x\","
                   "\"message\":\"m\"},{\"type\":\"ChannelsIncomplete\",\"status\":\"True\",\"reason\":\"x\","
                   "\"message\":\"node-3 has not reported\"}]");
        waits_with("c1", CLAIM_1, "on rack-7 yet: node-3 has not reported");
}

/* failure: the assigned channel does not exist on a node -> the claim waits with the number of channels */
static void a_channel_that_the_driver_does_not_have_is_not_prepared(void **state) {
        static const char *const wrong[] = { ENTRY(16, DOMAIN_A), ENTRY(0, DOMAIN_A), ENTRY(-1, DOMAIN_A),
                                             ENTRY(2048, DOMAIN_A) };
        w.facts.channel_count = 16;
        world_facts();
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                assigned(wrong[i], 5 + (int)i);
                waits_with("c1", CLAIM_1,
                           "which this node's driver does not have: it has 16, numbered from 0");
        }
}

/* failure: RBAC or a missing definition hides the fabric object -> the claim names that as the cause */
static void an_unreadable_fabric_object_is_named_as_the_cause(void **state) {
        struct dra_op op = { .timeout_ms = 200 }, denied = { 0 };
        api.fails_for = CLIQUE;
        api.fails_with = ERR_DENIED;
        prepare(&denied, "c1", CLAIM_1);
        world_wait(&denied, FAILED);
        assert_string_equal(denied.msg, "cannot read ComputeDomainFabric '" CLIQUE "': refused");
        api.fails_for = NULL;
        api.refuses = "the CRD is missing";
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        api.refuses = NULL;
        assert_null(world_entry(w.claims, CLAIM_1));
}

/* ---- refused claims ---- */

/* failure: a claim has the other isolation -> it is refused with a remedy */
static void a_claim_of_the_other_isolation_is_refused_with_a_remedy(void **state) {
        assigned(ENTRY(7, DOMAIN_A), 5);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        refused_at_once(
                "c1", CLAIM_1,
                "isolation is missing: the claim is for the shared channel 0, from before each "
                "ComputeDomain had an assigned channel (imex.isolation=channel): delete and recreate");
        world_stop(w.claims);
        world_mode("HostManagedIMEX=true", "");
        world_start(BOOT);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, OWN);
        refused_at_once(
                "c1", CLAIM_1,
                "unknown field \"isolation\": the claim is for an assigned channel of its ComputeDomain");
}

/* failure: a claim has allocationMode All -> it is refused [tenants] */
static void allocation_mode_All_is_refused(void **state) {
        assigned(ENTRY(7, DOMAIN_A), 5);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, OWN ",\"allocationMode\":\"All\"");
        refused_at_once(
                "c1", CLAIM_1,
                "allocationMode \"All\" is not possible where each ComputeDomain has an assigned channel");
}

/* failure: a node has no partition -> claims for an assigned channel are refused */
static void a_node_without_a_partition_has_no_assigned_channel(void **state) {
        struct dra_op op = { 0 };
        w.facts.fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_NONE, .reason = "no GPU reports a fabric" };
        world_facts();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "requires an NVLink clique"));
}

/* The node may have offered more channel devices when the claim was allocated. */
/* failure: a claim has a channel device that the node does not offer now -> it gets its assigned channel */
static void a_channel_device_of_any_number_is_accepted(void **state) {
        static const char *const none[] = { "channel-2048", "channel-01", "channel-", "channel-x",
                                            "channel--1" };
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        api_claim("user", "c1", CLAIM_1, "channel-2047", CHANNEL, DOMAIN_A, OWN);
        prepared(&op, "c1", CLAIM_1);
        has_channel(CLAIM_1, NODE_OF(7));
        for (size_t i = 0; i < ARRAY_LEN(none); i++) {
                api_claim("user", "c2", CLAIM_2, none[i], CHANNEL, DOMAIN_A, OWN);
                refused_at_once("c2", CLAIM_2, "node 'n0' has no device '");
        }
}

/* ---- restarts and changes ---- */

/* failure: the API server is down at Unprepare -> the claim is unprepared, and that is reported afterwards */
static void unprepare_needs_no_server_and_is_reported(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        prepared(&op, "c1", CLAIM_1);
        reports(HOLD(7, DOMAIN_A));
        api.down = true;
        kubelet_unprepare(w.claims, &op, "user", "c1", CLAIM_1);
        world_wait(&op, UNPREPARED);
        assert_null(world_cdi(CLAIM_1));
        api.down = false;
        reports(HELD(CLIQUE, FABRIC, ""));
}

/* failure: the checkpoint is lost -> it is rebuilt with each claim's channel and partition */
static void a_lost_checkpoint_is_rebuilt_with_channels_and_partitions(void **state) {
        struct dra_op op = { 0 };
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        struct err e;
        api_claim("user", "c1", CLAIM_1, "channel-1", CHANNEL, DOMAIN_A, OWN);
        assigned(ENTRY(10, DOMAIN_A) "," ENTRY(1, DOMAIN_B), 5);
        prepared(&op, "c1", CLAIM_1);
        prepared(&op, "c3", CLAIM_3);
        world_stop(w.claims);
        assert_int_equal(file_remove(path, &e), 0);
        pod_replaced();
        world_start(BOOT);
        assert_string_equal(world_entry(w.claims, CLAIM_1)->devices[0].name, "channel-1");
        assert_int_equal(world_entry(w.claims, CLAIM_1)->devices[0].id, 10);
        assert_string_equal(world_entry(w.claims, CLAIM_3)->devices[0].name, "channel-10");
        assert_int_equal(world_entry(w.claims, CLAIM_3)->devices[0].id, 1);
        reports(HOLD(1, DOMAIN_B) "," HOLD(10, DOMAIN_A));
}

/* failure: the plugin restarts while the list of channels is empty -> it reports its channels, and claims
 * keep them */
static void a_restart_reports_all_channels_again_and_changes_nothing(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        prepared(&op, "c1", CLAIM_1);
        _cleanup_(freep) char *before = world_cdi(CLAIM_1);
        world_stop(w.claims);
        pod_replaced();
        assigned("", 6);
        world_start(BOOT);
        reports(HOLD(7, DOMAIN_A));
        prepared(&op, "c1", CLAIM_1);
        _cleanup_(freep) char *after = world_cdi(CLAIM_1);
        assert_string_equal(before, after);
}

/* failure: a node has no GPUs after a reboot -> its report has no channels of the earlier boot */
static void a_plugin_that_starts_without_gpus_reports_that_no_channel_is_held(void **state) {
        struct facts gpus = w.facts;
        world_stop(w.claims);
        w.facts = (struct facts){ .known = true, .reason = REASON_NO_GPUS };
        *api.patch = '\0';
        world_start("11111111-2222-3333-4444-555555555555");
        reports("\"{}\"");
        w.facts = gpus;
        world_facts();
        reports(HELD(CLIQUE, "", ""));
        /* GPUs that are lost later change nothing. */
        w.facts = (struct facts){ .known = true, .reason = REASON_NO_GPUS };
        *api.patch = '\0';
        world_facts();
        world_turn();
        assert_string_equal(api.patch, "");
}

/* The list of channels and the node's partition may have changed. */
/* failure: a node's partition changes under a prepared channel -> the claim keeps its channel */
static void a_claim_keeps_its_channel_when_the_partition_changes(void **state) {
        struct dra_op op = { 0 };
        _cleanup_(freep) char *file =
                xasprintf("%s/k8s.compute-domain.nvidia.com-claim_" CLAIM_1 ".yaml", w.cdi_root);
        assigned(ENTRY(7, DOMAIN_A), 5);
        prepared(&op, "c1", CLAIM_1);
        snprintf(w.facts.fabric.clique_id, sizeof w.facts.fabric.clique_id, OTHER_CLIQUE);
        api_fabric(OTHER_CLIQUE, 9, ENTRY(4, DOMAIN_A), "");
        world_facts();
        reports("\\\"" CLIQUE "\\\":{\\\"uid\\\":\\\"\\\",\\\"held\\\":{" HOLD(7, DOMAIN_A) "}}");
        reports("\\\"" OTHER_CLIQUE "\\\":{\\\"uid\\\":\\\"");
        assert_int_equal(unlink(file), 0);
        api.fails_for = OTHER_CLIQUE; /* a prepared claim does not depend on the fabric object */
        api.fails_with = ERR_DENIED;
        prepared(&op, "c1", CLAIM_1);
        api.fails_for = NULL;
        has_channel(CLAIM_1, NODE_OF(7));
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        assert_non_null(strstr(cdi, " channel channel-3=7 clique " CLIQUE " "));
        /* Another claim uses the other partition. */
        prepared(&op, "c2", CLAIM_2);
        has_channel(CLAIM_2, NODE_OF(4));
        reports(HOLD(4, DOMAIN_A));
}

/* failure: a node's partition changes while a claim waits -> it gets a channel of the new partition */
static void a_waiting_claim_uses_the_changed_partition(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(8, DOMAIN_B), 5);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        snprintf(w.facts.fabric.clique_id, sizeof w.facts.fabric.clique_id, OTHER_CLIQUE);
        api_fabric(OTHER_CLIQUE, 9, ENTRY(4, DOMAIN_A), "");
        world_facts();
        world_wait(&op, PREPARED);
        has_channel(CLAIM_1, NODE_OF(4));
}

/* failure: the fabric object is recreated under prepared channels -> the plugin reports all of them to it */
static void a_recreated_fabric_object_gets_all_channels(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        prepared(&op, "c1", CLAIM_1);
        reports(HELD(CLIQUE, FABRIC, HOLD(7, DOMAIN_A)));
        api_fabric(CLIQUE, 0, NULL, "");
        api_fabric_event();
        reports(HELD(CLIQUE, "", HOLD(7, DOMAIN_A)));
        assigned("", 9);
        api_fabric_event();
        reports(HELD(CLIQUE, FABRIC, HOLD(7, DOMAIN_A)));
}

/* ---- offered devices ---- */

static bool offered(const char *reason) {
        struct offering o;
        if (!isolation_evaluate(w.isolations[0], &w.facts, &o))
                return false;
        assert_string_equal(o.reason, reason);
        return true;
}

/* failure: the plugin has just started -> it changes nothing until nvidia-imex has answered */
static void nothing_is_decided_before_the_first_answer_of_IMEX(void **state) {
        assert_false(offered(""));
        w.host_own = HOST_IMEX_READY;
        assert_true(offered(""));
        /* After the first answer, an unknown state changes nothing. */
        w.host_own = HOST_IMEX_NOT_ASKED;
        assert_true(offered(""));
}

/* failure: the host's nvidia-imex is not READY -> the channels are withheld, and the fabric object shows it
 * */
static void channels_are_withheld_and_reported_while_IMEX_is_not_READY(void **state) {
        assigned("", 5);
        api_fabric_event();
        w.host_own = HOST_IMEX_NOT_READY;
        w.host_status = (struct host_imex_status){ .state = HOST_DOWN, .version = "580.2" };
        snprintf(w.host_status.reason, sizeof w.host_status.reason, "the host's nvidia-imex is UNAVAILABLE");
        assert_true(offered("HostIMEXNotUp"));
        reports("\\\"imexVersion\\\":\\\"580.2\\\",\\\"withheld\\\":\\\"HostIMEXNotUp\\\"");
        /* It must be READY for a while, with more frequent queries; unknown counts as not READY. */
        assert_false(w.host_settles);
        w.host_own = HOST_IMEX_READY;
        assert_true(offered("HostIMEXNotUp"));
        assert_true(w.host_settles);
        w.host_own = HOST_IMEX_NOT_KNOWN;
        assert_true(offered("HostIMEXNotUp"));
        assert_false(w.host_settles);
}

/* failure: channels are withheld under prepared claims -> the claims stay prepared */
static void prepared_claims_stay_while_devices_are_withheld(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        api_fabric_event();
        w.host_own = HOST_IMEX_READY;
        assert_true(offered(""));
        prepared(&op, "c1", CLAIM_1);
        world_stop(w.claims);
        world_start(BOOT);
        w.host_own = HOST_IMEX_NOT_READY;
        api_fabric_event();
        assert_true(offered("HostIMEXNotUp"));
        prepared(&op, "c1", CLAIM_1);
        has_channel(CLAIM_1, NODE_OF(7));
        reports(HOLD(7, DOMAIN_A));
}

/* failure: IMEX of a node has another version than its partition -> the channels are withheld */
static void channels_are_withheld_while_IMEX_has_another_version(void **state) {
        api_fabric(CLIQUE, 5, "", ",\"imexVersion\":\"580.2\"");
        api_fabric_event();
        w.host_own = HOST_IMEX_READY;
        assert_true(offered("")); /* its own version is not known */
        snprintf(w.host_status.version, sizeof w.host_status.version, "575.1");
        assert_true(offered("IMEXVersionDiffers"));
        reports("\\\"imexVersion\\\":\\\"575.1\\\",\\\"withheld\\\":\\\"IMEXVersionDiffers\\\"");
}

/* ---- the report ---- */

/* failure: the partition of a held channel is unknown -> the node's partition is assumed */
static void a_held_channel_of_an_unknown_partition_counts_for_the_nodes(void **state) {
        struct arena *a = arena_new(512);
        const struct held_channel held[] = { { NULL, 9, DOMAIN_A },
                                             { OTHER_CLIQUE, 3, DOMAIN_B },
                                             { CLIQUE, 2, DOMAIN_B },
                                             { CLIQUE, 9, DOMAIN_A } };
        const struct holdings_node here = { CLIQUE, FABRIC, 2048 }, nowhere = { "", "", 2048 };
        struct channel_report r;
        assert_true(holdings_report(held, 4, &here, a, &r));
        assert_int_equal(r.n_fabrics, 2);
        assert_string_equal(r.fabrics[0].clique_id, CLIQUE);
        assert_int_equal(r.fabrics[0].count, 2048);
        assert_int_equal(r.fabrics[0].n_held, 2);
        assert_int_equal(r.fabrics[0].held[0].id, 2);
        assert_int_equal(r.fabrics[0].held[1].id, 9);
        assert_int_equal(r.fabrics[1].count, -1);
        /* A channel that is missing in a report counts as free, so an incomplete report is not sent. */
        assert_false(holdings_report(held, 4, &nowhere, a, &r));
        assert_true(holdings_report(held + 1, 1, &nowhere, a, &r));
        assert_int_equal(r.n_fabrics, 1);
        arena_free(a);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
        const struct CMUnitTest tests[] = {
                T(a_pod_gets_the_channel_of_its_ComputeDomain),
                T(several_pods_and_ComputeDomains_share_a_node),
                T(a_pod_waits_until_a_channel_is_assigned),
                T(a_claim_with_admin_access_gets_no_channel),
                T(a_channel_is_never_read_from_an_older_cache),
                T(a_channel_is_never_read_from_before_a_restore),
                T(a_channel_that_another_domain_holds_here_is_not_prepared),
                T(an_answer_of_the_server_counts_more_than_the_watch),
                T(a_hanging_watch_does_not_block_an_assigned_channel),
                T(a_claim_waits_while_its_channel_is_being_released),
                T(the_reason_for_no_channel_is_that_of_the_controller),
                T(a_channel_that_the_driver_does_not_have_is_not_prepared),
                T(an_unreadable_fabric_object_is_named_as_the_cause),
                T(a_claim_of_the_other_isolation_is_refused_with_a_remedy),
                T(nothing_is_decided_before_the_first_answer_of_IMEX),
                T(channels_are_withheld_and_reported_while_IMEX_is_not_READY),
                T(prepared_claims_stay_while_devices_are_withheld),
                T(channels_are_withheld_while_IMEX_has_another_version),
                T(allocation_mode_All_is_refused),
                T(a_node_without_a_partition_has_no_assigned_channel),
                T(a_channel_device_of_any_number_is_accepted),
                T(unprepare_needs_no_server_and_is_reported),
                T(a_lost_checkpoint_is_rebuilt_with_channels_and_partitions),
                T(a_restart_reports_all_channels_again_and_changes_nothing),
                T(a_plugin_that_starts_without_gpus_reports_that_no_channel_is_held),
                T(a_claim_keeps_its_channel_when_the_partition_changes),
                T(a_waiting_claim_uses_the_changed_partition),
                T(a_recreated_fabric_object_gets_all_channels),
                cmocka_unit_test(a_held_channel_of_an_unknown_partition_counts_for_the_nodes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
