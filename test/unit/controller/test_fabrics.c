/* SPDX-License-Identifier: Apache-2.0 */
/* A leading controller that assigns channels: what it writes into the fabric object, and what it asks the API
 * server before it frees a channel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "leading.h"
#include "api/names.h"
#include "base/clock.h"
#include "model/channel_report.h"
#include "rules/channels.h"

#define CLIQUE "3f7c1b2a-1111-2222-3333-444455556666.1"
#define OBJECT "00000000-0000-4000-8000-000000000001"
#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define OTHER "bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60"

struct world {
        struct leading l;
        const char *domains, *claims; /* items of lists */
        const char *channels;         /* of the fabric object; NULL: it does not exist */
        const char *held;
        const char *also_held; /* by the report of another Pod of the plugin; NULL: there is none */
        const char *pod_node;  /* the node of the plugin's Pods */
        const char *started;   /* when the plugin's Pods started; NULL: unknown */
        char created[4096], patched[1 << 17]; /* bodies of the last writes of the object */
        unsigned n_created, n_patched, n_domain_lists, n_claim_lists, n_lease_lists;
        bool is_cut;        /* the kubelet does not reach the API server */
        bool follows;       /* lists have the object as the next patches leave it */
        char latest[4096];  /* this object */
        unsigned conflicts; /* the number of patches that are answered with 409 */
        const char *node_spec;
        bool delays; /* the confirmation that ComputeDomains do not exist waits in `delayed` */
        struct fake_conn *delayed, *nodes, *fabrics; /* nodes, fabrics: the watches */
};

static char *fabric_text(const char *channels, const char *table_of, unsigned version) {
        return xasprintf("{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"ComputeDomainFabric\","
                         "\"metadata\":{\"name\":\"" CLIQUE "\",\"uid\":\"" OBJECT
                         "\",\"resourceVersion\":\"%u\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                         "\"tableOf\":%s,\"members\":[\"n1\"],\"nodes\":1,\"channelCount\":4,\"next\":1,"
                         "\"channels\":[%s]}",
                         version, table_of, channels);
}

/* The clock of the kubelet is years ahead. A live kubelet renews its Lease between two lists. */
static char *lease_text(const struct world *w) {
        return xasprintf("{\"metadata\":{\"name\":\"n1\"},\"spec\":{\"renewTime\":"
                         "\"2126-01-01T00:00:%02u.000000Z\"}}",
                         w->is_cut ? 0 : w->n_lease_lists % 60);
}

static char *items_of(void *u, const char *path) {
        struct world *w = u;
        static const char pod[] =
                "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"driver\",\"uid\":\"%s\","
                "\"resourceVersion\":\"1\","
                "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"annotations\":{"
                "\"" IMEX_ANNOTATION_HOST_CHANNELS "\":\"{\\\"" CLIQUE
                "\\\":{\\\"uid\\\":\\\"%s\\\",\\\"channelCount\\\":4,\\\"held\\\":{%s}}}\"}},"
                "\"spec\":{\"nodeName\":\"%s\"},\"status\":{\"phase\":\"Running\","
                "\"conditions\":[{\"type\":\"Ready\","
                "\"status\":\"True\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"},"
                "{\"type\":\"Initialized\",\"status\":\"%s\",\"lastTransitionTime\":\"%s\"}]}}";
        const char *is_started = w->started ? "True" : "False",
                   *started = str_or(w->started, "2025-01-01T00:00:00Z");
        if (fake_has(path, "/nodes"))
                return xasprintf("{\"metadata\":{\"name\":\"n1\",\"uid\":\"n\",\"resourceVersion\":\"1\"},"
                                 "\"spec\":{%s},"
                                 "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                                 str_or(w->node_spec, ""));
        if (fake_has(path, "/pods") && fake_has(path, "plugin")) {
                const char *object = w->channels ? OBJECT : "";
                char *text = xasprintf(pod, "p", "p", object, w->held, w->pod_node, is_started, started);
                if (!w->also_held)
                        return text;
                _cleanup_(freep) char *p = text, *q = xasprintf(pod, "q", "q", object, w->also_held,
                                                                w->pod_node, is_started, started);
                return xasprintf("%s,%s", p, q);
        }
        if (fake_has(path, "/resourceslices"))
                return xstrdup("{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"resourceVersion\":\"1\","
                               "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"annotations\":{"
                               "\"" CD_ANNOTATION_CLIQUE "\":\"" CLIQUE
                               "\"}},\"spec\":{\"driver\":\"" CD_DRIVER
                               "\",\"nodeName\":\"n1\",\"devices\":[{\"name\":\"channel-0\",\"attributes\":{"
                               "\"cliqueID\":{\"string\":\"" CLIQUE "\"}}}]}}");
        if (fake_has(path, "/resourceclaims")) {
                w->n_claim_lists++;
                return xstrdup(fake_has(path, "/namespaces/team-a/") && strstr(w->claims, "team-b")
                                       ? ""
                                       : w->claims);
        }
        if (fake_has(path, "/v1beta1/computedomainfabrics")) {
                static const char own[] = "\"" OBJECT "\"";
                if (*w->latest)
                        return xstrdup(w->latest);
                return w->channels ? fabric_text(w->channels, own, 5) : xstrdup("");
        }
        if (fake_has(path, "/computedomains")) {
                w->n_domain_lists++;
                return xstrdup(w->domains);
        }
        if (fake_has(path, "/namespaces/kube-node-lease/leases")) {
                w->n_lease_lists++;
                return lease_text(w);
        }
        return NULL;
}

static void on_write(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        static unsigned version = 10;
        _cleanup_(freep) char *text = NULL;
        if (!fake_has(r->path, "/v1beta1/computedomainfabrics")) {
                fake_refuse(c, 403, "not in this test");
        } else if (streq(r->method, "POST")) {
                snprintf(w->created, sizeof w->created, "%s", r->body);
                w->n_created++;
                text = fabric_text("", "null", ++version);
                fake_reply(c, 201, NULL, text);
        } else {
                snprintf(w->patched, sizeof w->patched, "%s", r->body);
                w->n_patched++;
                if (w->conflicts) {
                        w->conflicts--;
                        fake_refuse(c, 409, "the object has been modified");
                        return;
                }
                /* The object gets the channels of the patch. */
                const char *at = strstr(r->body, "\"channels\":[");
                assert_non_null(at);
                at += strlen("\"channels\":[");
                _cleanup_(freep) char *channels = xasprintf("%.*s", (int)(strrchr(at, ']') - at), at);
                text = fabric_text(channels, "\"" OBJECT "\"", ++version);
                if (w->follows)
                        snprintf(w->latest, sizeof w->latest, "%s", text);
                fake_reply(c, 200, NULL, text);
        }
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        bool watch = fake_query(r, "watch");
        if (!streq(r->method, "GET")) {
                on_write(w, c, r);
        } else if (fake_has(r->path, "/nodes/")) {
                fake_refuse(c, 403, "not in this test");
        } else if (w->delays && !watch && fake_has(r->path, "/computedomains") && w->n_domain_lists) {
                w->delayed = c;
        } else {
                if (watch && fake_has(r->path, "/nodes"))
                        w->nodes = c;
                if (watch && fake_has(r->path, "/v1beta1/computedomainfabrics"))
                        w->fabrics = c;
                leading_read(c, r, items_of, w);
        }
}

#define A_DOMAIN                                                                                             \
        "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN                       \
        "\",\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER                                       \
        "\"],\"annotations\":{\"" CD_ANNOTATION_MODE "\":\"" MODE_HOST_CHANNEL                               \
        "\"}},\"spec\":{\"channel\":{\"resourceClaimTemplate\":{\"name\":\"t\"}}}}"
#define A_CLAIM(isolation) A_CLAIM_IN("team-a", isolation)
#define A_CLAIM_IN(ns, isolation)                                                                            \
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"" ns "\",\"uid\":\"c\",\"resourceVersion\":\"1\","    \
        "\"creationTimestamp\":\"2026-02-01T00:00:00Z\"},\"status\":{\"allocation\":{\"devices\":{"          \
        "\"results\":[{"                                                                                     \
        "\"request\":\"channel\",\"driver\":\"" CD_DRIVER "\",\"pool\":\"n1\",\"device\":\"channel-3\"}],"   \
        "\"config\":[{\"source\":\"FromClaim\",\"requests\":[],\"opaque\":{\"driver\":\"" CD_DRIVER          \
        "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION                                                \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN "\"" isolation "}}}]}}}}"
#define OWN ",\"isolation\":\"Channel\""

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->domains = w->claims = w->held = "";
        w->pod_node = "n1";
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        *state = w;
        return 0;
}

/* failure: two leaders write a fabric object -> the second reads it again, and one channel is assigned */
static void a_partition_gets_its_object_and_a_domain_its_channel_after_a_conflict(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN;
        w->claims = A_CLAIM(OWN);
        w->conflicts = 1; /* another leader wrote first, so the controller reads the object again */
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_patched == 2);
        assert_int_equal(w->n_created, 1);
        assert_non_null(strstr(w->created, "\"name\":\"" CLIQUE "\""));
        assert_non_null(strstr(w->created, "\"channels\":[]"));
        assert_non_null(strstr(w->patched, "\"resourceVersion\":"));
        assert_non_null(strstr(w->patched, "\"tableOf\":\"" OBJECT "\""));
        assert_non_null(strstr(w->patched,
                               "{\"id\":1,\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\","
                               "\"name\":\"train\",\"uid\":\"" DOMAIN "\"}}"));
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_patched, 2); /* no further change */
}

/* failure: etcd loses slices and fabric object, and a Node is deleted -> no channel for a minute [etcd] */
static void a_table_that_is_younger_than_a_plugin_assigns_nothing_in_its_first_minute(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN;
        w->claims = A_CLAIM(OWN);
        w->started = "2025-12-31T23:58:59Z"; /* the slice is as old as the table */
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_patched);
        assert_non_null(strstr(w->patched, "\"channels\":[]"));
        assert_non_null(strstr(w->patched, FABRIC_CHANNELS_INCOMPLETE));
}

static void a_table_of_new_plugins_does_not_wait(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN;
        w->claims = A_CLAIM(OWN);
        w->started = "2025-12-31T23:59:00Z";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_patched);
        assert_non_null(strstr(w->patched, "{\"id\":1,\"owner\":"));
}

/* failure: a kubelet's clock is ahead -> its plugin counts as older than the fabric object [etcd] */
static void a_plugin_with_a_clock_that_is_ahead_counts_as_old(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN;
        w->claims = A_CLAIM(OWN);
        w->started = "2126-01-01T00:00:00Z";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_patched);
        assert_non_null(strstr(w->patched, FABRIC_CHANNELS_INCOMPLETE));
}

/* failure: etcd is restored under a running controller -> no channel is assigned before the plugins notice it
 * [etcd] */
static void a_table_that_went_back_assigns_nothing_for_three_minutes(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN;
        w->claims = A_CLAIM(OWN);
        w->channels = "";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->patched, "{\"id\":1,\"owner\":"));
        /* The list has the version from before this patch. */
        w->follows = true;
        fake_chunk(w->fabrics, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                               "\"reason\":\"Expired\",\"message\":\"too old\"}}\n");
        RUN_UNTIL(&w->l.loop, strstr(w->patched, FABRIC_CHANNELS_INCOMPLETE));
        assert_non_null(strstr(w->patched, "\"channels\":[]"));
        run_for(&w->l.loop, (CHANNELS_RESTORED_S - 5) * 1000);
        assert_non_null(strstr(w->patched, "\"channels\":[]"));
        RUN_UNTIL(&w->l.loop, strstr(w->patched, "{\"id\":1,\"owner\":"));
}

/* failure: a claim is for the shared channel -> no assigned channel is reserved for it */
static void a_claim_for_the_shared_channel_gets_no_assigned_channel(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN;
        w->claims = A_CLAIM("");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_patched);
        assert_non_null(strstr(w->patched, "\"channels\":[]"));
}

/* failure: the list of channels is empty, and a node holds one -> it is entered without a claim [etcd] */
static void a_held_channel_is_entered_without_a_claim(void **state) {
        struct world *w = *state;
        w->held = "\\\"2\\\":\\\"" OTHER "\\\"";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_created);
        assert_non_null(
                strstr(w->created, "{\"id\":2,\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" OTHER "\"}"));
}

static int64_t missing_s(const struct world *w) {
        return first_seen_left(w->l.c.memory.missing_holders, "", 60, clock_mono_s());
}

/* failure: a controller starts after a Node was deleted -> a plugin's Pod shows that containers may run
 * [etcd] */
static void the_plugin_of_a_deleted_node_shows_that_containers_may_still_run(void **state) {
        struct world *w = *state;
        w->pod_node = "n2";
        leading_start(&w->l);
        assert_in_range(missing_s(w), 50, 60);
}

static void the_plugin_of_an_existing_node_shows_no_deleted_node(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        assert_int_equal(missing_s(w), 0);
}

static void node_event(struct world *w, const char *type, const char *node, const char *uid,
                       unsigned version) {
        _cleanup_(freep) char *text =
                xasprintf("{\"type\":\"%s\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"metadata\":{"
                          "\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%u\"}}}\n",
                          type, node, uid, version);
        fake_chunk(w->nodes, text);
}

/* failure: an autoscaler deletes Nodes without GPUs all the time -> new tables of channels do not wait for
 * them [etcd] */
static void only_nodes_that_were_in_a_partition_may_still_hold_channels(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->nodes);
        node_event(w, "ADDED", "cpu-1", "c", 11);
        RUN_UNTIL(&w->l.loop, records_node(&w->l.c, "cpu-1"));
        node_event(w, "DELETED", "cpu-1", "c", 12);
        RUN_UNTIL(&w->l.loop, !records_node(&w->l.c, "cpu-1"));
        assert_int_equal(missing_s(w), 0);
        node_event(w, "DELETED", "n1", "n", 13);
        RUN_UNTIL(&w->l.loop, !records_node(&w->l.c, "n1"));
        assert_in_range(missing_s(w), 50, 60);
}

#define GONE                                                                                                 \
        "{\"id\":1,\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN         \
        "\"},\"releasing\":\"2026-01-02T00:00:00Z\"}"

/* failure: a channel is released -> it is free after confirmation and a new Lease of each node */
static void a_channel_is_freed_after_leases_and_confirmations(void **state) {
        struct world *w = *state;
        w->channels = GONE;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->patched, "\"channels\":[]"));
        assert_true(w->n_lease_lists >= 2);
        assert_true(w->n_domain_lists >= 2); /* one list for the cache, one for the confirmation */
        assert_true(w->n_claim_lists >= 2);
}

/* The time in a Lease proves nothing. Only a later time in the next list does. */
/* failure: a node's clock is wrong and its kubelet renews no Lease -> the channel stays taken */
static void a_channel_stays_while_a_kubelet_renews_no_lease_whatever_its_clock(void **state) {
        struct world *w = *state;
        w->channels = GONE;
        w->is_cut = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_lease_lists == 2 && strstr(w->patched, "ChannelsHeld"));
        assert_non_null(strstr(w->patched, "node n1 has not renewed its Lease"));
        assert_non_null(strstr(w->patched, "\"id\":1"));
}

/* The plugin refuses a claim of a ComputeDomain in another namespace, so it holds no channel. */
/* failure: a claim of another namespace names a deleted ComputeDomain -> it keeps no channel [tenants] */
static void a_claim_of_another_namespace_keeps_no_channel(void **state) {
        struct world *w = *state;
        w->channels = GONE;
        w->claims = A_CLAIM_IN("team-b", OWN);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->patched, "\"channels\":[]"));
}

/* failure: a node holds a channel of a deleted ComputeDomain -> the channel is not freed, and a condition
 * names the node */
static void a_held_channel_is_not_freed(void **state) {
        struct world *w = *state;
        w->channels = GONE;
        w->held = "\\\"1\\\":\\\"" DOMAIN "\\\"";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->patched, "ChannelsHeld"));
        assert_non_null(strstr(w->patched, "node n1 holds it"));
        run_for(&w->l.loop, 300);
        assert_non_null(strstr(w->patched, "\"id\":1"));
}

/* The reports of 400 channels, in the JSON text of an annotation. */
static void list_held(int first, struct buf *out) {
        for (int i = first; i < first + 400; i++)
                buf_addf(out, "%s\\\"%d\\\":\\\"%08d-8f4e-4f0e-9f0a-1b2c3d4e5f60\\\"", i > first ? "," : "",
                         i + 2, i);
}

/* failure: several Pods of a node report too many channels -> the node counts as silent, and decisions
 * continue [tenants] */
static void a_node_whose_pods_report_too_many_channels_counts_as_silent(void **state) {
        struct world *w = *state;
        _cleanup_(buf_done) struct buf held = BUF_INIT(1 << 20), also_held = BUF_INIT(1 << 20);
        list_held(0, &held);
        list_held(400, &also_held);
        w->channels = GONE;
        w->held = buf_str(&held);
        w->also_held = buf_str(&also_held);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->patched, "ChannelsHeld"));
        assert_non_null(strstr(w->patched, "node n1 has no plugin that is Ready and reports"));
        int n = 0;
        for (const char *at = w->patched; (at = strstr(at, "{\"id\":")); at++)
                n++;
        assert_int_equal(n, 1 + CHANNEL_REPORT_HELD_MAX);
}

/* The plugin of a node that is out of service holds a channel. The Node changes before the channel is freed.
 */
static void begin_out_of_service(struct world *w) {
        w->channels = GONE;
        w->held = "\\\"1\\\":\\\"" DOMAIN "\\\"";
        w->node_spec = "\"taints\":[{\"key\":\"" NODE_TAINT_OUT_OF_SERVICE "\"}]";
        w->delays = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->delayed && w->nodes);
}

static void confirm(struct world *w) {
        w->delays = false;
        fake_reply(w->delayed, 200, NULL,
                   "{\"kind\":\"ComputeDomainList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}");
}

static void a_node_that_is_out_of_service_keeps_no_channel(void **state) {
        struct world *w = *state;
        begin_out_of_service(w);
        confirm(w);
        RUN_UNTIL(&w->l.loop, strstr(w->patched, "\"channels\":[]"));
}

/* failure: a Node with the out-of-service taint changes, and cannot be read -> the taint frees no channel
 * [powered-off] */
static void an_earlier_out_of_service_taint_frees_no_channel(void **state) {
        struct world *w = *state;
        begin_out_of_service(w);
        fake_chunk(w->nodes,
                   "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"metadata\":{"
                   "\"name\":\"n1\",\"uid\":\"n\",\"resourceVersion\":\"11\"}}}\n");
        RUN_UNTIL(&w->l.loop, records_node(&w->l.c, "n1")->partial);
        confirm(w);
        RUN_UNTIL(&w->l.loop, strstr(w->patched, "ChannelsHeld"));
        assert_non_null(strstr(w->patched, "node n1 holds it"));
        run_for(&w->l.loop, 300);
        assert_non_null(strstr(w->patched, "\"id\":1"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        a_partition_gets_its_object_and_a_domain_its_channel_after_a_conflict, setup,
                        leading_teardown),
                cmocka_unit_test_setup_teardown(
                        a_table_that_is_younger_than_a_plugin_assigns_nothing_in_its_first_minute, setup,
                        leading_teardown),
                cmocka_unit_test_setup_teardown(a_table_of_new_plugins_does_not_wait, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(a_plugin_with_a_clock_that_is_ahead_counts_as_old, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(a_table_that_went_back_assigns_nothing_for_three_minutes,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(a_claim_for_the_shared_channel_gets_no_assigned_channel,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(a_held_channel_is_entered_without_a_claim, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(
                        the_plugin_of_a_deleted_node_shows_that_containers_may_still_run, setup,
                        leading_teardown),
                cmocka_unit_test_setup_teardown(the_plugin_of_an_existing_node_shows_no_deleted_node, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(only_nodes_that_were_in_a_partition_may_still_hold_channels,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(a_channel_is_freed_after_leases_and_confirmations, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(
                        a_channel_stays_while_a_kubelet_renews_no_lease_whatever_its_clock, setup,
                        leading_teardown),
                cmocka_unit_test_setup_teardown(a_claim_of_another_namespace_keeps_no_channel, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(a_held_channel_is_not_freed, setup, leading_teardown),
                cmocka_unit_test_setup_teardown(a_node_whose_pods_report_too_many_channels_counts_as_silent,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(a_node_that_is_out_of_service_keeps_no_channel, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(an_earlier_out_of_service_taint_frees_no_channel, setup,
                                                leading_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
