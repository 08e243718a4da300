/* SPDX-License-Identifier: Apache-2.0 */
/* A leading controller and the device that pods on several nodes share: its ResourceSlice, the label of
 * Nodes, and what the ComputeDomain reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shared_claims_world.h"
#include "controller/shared_device.h"

static void the_first_shared_claim_gets_a_slice_then_labels_and_the_claim(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_claims && strstr(w->node, CD_LABEL_SHARED));
        assert_int_equal(w->n_slices, 1);
        assert_non_null(strstr(w->slice, "\"allowMultipleAllocations\":true"));
        assert_non_null(strstr(w->slice, "\"name\":\"" CD_POOL_SHARED "\""));
        assert_non_null(strstr(w->slice, "\"key\":\"" CD_LABEL_SHARED "\",\"operator\":\"In\""));
        assert_null(strstr(w->slice, "capacity"));
        assert_non_null(strstr(w->node, "\"" CD_LABEL_SHARED "\":\"true\""));
        assert_non_null(strstr(w->claim, "\"deviceClassName\":\"" CD_CLASS_SHARED "\""));
        assert_non_null(strstr(w->claim, "\"domainID\":\"" DOMAIN "\",\"isolation\":\"Channel\""));
        assert_non_null(strstr(w->claim, "\"kind\":\"ComputeDomain\",\"name\":\"train\",\"uid\":\"" DOMAIN
                                         "\",\"controller\":true"));
        assert_int_equal(w->n_templates, 0);
        relabel(w, 11, LABEL);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "SharedClaimCreated"));
        assert_int_equal(w->n_claims, 1);
}

/* failure: a ComputeDomain with a shared claim replaces another while the watch is interrupted -> the slice
 * is written */
static void a_ComputeDomain_that_replaces_another_gets_its_slice(void **state) {
        struct world *w = *state;
        w->channel = "\"resourceClaimTemplate\":{\"name\":\"t\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_templates && w->cds);
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_slices, 0);
        w->uid = "aaaaaaaa-8f4e-4f0e-9f0a-000000000002";
        w->channel = NAMED;
        fake_chunk(w->cds, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                           "\"reason\":\"Expired\"}}\n");
        RUN_UNTIL(&w->l.loop, w->n_slices);
}

static void without_a_shared_claim_neither_slice_nor_label_is_written(void **state) {
        struct world *w = *state;
        w->channel = "\"resourceClaimTemplate\":{\"name\":\"t\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_templates);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_slices, 0);
        assert_int_equal(w->n_claims, 0);
        assert_null(strstr(w->node, CD_LABEL_SHARED));
        assert_null(strstr(w->status, "SharedClaimAvailable"));
}

/* With such a slice, the first claim would get the device for itself. */
/* failure: the API server drops allowMultipleAllocations -> no node offers the device, a condition reports it
 */
static void an_API_server_that_drops_the_field_gets_no_device(void **state) {
        struct world *w = *state;
        w->drops = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_deleted && strstr(w->status, "SharedClaimsNotSupported"));
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_slices, 1); /* not again before some minutes have passed */
        assert_int_equal(w->n_claims, 0);
        assert_null(strstr(w->node, CD_LABEL_SHARED));
}

#define FOREIGN "{" FOREIGN_TAIL
#define FOREIGN_TAIL                                                                                         \
        "\"metadata\":{\"name\":\"" CD_SLICE_SHARED "\",\"uid\":\"f\",\"resourceVersion\":\"11\"},"         \
        "\"spec\":{\"driver\":\"" CD_DRIVER "\",\"devices\":[{\"name\":\"" CD_DEVICE_SHARED "\"}]}}"

/* failure: a slice of another client has the name -> it is replaced at once, and no condition blames the API
 * server */
static void a_foreign_slice_is_replaced(void **state) {
        struct world *w = *state;
        w->slices = "," FOREIGN;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_deleted && w->of_slices);
        fake_chunk(w->of_slices, "{\"type\":\"DELETED\",\"object\":{\"kind\":\"ResourceSlice\","
                                 "\"apiVersion\":\"resource.k8s.io/v1\"," FOREIGN_TAIL "}\n");
        run_for(&w->l.loop, 3000);
        assert_int_equal(w->n_deleted, 1);
        assert_int_equal(w->n_slices, 1);
        assert_true(w->n_claims > 0);
        assert_null(strstr(w->status, "SharedClaimsNotSupported"));
}

/* failure: a slice of another driver has the name -> a condition reports it until the name is free */
static void a_slice_of_another_driver_is_reported(void **state) {
        struct world *w = *state;
        w->slice_taken = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "a ResourceSlice of another driver has this name. Delete it"));
        assert_non_null(strstr(w->status, "\"SharedClaimPending\""));
        assert_int_equal(w->n_deleted, 0);
        w->slice_taken = false;
        RUN_UNTIL(&w->l.loop, w->n_claims);
        RUN_UNTIL(&w->l.loop, !strstr(w->status, "another driver"));
}

/* failure: a cluster is upgraded to a version with shared devices -> the controller uses them without a
 * restart [upgrade] */
static void an_upgraded_API_server_gets_the_device(void **state) {
        struct world *w = *state;
        w->betas = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "SharedClaimsNotSupported"));
        assert_int_equal(w->n_slices, 0);
        w->betas = false;
        run_for(&w->l.loop, 700000);
        assert_string_equal(kube_resource_api(w->l.client), "v1");
        RUN_UNTIL(&w->l.loop, w->n_slices && w->n_claims);
}

/* failure: an API server of an earlier version answers during an upgrade -> the shared device stays [upgrade]
 */
static void an_API_server_of_an_earlier_version_keeps_the_device(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->label = LABEL;
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->watch && strstr(w->status, "SharedClaimCreated"));
        w->betas = true;
        w->status[0] = w->node[0] = 0;
        fake_close(w->watch);
        RUN_UNTIL(&w->l.loop, !streq(kube_resource_api(w->l.client), "v1"));
        shared_device_changed(&w->l.c);
        run_for(&w->l.loop, 2000);
        assert_int_equal(w->n_deleted, 0);
        assert_null(strstr(w->status, "SharedClaimsNotSupported"));
        assert_null(strstr(w->node, CD_LABEL_SHARED));
}

/* failure: no node offers channels -> the condition SharedClaimAvailable is False at once, and an Event
 * reports it */
static void a_device_that_no_node_offers_is_reported(void **state) {
        static const char *const channels[] = { NAMED, "\"sharedResourceClaimTemplate\":{\"name\":\"s\"}" };
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION);
        w->accepts = true;
        for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
                w->channel = channels[i];
                w->event[0] = w->status[0] = 0;
                w->nodes = NULL;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, strstr(w->status, "\"SharedClaimPending\""));
                assert_non_null(strstr(w->status, "No Node has the label " CD_LABEL_SHARED " yet"));
                assert_string_equal(w->event, "");
                RUN_UNTIL(&w->l.loop, strstr(w->status, "\"NoChannelOffered\""));
                assert_non_null(strstr(w->status, "\"SharedClaimAvailable\",\"status\":\"False\""));
                RUN_UNTIL(&w->l.loop, strstr(w->event, "NoChannelOffered"));
                assert_non_null(strstr(w->event, "\"type\":\"Warning\""));
                unsigned n = w->n_statuses;
                run_for(&w->l.loop, 60000);
                assert_int_equal(w->n_statuses, n);
                relabel(w, 11, LABEL);
                RUN_UNTIL(&w->l.loop, strstr(w->event, "SharedClaimCreated"));
                assert_non_null(strstr(w->status, "\"SharedClaimAvailable\",\"status\":\"True\""));
                assert_int_equal(w->n_statuses, n + 1);
                controller_stop(&w->l.c);
        }
}

#define IS_REFUSED(s, what)                                                                                  \
        (strstr((s), "\"WriteFailed\"") && strstr((s), what) && strstr((s), "a webhook refuses"))

/* failure: a webhook refuses the Node label of shared claims -> the ComputeDomain reports it until the label
 * is written */
static void a_refused_label_is_reported(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->accepts = w->refuses_node = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, IS_REFUSED(w->status, "patch Node n1"));
        assert_non_null(strstr(w->status, "\"NoChannelOffered\""));
        w->refuses_node = false;
        RUN_UNTIL(&w->l.loop, !strstr(w->status, "WriteFailed"));
}

#define ON_NODE                                                                                              \
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"team-a\",\"uid\":\"c\",\"resourceVersion\":\"2\"},"   \
        "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"" CD_DRIVER   \
        "\",\"pool\":\"n1\",\"device\":\"channel-0\"}],\"config\":[{\"source\":\"FromClaim\",\"requests\":[" \
        "],"                                                                                                 \
        "\"opaque\":{\"driver\":\"" CD_DRIVER "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION          \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN                                  \
        "\",\"isolation\":\"Channel\"}}}]}}}}"

/* failure: a webhook refuses the DaemonSet with isolation by channel -> the ComputeDomains whose pods wait
 * report it */
static void refused_daemons_are_reported(void **state) {
        static const struct {
                const char *claims, *label;
        } cases[] = { { "", "" }, { ON_NODE, LABEL } }; /* no node for its pods; a node without a daemon */
        struct world *w = *state;
        leading_set_mode(&w->l, "", "channel");
        w->slices = PUBLISHED;
        w->accepts = w->refuses_daemons = true;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                w->claims = cases[i].claims;
                w->label = cases[i].label;
                w->status[0] = 0;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, IS_REFUSED(w->status, CD_DAEMON_OBJECT));
                controller_stop(&w->l.c);
        }
}

/* failure: nothing waits for a refused DaemonSet -> the ComputeDomain does not report it */
static void refused_daemons_that_no_pod_needs_are_not_reported(void **state) {
        struct world *w = *state;
        leading_set_mode(&w->l, "", "channel");
        w->slices = PUBLISHED;
        w->label = LABEL;
        w->accepts = w->refuses_daemons = w->refuses_node = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->status);
        run_for(&w->l.loop, 30000);
        assert_null(strstr(w->status, "WriteFailed"));
}

/* failure: all nodes withhold their channels for some seconds -> the condition SharedClaimAvailable does not
 * change */
static void a_short_time_without_a_node_changes_no_condition(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->label = LABEL;
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION);
        w->accepts = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->event, "SharedClaimCreated"));
        unsigned n = w->n_statuses;
        for (unsigned i = 0; i < 3; i++) {
                relabel(w, 11 + 2 * i, "");
                run_for(&w->l.loop, 3500);
                relabel(w, 12 + 2 * i, LABEL);
                run_for(&w->l.loop, 3500);
        }
        assert_int_equal(w->n_statuses, n);
        relabel(w, 20, "");
        RUN_UNTIL(&w->l.loop, strstr(w->event, "NoChannelOffered"));
        assert_int_equal(w->n_statuses, n + 1);
}

/* failure: imex.isolation=domain -> a ComputeDomain with a shared claim is not admitted, and states why */
static void isolation_by_domain_rejects_shared_claims(void **state) {
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "domain");
        w->channel = NAMED ",\"resourceClaimTemplate\":{\"name\":\"t\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "InvalidSpec"));
        assert_non_null(strstr(w->status, "need imex.isolation=channel"));
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_slices + w->n_claims + w->n_templates, 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, leading_teardown)
        const struct CMUnitTest tests[] = {
                T(the_first_shared_claim_gets_a_slice_then_labels_and_the_claim),
                T(a_ComputeDomain_that_replaces_another_gets_its_slice),
                T(without_a_shared_claim_neither_slice_nor_label_is_written),
                T(an_API_server_that_drops_the_field_gets_no_device),
                T(a_foreign_slice_is_replaced),
                T(a_slice_of_another_driver_is_reported),
                T(an_upgraded_API_server_gets_the_device),
                T(an_API_server_of_an_earlier_version_keeps_the_device),
                T(a_device_that_no_node_offers_is_reported),
                T(a_refused_label_is_reported),
                T(refused_daemons_are_reported),
                T(refused_daemons_that_no_pod_needs_are_not_reported),
                T(a_short_time_without_a_node_changes_no_condition),
                T(isolation_by_domain_rejects_shared_claims),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
