/* SPDX-License-Identifier: Apache-2.0 */
/* Claims that pods on several nodes share: the device is on no node, and each ComputeDomain has its channel
 * (imex.isolation=channel). */
#include "world/cd_node.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "base/file.h"

#define ENTRY(id, domain)                                                                                    \
        "{\"id\":" #id ",\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"user\",\"name\":\"cd\","      \
        "\"uid\":\"" domain "\"}}"
#define NODE_OF(id) "\"/dev/nvidia-caps-imex-channels/channel" #id "\""
#define PERIOD_MS UINT64_C(600000)
#define CLAIM_3 "c0000000-0000-4000-8000-000000000003"
#define OWNER(domain)                                                                                        \
        "{\"apiVersion\":\"resource.nvidia.com/"                                                             \
        "v1beta1\",\"kind\":\"ComputeDomain\",\"name\":\"cd\",\"uid\":"                                      \
        "\"" domain "\",\"controller\":true}"
#define GROUP                                                                                                \
        "{\"apiVersion\":\"scheduling.k8s.io/v1beta1\",\"kind\":\"PodGroup\",\"name\":\"g\",\"uid\":\"g\"}"

static void shared_claim(const char *ns, const char *name, const char *uid, const char *domain,
                         const char *owners, const char *pods) {
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":"
                "\"1\","
                "\"ownerReferences\":[%s]},\"status\":{\"allocation\":{\"devices\":{\"results\":[{"
                "\"request\":"
                "\"channel\",\"driver\":\"" CD_DRIVER "\",\"pool\":\"" CD_POOL_SHARED
                "\",\"device\":\"" CD_DEVICE_SHARED
                "\",\"shareID\":\"a5d1a5d1-0000-4000-8000-000000000000\"}],\"config\":[{\"source\":"
                "\"FromClaim\",\"requests\":[\"channel\"],\"opaque\":{\"driver\":\"" CD_DRIVER
                "\",\"parameters\":{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":"
                "\"ComputeDomainChannelConfig\",\"domainID\":\"%s\",\"isolation\":\"Channel\"}}}]}},"
                "\"reservedFor\":[%s]}}",
                name, ns, uid, owners, domain, pods);
        api_claim_json(ns, name, json);
}

static int setup(void **state) {
        if (world_setup(state) < 0)
                return -1;
        world_mode_own_channels();
        world_start(BOOT);
        api_domain("user", "cd2", DOMAIN_B, false);
        shared_claim("user", "shared", CLAIM_1, DOMAIN_A, OWNER(DOMAIN_A),
                     "{\"resource\":\"pods\",\"name\":\"a\",\"uid\":\"a\"}");
        shared_claim("user", "other", CLAIM_2, DOMAIN_B, OWNER(DOMAIN_B), "");
        return 0;
}

static void assigned(const char *channels, int rv) {
        api_fabric(CLIQUE, rv, channels, "");
}

static void prepared(const char *name, const char *uid) {
        struct dra_op op = { 0 };
        prepare(&op, name, uid);
        world_wait(&op, PREPARED);
}

static void has_channel(const char *uid, const char *node) {
        _cleanup_(freep) char *cdi = world_cdi(uid);
        assert_non_null(cdi);
        assert_non_null(strstr(cdi, node));
}

static void on_tick(uv_timer_t *t) {
        --*(int *)t->data;
}

static void on_tick_closed(uv_handle_t *h) {
        free(h);
}

/* Runs until the report has the text, or no longer has it. */
static void reports(const char *part, bool has) {
        int ticks = 400;
        uv_timer_t *tick = xnew(uv_timer_t);
        const char *now;
        uv_timer_init(&w.loop, tick);
        tick->data = &ticks;
        uv_timer_start(tick, on_tick, 10, 10);
        do {
                uv_run(&w.loop, UV_RUN_ONCE);
                world_turn();
                now = str_or(pod_annotation(IMEX_ANNOTATION_HOST_CHANNELS), "");
        } while (ticks > 0 && !strstr(now, part) == has);
        uv_close((uv_handle_t *)tick, on_tick_closed);
        if (!strstr(now, part) == has)
                fail_msg("'%s' is %sin: %s", part, has ? "not " : "", now);
}

static void a_shared_claim_gets_the_channel_of_its_ComputeDomain(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A) "," ENTRY(8, DOMAIN_B), 5);
        prepare(&op, "shared", CLAIM_1);
        world_wait(&op, PREPARED);
        assert_string_equal(op.devices, "channel/" CD_POOL_SHARED "/" CD_DEVICE_SHARED
                                        "=k8s.compute-domain.nvidia.com/claim=" CLAIM_1 "-" CD_DEVICE_SHARED);
        has_channel(CLAIM_1, NODE_OF(7));
        reports("\"7\":\"" DOMAIN_A "\"", true);
}

/* The device has no holder. */
static void claims_of_several_ComputeDomains_use_the_shared_device_of_a_node(void **state) {
        assigned(ENTRY(7, DOMAIN_A) "," ENTRY(8, DOMAIN_B), 5);
        prepared("shared", CLAIM_1);
        prepared("other", CLAIM_2);
        has_channel(CLAIM_1, NODE_OF(7));
        has_channel(CLAIM_2, NODE_OF(8));
        /* A claim of the node's own devices is beside them. */
        api_claim("user", "local", CLAIM_3, "channel-0", CHANNEL, DOMAIN_A, ",\"isolation\":\"Channel\"");
        prepared("local", CLAIM_3);
        has_channel(CLAIM_3, NODE_OF(7));
}

/* failure: a shared claim waits for a channel -> the node reports its ComputeDomain, and no longer after it
 * has the channel */
static void a_shared_claim_that_waits_asks_for_the_channel(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(8, DOMAIN_B), 5);
        prepare(&op, "shared", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        reports("\"asks\":[\"" DOMAIN_A "\"]", true);
        assigned(ENTRY(8, DOMAIN_B) "," ENTRY(9, DOMAIN_A), 6);
        api_fabric_event();
        world_wait(&op, PREPARED);
        has_channel(CLAIM_1, NODE_OF(9));
        reports("\"9\":\"" DOMAIN_A "\"", true);
        reports("asks", false);
}

/* failure: a node reboots while a shared claim waits -> it asks again only when the kubelet prepares the
 * claim [rebooted] */
static void a_shared_claim_of_an_earlier_boot_does_not_ask(void **state) {
        struct dra_op gone = { 0 }, op = { 0 };
        (void)state;
        world_stop(w.claims);
        w.retries = true;
        world_start(BOOT);
        prepare(&gone, "shared", CLAIM_1);
        world_turn();
        world_stop(w.claims);
        world_start("33333333-3333-4333-8333-333333333333");
        world_turn();
        claims_registered(w.claims);
        world_turn();
        assert_false(TAILQ_EMPTY(&w.claims->failed));
        prepare(&op, "other", CLAIM_2);
        reports("\"asks\":[\"" DOMAIN_B "\"]", true);
}

/* failure: a Prepare of a shared claim fails -> the node reports its ComputeDomain while the kubelet retries
 */
static void a_shared_claim_asks_while_the_kubelet_retries(void **state) {
        world_stop(w.claims);
        w.retries = true;
        world_start(BOOT);
        assigned(ENTRY(8, DOMAIN_B), 5);
        for (int i = 0; i < 2; i++) {
                struct dra_op op = { .timeout_ms = 200 };
                prepare(&op, "shared", CLAIM_1);
                world_wait(&op, FAILED);
                reports("\"asks\":[\"" DOMAIN_A "\"]", true);
        }
        struct dra_op end = { 0 };
        kubelet_unprepare(w.claims, &end, "user", "shared", CLAIM_1);
        world_wait(&end, UNPREPARED);
        reports("asks", false);
}

/* failure: a channel becomes free after the Prepare of a shared claim has failed -> the kubelet is asked to
 * retry
 */
static void a_shared_claim_asks_for_the_channel_after_prepare_has_failed(void **state) {
        struct dra_op failed = { .timeout_ms = 400 }, again = { 0 };
        world_stop(w.claims);
        w.retries = true;
        world_start(BOOT);
        store_set(&api.store, &kube_pods, "user", "a",
                  "{\"metadata\":{\"namespace\":\"user\",\"name\":\"a\",\"uid\":\"a\",\"resourceVersion\":"
                  "\"1\"}}");
        assigned(ENTRY(8, DOMAIN_B), 5);
        prepare(&failed, "shared", CLAIM_1);
        world_wait(&failed, FAILED);
        world_turn();
        reports("\"asks\":[\"" DOMAIN_A "\"]", true);
        assigned(ENTRY(8, DOMAIN_B) "," ENTRY(9, DOMAIN_A), 6);
        api_fabric_event();
        world_turn();
        const struct object *pod = store_find(&api.store, &kube_pods, "user", "a");
        assert_non_null(strstr(pod->json, CD_ANNOTATION_RETRY));
        prepare(&again, "shared", CLAIM_1);
        world_wait(&again, PREPARED);
        reports("asks", false);
}

/* A claim of one node needs no report: its allocation names the node. */
static void a_local_claim_that_waits_asks_for_nothing(void **state) {
        struct dra_op op = { .timeout_ms = 200 };
        assigned(ENTRY(8, DOMAIN_B), 5);
        api_claim("user", "local", CLAIM_3, "channel-0", CHANNEL, DOMAIN_A, ",\"isolation\":\"Channel\"");
        prepare(&op, "local", CLAIM_3);
        world_wait(&op, FAILED);
        reports("asks", false);
}

/* failure: a pod restarts, or another pod joins -> the kubelet's second Prepare gets the same device */
static void a_second_prepare_gets_the_same_device(void **state) {
        assigned(ENTRY(7, DOMAIN_A), 5);
        prepared("shared", CLAIM_1);
        _cleanup_(freep) char *before = world_cdi(CLAIM_1);
        shared_claim("user", "shared", CLAIM_1, DOMAIN_A, OWNER(DOMAIN_A),
                     "{\"resource\":\"pods\",\"name\":\"b\",\"uid\":\"b\"}");
        prepared("shared", CLAIM_1);
        _cleanup_(freep) char *after = world_cdi(CLAIM_1);
        assert_string_equal(before, after);
}

/* failure: the last pod of a shared claim ends on the node -> a later pod gets the channel again */
static void a_later_pod_gets_the_channel_again(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        prepared("shared", CLAIM_1);
        kubelet_unprepare(w.claims, &op, "user", "shared", CLAIM_1);
        world_wait(&op, UNPREPARED);
        assert_null(world_cdi(CLAIM_1));
        reports("\"7\":\"" DOMAIN_A "\"", false);
        prepared("shared", CLAIM_1);
        has_channel(CLAIM_1, NODE_OF(7));
}

/* The claim stays reserved for the PodGroup, so its status is the same as before. */
/* failure: a waiting pod of a PodGroup is replaced -> the next pod gets the channel without a refusal */
static void the_next_pod_of_a_pod_group_gets_the_channel(void **state) {
        struct dra_op first = { 0 }, end = { 0 }, next = { 0 };
        shared_claim("user", "of-group", CLAIM_3, DOMAIN_A, GROUP,
                     "{\"apiGroup\":\"scheduling.k8s.io\",\"resource\":\"podgroups\",\"name\":\"g\","
                     "\"uid\":\"g\"}");
        assigned(ENTRY(8, DOMAIN_B), 5);
        prepare(&first, "of-group", CLAIM_3);
        reports("\"asks\":[\"" DOMAIN_A "\"]", true);
        kubelet_unprepare(w.claims, &end, "user", "of-group", CLAIM_3);
        world_wait(&end, UNPREPARED);
        assert_int_equal(first.answer, FAILED);
        assert_int_equal(world_entry(w.claims, CLAIM_3)->state, CHECKPOINT_ABORTED);
        prepare(&next, "of-group", CLAIM_3);
        reports("\"asks\":[\"" DOMAIN_A "\"]", true);
        assigned(ENTRY(8, DOMAIN_B) "," ENTRY(9, DOMAIN_A), 6);
        api_fabric_event();
        world_wait(&next, PREPARED);
        has_channel(CLAIM_3, NODE_OF(9));
}

/* The API server cannot show whether the kubelet has forgotten the claim: a force-deleted pod is no longer in
 * status.reservedFor, and its container may still run. */
/* failure: an old kubelet forgets an unused shared claim -> the node keeps its channel until it is deleted */
static void a_forgotten_shared_claim_keeps_its_channel_until_it_is_deleted(void **state) {
        assigned(ENTRY(7, DOMAIN_A), 5);
        prepared("shared", CLAIM_1);
        shared_claim("user", "shared", CLAIM_1, DOMAIN_A, OWNER(DOMAIN_A), "");
        for (unsigned i = 0; i < 6; i++) {
                if (i == 4)
                        api_remove_claim("user", "shared");
                has_channel(CLAIM_1, NODE_OF(7));
                claim_gc_deleted_claims(w.claims->claim_gc, uv_now(&w.loop) + i * PERIOD_MS);
                world_turn();
        }
        assert_null(world_cdi(CLAIM_1));
        reports("\"7\":\"" DOMAIN_A "\"", false);
}

/* failure: the checkpoint is lost -> shared claims are rebuilt with their pool and channel */
static void a_lost_checkpoint_is_rebuilt_with_shared_claims(void **state) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        struct err e;
        assigned(ENTRY(10, DOMAIN_A), 5);
        prepared("shared", CLAIM_1);
        world_stop(w.claims);
        assert_int_equal(file_remove(path, &e), 0);
        pod_replaced();
        world_start(BOOT);
        const struct node_device *d = &world_entry(w.claims, CLAIM_1)->devices[0];
        assert_string_equal(d->name, CD_DEVICE_SHARED);
        assert_string_equal(d->pool, CD_POOL_SHARED);
        assert_int_equal(d->id, 10);
        reports("\"10\":\"" DOMAIN_A "\"", true);
}

/* ---- refused claims ---- */

/* failure: a claim of another namespace has the configuration of a ComputeDomain -> it is refused [tenants]
 */
static void a_claim_of_another_namespace_is_refused(void **state) {
        struct dra_op op = { 0 };
        assigned(ENTRY(7, DOMAIN_A), 5);
        shared_claim("thief", "shared", CLAIM_3, DOMAIN_A, OWNER(DOMAIN_A), "");
        kubelet_prepare(w.claims, &op, "thief", "shared", CLAIM_3);
        world_wait(&op, FAILED);
        assert_non_null(
                strstr(op.msg, "there is no ComputeDomain " DOMAIN_A " in namespace 'thief' of the claim"));
        assert_null(world_cdi(CLAIM_3));
}

/* failure: a shared claim is restored from a backup -> it is refused with a remedy [tenants] */
static void a_restored_claim_is_refused_with_a_remedy(void **state) {
        assigned(ENTRY(7, DOMAIN_A), 5);
        shared_claim("user", "shared", CLAIM_3, DOMAIN_A, OWNER(DOMAIN_B), "");
        refused_at_once("shared", CLAIM_3,
                        "the driver did not create this claim for ComputeDomain " DOMAIN_A);
        shared_claim("user", "shared", CLAIM_3, DOMAIN_A, "", "");
        refused_at_once("shared", CLAIM_3,
                        "restored from a backup, copied, or written by hand. Delete the claim");
        /* The ComputeDomain was restored, too, and has another UID now. */
        shared_claim("user", "shared", CLAIM_3, CLAIM_2, OWNER(CLAIM_2), "");
        struct dra_op op = { 0 };
        prepare(&op, "shared", CLAIM_3);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "there is no ComputeDomain " CLAIM_2 " in namespace 'user'"));
}

static void a_claim_from_a_template_is_prepared_for_its_pod_group(void **state) {
        assigned(ENTRY(7, DOMAIN_A), 5);
        shared_claim("user", "of-group", CLAIM_3, DOMAIN_A, GROUP, "");
        prepared("of-group", CLAIM_3);
        has_channel(CLAIM_3, NODE_OF(7));
}

/* failure: the isolation was changed to `domain` -> shared claims are refused with the cause */
static void isolation_by_domain_refuses_shared_claims(void **state) {
        world_stop(w.claims);
        world_mode("HostManagedIMEX=true", "");
        world_start(BOOT);
        refused_at_once("shared", CLAIM_1, "claims that are shared across nodes need imex.isolation=channel");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
        const struct CMUnitTest tests[] = {
                T(a_shared_claim_gets_the_channel_of_its_ComputeDomain),
                T(claims_of_several_ComputeDomains_use_the_shared_device_of_a_node),
                T(a_shared_claim_that_waits_asks_for_the_channel),
                T(a_shared_claim_of_an_earlier_boot_does_not_ask),
                T(a_shared_claim_asks_while_the_kubelet_retries),
                T(a_shared_claim_asks_for_the_channel_after_prepare_has_failed),
                T(a_local_claim_that_waits_asks_for_nothing),
                T(a_second_prepare_gets_the_same_device),
                T(a_later_pod_gets_the_channel_again),
                T(the_next_pod_of_a_pod_group_gets_the_channel),
                T(a_forgotten_shared_claim_keeps_its_channel_until_it_is_deleted),
                T(a_lost_checkpoint_is_rebuilt_with_shared_claims),
                T(a_claim_of_another_namespace_is_refused),
                T(a_restored_claim_is_refused_with_a_remedy),
                T(a_claim_from_a_template_is_prepared_for_its_pod_group),
                T(isolation_by_domain_refuses_shared_claims),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
