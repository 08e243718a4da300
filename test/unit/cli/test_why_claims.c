/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of `why` about claims that the controller creates by name: shared claims, and those of
 * automatic ComputeDomains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/mem.h"
#include "cli/tool_kinds.h"
#include "unit/cli/why_world.h"

#define AUTO "auto-train-0a1b2c3d" /* the ComputeDomain of the pod, and its claim */
#define AUTO_ENTRY "{'name':'auto-domain','resourceClaimName':'" AUTO "'}"

static void put_controller_with(const char *env, int ready) {
        cluster_put(cluster, &tool_kinds_deployments,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-controller','labels':{'app.kubernetes.io/version':'0.1.0'}},"
                    "'spec':{'replicas':2,'template':{'spec':{'containers':[{'name':'compute-domain','image':"
                    "'registry.example/compute-domains:v0.1.0',"
                    "'command':['compute-domain-controller'],'env':[%s]}]}}},'status':{'readyReplicas':%d}}",
                    env, ready);
}

/* A pod with the label, as the policy of the chart has changed it. */
static void put_labelled_pod(const char *claims, const char *more, const char *status) {
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'train-0','labels':{'" CD_LABEL_AUTO
                    "':'enabled'}},'spec':{'containers':[{'name':'main','resources':{'claims':[{'name':'auto-"
                    "domain'}]}}],'resourceClaims':[%s]%s},'status':{%s}}",
                    claims, more, status);
}

static void labelled_pod_waits(void) {
        put_controller_with("{'name':'AUTO_DOMAINS','value':'true'}", 2);
        put_labelled_pod(AUTO_ENTRY, "",
                         "'phase':'Pending'" CLUSTER_UNSCHEDULED("waiting for resource claim " AUTO));
}

static void put_auto_domain(const char *deleted, const char *claim, const char *conditions) {
        cluster_put(cluster, &kube_compute_domains,
                    "{'metadata':{'namespace':'team-b','name':'" AUTO
                    "','uid':'a0000000-0000-4000-8000-000000000001'%s},'spec':{'numNodes':0,'channel':{'%s':{"
                    "'name':'" AUTO "'}}},'status':{'conditions':[%s]}}",
                    deleted, claim, conditions);
}

static void a_label_without_the_feature_is_named(void **state) {
        (void)state;
        labelled_pod_waits();
        put_controller_with("", 2);
        WHY("train-0", "auto-off", COMMAND_PROBLEM);
        put_labelled_pod("", "", "'phase':'Pending'");
        WHY("train-0", "auto-off-no-claim", COMMAND_PROBLEM);
}

static void a_labelled_pod_without_a_claim_was_created_before_the_policy(void **state) {
        (void)state;
        put_controller_with("{'name':'AUTO_DOMAINS','value':'true'}", 2);
        put_labelled_pod("", ",'nodeName':'a0'", "'phase':'Running'" RUNS);
        WHY("train-0", "auto-not-added", COMMAND_PROBLEM);
}

/* The policy adds the label to such a pod. */
static void an_annotation_of_grove_without_the_feature_is_named(void **state) {
        (void)state;
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'train-0','annotations':{'" GROVE_ANNOTATION
                    "':'g'}},'spec':{'containers':[{'name':'main'}]},'status':{'phase':'Pending'}}");
        WHY("train-0", "auto-off-grove", COMMAND_PROBLEM);
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'team-b','name':'train-0','labels':{'app.kubernetes.io/managed-by'"
                ":'grove-operator'},'annotations':{'" GROVE_ANNOTATION
                "':'g'}},'spec':{'containers':[{'name':'main'}]},'status':{'phase':'Pending'}}");
        WHY("train-0", "auto-of-grove", COMMAND_PROBLEM);
}

static void a_computedomain_with_the_name_of_another_is_named(void **state) {
        (void)state;
        labelled_pod_waits();
        put_auto_domain("", "resourceClaimTemplate", "");
        WHY("train-0", "auto-taken", COMMAND_PROBLEM);
}

static void a_computedomain_that_cannot_be_created_is_explained_by_the_event(void **state) {
        (void)state;
        labelled_pod_waits();
        cluster_event(cluster, "Pod", "team-b", "train-0", REASON_AUTO_DOMAIN_NOT_CREATED,
                      "the ComputeDomain \\u0027" AUTO
                      "\\u0027, whose claim this Pod uses, cannot be created: "
                      "exceeded quota");
        WHY("train-0", "auto-not-created", COMMAND_PROBLEM);
        cluster_fail(cluster, &kube_compute_domains, ERR_RETRY, "etcdserver: request timed out");
        WHY("train-0", "auto-not-created-unread", COMMAND_PROBLEM);
}

static void the_computedomain_of_an_earlier_workload_is_named(void **state) {
        (void)state;
        labelled_pod_waits();
        put_auto_domain(",'deletionTimestamp':'2026-11-27T11:57:00Z'", "resourceClaim", "");
        WHY("train-0", "auto-ending", COMMAND_PROBLEM);
        cluster_claim(cluster, "team-b", AUTO, "a0000000-0000-4000-8000-000000000001", "a0");
        put_labelled_pod(AUTO_ENTRY, ",'nodeName':'a0'", "'phase':'Pending'");
        WHY("train-0", "auto-ending-placed", COMMAND_PROBLEM);
}

/* It was deleted after the pod was created: the end of the workload, not of an earlier one. */
static void a_computedomain_that_ends_with_its_pods_is_not_that_of_an_earlier_workload(void **state) {
        (void)state;
        labelled_pod_waits();
        put_auto_domain(",'deletionTimestamp':'2026-11-27T11:59:00Z'", "resourceClaim", "");
        cluster_claim(cluster, "team-b", AUTO, "a0000000-0000-4000-8000-000000000001", NULL);
        WHY("train-0", "auto-deleting", COMMAND_PROBLEM);
}

static void without_a_controller_no_computedomain_is_created(void **state) {
        (void)state;
        labelled_pod_waits();
        WHY("train-0", "auto-not-yet", COMMAND_PROBLEM);
        put_controller_with("{'name':'AUTO_DOMAINS','value':'true'}", 0);
        WHY("train-0", "auto-no-controller", COMMAND_PROBLEM);
        cluster_confine(cluster, "team-b");
        WHY("train-0", "auto-confined", COMMAND_DENIED);
}

static void a_shared_claim_that_is_missing_is_explained_by_the_condition(void **state) {
        (void)state;
        labelled_pod_waits();
        put_auto_domain("", "resourceClaim", "");
        WHY("train-0", "auto-claim-not-yet", COMMAND_PROBLEM);
        put_auto_domain("", "resourceClaim",
                        "{'type':'SharedClaimAvailable','status':'False','reason':'SharedClaimsNotSupported',"
                        "'message':'the API server drops allowMultipleAllocations'}");
        WHY("train-0", "auto-claim-unsupported", COMMAND_PROBLEM);
        WHY("computedomain/" AUTO, "domain-claim-unsupported", COMMAND_PROBLEM);
}

static void a_named_claim_that_does_not_exist_is_reported(void **state) {
        (void)state;
        put_labelled_pod("{'name':'channel','resourceClaimName':'shared'}", "", "'phase':'Pending'");
        WHY("train-0", "claim-not-found", COMMAND_PROBLEM);
}

#define T(f) cmocka_unit_test_setup_teardown(f, why_set_up, why_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_label_without_the_feature_is_named),
                T(a_labelled_pod_without_a_claim_was_created_before_the_policy),
                T(an_annotation_of_grove_without_the_feature_is_named),
                T(a_computedomain_with_the_name_of_another_is_named),
                T(a_computedomain_that_cannot_be_created_is_explained_by_the_event),
                T(the_computedomain_of_an_earlier_workload_is_named),
                T(a_computedomain_that_ends_with_its_pods_is_not_that_of_an_earlier_workload),
                T(without_a_controller_no_computedomain_is_created),
                T(a_shared_claim_that_is_missing_is_explained_by_the_condition),
                T(a_named_claim_that_does_not_exist_is_reported),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
