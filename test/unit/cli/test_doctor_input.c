/* SPDX-License-Identifier: Apache-2.0 */
/* What `doctor` reads: lists that it may not read and answers of nodes that it cannot use are no finding, and
 * neither are objects that look like a fault. Its options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "api/resources.h"
#include "base/mem.h"
#include "cli/command_table.h"
#include "unit/cli/doctor_world.h"
#include "unit/golden.h"

/* Nothing is concluded from the absence of an object in a list that is not complete. */
static void what_cannot_be_read_is_skipped_and_no_finding(void **state) {
        static const struct kube_resource *const kinds[] = {
                &kube_pods,
                &kube_events,
                &kube_resource_claims,
                &kube_compute_domains,
                &kube_fabrics,
                &kube_nodes,
                &kube_resource_slices,
                &kube_daemonsets,
                &tool_kinds_deployments,
                &tool_kinds_device_classes,
                &tool_kinds_quotas,
                &tool_kinds_policies,
                &kube_namespaces,
                &kube_crds,
                &doctor_kinds_admission,
                &doctor_kinds_bindings,
                &kube_leases,
                &doctor_kinds_cliques,
        };
        static const unsigned modes[] = { DOCTOR_RUNNING, DOCTOR_PRE, DOCTOR_GO, DOCTOR_NODE };
        static const enum err_kind errors[] = { ERR_DENIED, ERR_RETRY };
        (void)state;
        for (size_t m = 0; m < ARRAY_LEN(modes); m++)
                for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
                        for (size_t e = 0; e < ARRAY_LEN(errors); e++) {
                                struct doctor_test x;
                                begin_mode(modes[m]);
                                cluster_fail(cluster, kinds[k], errors[e], "the list failed");
                                examine(&x, cluster_source(cluster), modes[m]);
                                if (count_state(&x.d, DOCTOR_PROBLEM))
                                        fail_msg("without %s: %s", kinds[k]->plural, buf_str(&x.t.out));
                                int code = doctor_exit(&x.d);
                                assert_true(
                                        code == COMMAND_FINE ||
                                        code == (errors[e] == ERR_DENIED ? COMMAND_DENIED : COMMAND_FAILED));
                                examined(&x);
                                end_cluster();
                        }
}

static void a_tenant_learns_which_permissions_are_missing(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        cluster_confine(cluster, CLUSTER_NS);
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        golden_compare("cli-doctor-confined.txt", buf_str(&x.t.out));
        assert_int_equal(doctor_exit(&x.d), COMMAND_DENIED);
        examined(&x);
        end_cluster();
}

/* failure: kubectl exec may not get the pod -> doctor prints the missing permission that kubectl names */
static void an_unusable_answer_of_a_node_is_skipped(void **state) {
        static const struct {
                const char *answer, *words;
                int code;
        } answers[] = {
                { "forbidden", "to create pods/exec", COMMAND_DENIED },
                { "ungettable", "cannot get resource", COMMAND_DENIED },
                { "gone", "unable to upgrade connection", COMMAND_FAILED },
                { "large", "its output is too large", COMMAND_FAILED },
                { "text", "not the output of check-node", COMMAND_FAILED },
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
                struct doctor_test x;
                begin_healthy();
                setenv("FAKE_EXEC", answers[i].answer, 1);
                examine(&x, cluster_source(cluster), DOCTOR_NODE);
                if (!strstr(buf_str(&x.t.out), answers[i].words))
                        fail_msg("%s: %s", answers[i].answer, buf_str(&x.t.out));
                assert_int_equal(doctor_exit(&x.d), answers[i].code);
                examined(&x);
                end_cluster();
        }
}

/* failure: a sidecar runs, or an init container has failed before -> doctor names why the plugin does not run
 */
static void an_init_container_that_blocks_nothing_is_not_the_reason(void **state) {
        static const char *const statuses[] = {
                "{'name':'mesh','state':{'running':{'startedAt':'2026-11-27T11:00:00Z'}}}",
                "{'name':'init','state':{'terminated':{'reason':'Completed'}},'lastState':{'terminated':{'"
                "reason':"
                "'Error'}}}"
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
                struct doctor_test x;
                begin_healthy();
                cluster_put(
                        cluster, &kube_pods,
                        "{'metadata':{'namespace':'" CLUSTER_NS
                        "','name':'compute-domains-kubelet-plugin-a0','labels':{}},'spec':{'nodeName':'a0','"
                        "initContainers':[{'name':'init'},{'name':'mesh','restartPolicy':'Always'}],'"
                        "containers':[{'name':'compute-domains','image':'" IMAGE
                        "','command':['compute-domain-kubelet-plugin']}]},'status':{'phase':'Pending','"
                        "initContainerStatuses':[%s],'containerStatuses':[{'name':'compute-domains','state':{"
                        "'"
                        "waiting':{'reason':'ErrImagePull','message':'not found'}}}]}}",
                        statuses[i]);
                examine(&x, cluster_source(cluster), DOCTOR_NODE);
                if (!strstr(buf_str(&x.t.out), "does not run: ErrImagePull: not found"))
                        fail_msg("%s: %s", statuses[i], buf_str(&x.t.out));
                examined(&x);
                end_cluster();
        }
}

/* A program in a container may end with 127, which a shell uses for a missing program. */
static void a_missing_program_in_a_container_is_not_a_missing_kubectl(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        setenv("FAKE_EXEC", "missing", 1);
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        assert_non_null(strstr(buf_str(&x.t.out), "kubectl exec: command terminated with exit code 127"));
        examined(&x);
        end_cluster();
}

static void a_node_cannot_write_control_characters_or_long_names(void **state) {
        struct buf json = BUF_INIT(64 << 10);
        struct doctor_test x;
        (void)state;
        begin_healthy();
        setenv("FAKE_EXEC", "hostile", 1);
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        doctor_json(&x.d, &json);
        assert_null(strstr(buf_str(&json), "\xe2\x80\xae"));
        for (size_t i = 0; i < x.d.n; i++)
                assert_true(strlen(x.d.results[i].check) < 100);
        buf_done(&json);
        examined(&x);
        end_cluster();
}

/* Without the policies and the DaemonSets, the namespace of the plugins is a guess. */
static void a_plugin_in_an_unknown_namespace_is_not_missing(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        cluster_fail(cluster, &kube_daemonsets, ERR_DENIED, "no");
        cluster_fail(cluster, &tool_kinds_deployments, ERR_DENIED, "no");
        cluster_fail(cluster, &doctor_kinds_admission, ERR_DENIED, "no");
        cluster_remove_all(cluster, &kube_pods);
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        assert_int_equal(count_state(&x.d, DOCTOR_PROBLEM), 0);
        assert_int_equal(doctor_exit(&x.d), COMMAND_DENIED);
        examined(&x);
        end_cluster();
}

/* failure: a feature gate sets host-managed IMEX -> doctor misses no objects of daemons, also from a bundle
 */
static void the_feature_gate_of_host_managed_imex_needs_no_daemon_objects(void **state) {
        (void)state;
        for (int bundled = 0; bundled < 2; bundled++) {
                struct doctor_test x;
                struct source *read = NULL;
                begin_healthy();
                cluster_put(cluster, &tool_kinds_deployments,
                            "{'metadata':{'namespace':'" CLUSTER_NS
                            "','name':'compute-domains-controller'},'spec':{'replicas':2,'template':{'spec':{"
                            "'containers':[{'name':'compute-domain','image':'" IMAGE
                            "','command':['compute-domain-controller'],'env':[{'name':'IMEX_MODE','value':'"
                            "driverManaged'},{'name':'FEATURE_GATES','value':'HostManagedIMEX=true,'}]}]}}},"
                            "'status':{'readyReplicas':2}}");
                cluster_remove(cluster, &tool_kinds_device_classes, NULL, CD_CLASS_DAEMON);
                cluster_remove(cluster, &doctor_kinds_admission, NULL, "cd-daemon-pods");
                if (bundled)
                        read = bundle_of_cluster();
                examine(&x, read ? read : cluster_source(cluster), DOCTOR_RUNNING);
                if (count_state(&x.d, DOCTOR_PROBLEM))
                        fail_msg("%s", buf_str(&x.t.out));
                examined(&x);
                if (read)
                        read->free(read);
                end_cluster();
        }
}

/* A value of the chart selects these nodes. */
static void nodes_with_a_plugin_need_no_label_of_a_gpu_node(void **state) {
        static const char *const nodes[] = { "a0", "a1", "a2", "a3", "b0", "b1" };
        (void)state;
        for (int readable = 0; readable < 2; readable++) {
                struct doctor_test x;
                begin_healthy();
                for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
                        put_node(nodes[i], "'nvidia.com/gpu.product':'GB200'", FINE, "");
                if (!readable)
                        cluster_fail(cluster, &kube_pods, ERR_DENIED, "no");
                examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
                assert_int_equal(has_fault(&x.d, FAULT_NOT_LABELLED), false);
                assert_true((strstr(buf_str(&x.t.out), "node-labels         6 GPU nodes") != NULL) ==
                            readable);
                examined(&x);
                end_cluster();
        }
}

/* Users copy the commands, and a bundle may be from anyone. */
static void a_name_cannot_add_to_a_command(void **state) {
        struct doctor_test x;
        (void)state;
        begin_empty();
        cluster_put(cluster, &tool_kinds_quotas,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'x;reboot'},'spec':{},'status':{'hard':{'pods':'3'},'used':{'pods':"
                    "'9223372036854775807'}}}");
        examine(&x, cluster_source(cluster), DOCTOR_PRE);
        assert_true(has_fault(&x.d, FAULT_QUOTA));
        assert_non_null(strstr(buf_str(&x.t.out), " patch resourcequota 'x;reboot' --patch "));
        examined(&x);
        end_cluster();
}

/* Events that no longer describe the node. */
static void events_of_the_past_are_no_finding(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        node_event("a0", "DevicePluginActive", "a device plugin offers the GPUs");
        node_event("a0", "DevicePluginInactive", "none does any more");
        node_event("a1", "UVMNotLoaded", "the kernel module nvidia_uvm is not loaded");
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'compute-domains-kubelet-plugin-a1','creationTimestamp':'2026-11-27T12:00:00Z'},'"
                "spec':{'nodeName':'a1','containers':[{'name':'compute-domains','image':'" IMAGE
                "','command':['compute-domain-kubelet-plugin']}]},'status':{" RUNS "}}");
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        assert_int_equal(count_state(&x.d, DOCTOR_PROBLEM), 0);
        examined(&x);
        end_cluster();
}

/* A policy that allows the ports is sufficient, whatever else selects the daemons. */
static void a_policy_that_allows_imex_is_no_finding(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        denying_policy();
        cluster_put(
                cluster, &tool_kinds_policies,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'imex'},'spec':{'podSelector':{'matchExpressions':[{'key':'app','operator':'Exists'"
                "}]},'policyTypes':['Egress'],'egress':[{'ports':[{'port':28000,'endPort':33000}]}]}}");
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        assert_int_equal(count_state(&x.d, DOCTOR_PROBLEM), 0);
        examined(&x);
        end_cluster();
}

/* ---- the command ---- */

static int run_doctor(struct source *s, struct cli *c, const char *golden) {
        *c = (struct cli){ .a = arena_new(1024), .source = s, .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        view_init(&c->v, s);
        int r = command_doctor.run(c);
        if (golden)
                golden_compare(golden, buf_str(&c->t.out));
        view_done(&c->v);
        buf_done(&c->t.out);
        arena_free(c->a);
        return r;
}

static void a_bundle_gives_the_same_answer(void **state) {
        struct doctor_test before, after;
        (void)state;
        begin_healthy();
        fabric_error();
        struct source *read = bundle_of_cluster();
        examine(&before, cluster_source(cluster), DOCTOR_RUNNING);
        examine(&after, read, DOCTOR_RUNNING);
        assert_string_equal(buf_str(&after.t.out), buf_str(&before.t.out));
        examined(&before);
        examined(&after);
        read->free(read);
        end_cluster();
}

/* failure: the controller has another Lease, and creates ComputeDomains -> a bundle shows both */
static void a_bundle_has_the_settings_of_the_controller(void **state) {
        struct doctor_test before, after;
        (void)state;
        begin_healthy();
        cluster_put(
                cluster, &tool_kinds_deployments,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'compute-domains-controller'},'spec':{'replicas':1,'template':{'spec':{'"
                "containers':[{'name':'compute-domain','image':'" IMAGE
                "','command':['compute-domain-controller'],'env':[{'name':'AUTO_DOMAINS','value':'true'},{'"
                "name':'LEADER_ELECTION_ENABLED','value':'true'},{'name':'LEADER_ELECTION_LEASE_LOCK_NAME"
                "','value':'other'}]}]}}},'status':{'readyReplicas':1}}");
        cluster_remove_all(cluster, &kube_leases);
        cluster_put(cluster, &kube_leases,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'other'},'spec':{'holderIdentity':'controller-7','leaseDurationSeconds':15,'"
                    "renewTime':'2026-11-27T11:59:58.000000Z'}}");
        struct source *read = bundle_of_cluster();
        examine(&before, cluster_source(cluster), DOCTOR_RUNNING);
        examine(&after, read, DOCTOR_RUNNING);
        assert_non_null(strstr(buf_str(&after.t.out), "1 of 1 Ready, controller-7 leads"));
        assert_string_equal(buf_str(&after.t.out), buf_str(&before.t.out));
        assert_true(after.v.auto_domains);
        examined(&before);
        examined(&after);
        read->free(read);
        end_cluster();
}

static void the_json_names_fault_and_fix(void **state) {
        struct cli c;
        (void)state;
        begin_empty();
        put_go_driver();
        doctor_options.pre = true;
        options.output = "json";
        assert_int_equal(run_doctor(cluster_source(cluster), &c, "cli-doctor-json.txt"), COMMAND_PROBLEM);
        end_cluster();
        options.output = "table";
}

static void wrong_options_are_refused(void **state) {
        struct cli c;
        (void)state;
        begin_healthy();
        doctor_options = (struct doctor_options){ .pre = true, .from_go = true };
        assert_int_equal(run_doctor(cluster_source(cluster), &c, NULL), COMMAND_FAILED);
        doctor_options = (struct doctor_options){ .node = "--all" };
        assert_int_equal(run_doctor(cluster_source(cluster), &c, NULL), COMMAND_FAILED);
        doctor_options = (struct doctor_options){ .node = "a0" };
        options.from = "x.tar";
        assert_int_equal(run_doctor(cluster_source(cluster), &c, NULL), COMMAND_FAILED);
        options.from = NULL;
        doctor_options = (struct doctor_options){ 0 };
        end_cluster();
}

static void versions_are_read_from_the_texts_of_programs(void **state) {
        static const struct {
                const char *text;
                int64_t major, minor; /* -1: no version */
        } texts[] = { { "v1.36.3", 1, 36 },
                      { "1.7.27~ds1-1", 1, 7 },
                      { "6.8.0-45-generic", 6, 8 },
                      { "v1.30+", 1, 30 },
                      { "", -1, 0 },
                      { "v1", -1, 0 },
                      { "1.x", -1, 0 },
                      { "-1.2", -1, 0 },
                      { "99999999999.1", -1, 0 },
                      { "2.0.0-beta", 2, 0 } };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct doctor_version x;
                bool is = doctor_version_read(texts[i].text, &x);
                assert_int_equal(is, texts[i].major >= 0);
                if (is) {
                        assert_int_equal(x.major, texts[i].major);
                        assert_int_equal(x.minor, texts[i].minor);
                }
        }
        assert_false(doctor_version_read(NULL, &(struct doctor_version){ 0 }));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_read_is_skipped_and_no_finding),
                cmocka_unit_test(a_tenant_learns_which_permissions_are_missing),
                cmocka_unit_test(an_unusable_answer_of_a_node_is_skipped),
                cmocka_unit_test(an_init_container_that_blocks_nothing_is_not_the_reason),
                cmocka_unit_test(a_missing_program_in_a_container_is_not_a_missing_kubectl),
                cmocka_unit_test(a_node_cannot_write_control_characters_or_long_names),
                cmocka_unit_test(a_plugin_in_an_unknown_namespace_is_not_missing),
                cmocka_unit_test(the_feature_gate_of_host_managed_imex_needs_no_daemon_objects),
                cmocka_unit_test(nodes_with_a_plugin_need_no_label_of_a_gpu_node),
                cmocka_unit_test(a_name_cannot_add_to_a_command),
                cmocka_unit_test(events_of_the_past_are_no_finding),
                cmocka_unit_test(a_policy_that_allows_imex_is_no_finding),
                cmocka_unit_test(a_bundle_gives_the_same_answer),
                cmocka_unit_test(a_bundle_has_the_settings_of_the_controller),
                cmocka_unit_test(the_json_names_fault_and_fix),
                cmocka_unit_test(wrong_options_are_refused),
                cmocka_unit_test(versions_are_read_from_the_texts_of_programs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
