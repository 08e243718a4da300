/* SPDX-License-Identifier: Apache-2.0 */
/* Which namespace is the driver's. A tenant can create objects that look like the driver's, and an admin runs
 * the commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "api/resources.h"
#include "base/mem.h"
#include "cli/bundle.h"
#include "cli/command_table.h"
#include "cli/racks_html.h"
#include "unit/cli/doctor_world.h"
#include "unit/golden.h"

static int set_up(void **state) {
        (void)state;
        begin_healthy();
        setenv("FAKE_EXEC", "fine", 1);
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        options = (struct options){ .output = "table" };
        end_cluster();
        return 0;
}

/* Runs a command, and returns its exit code. The caller frees the output. */
static int run(const struct command *command, struct source *s, const char *arg, char **ret_output) {
        struct cli c = { .a = arena_new(1024),
                         .source = s,
                         .args = &arg,
                         .n_args = arg ? 1 : 0,
                         .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        view_init(&c.v, s);
        int r = command->run(&c);
        view_done(&c.v);
        arena_free(c.a);
        *ret_output = buf_steal(&c.t.out);
        return r;
}

/* A line break or several spaces count as a space. The caller frees the text. */
static char *unwrapped(const char *text) {
        struct buf b = BUF_INIT(TERM_OUT_MAX);
        static const char space[] = " \n";
        for (const char *p = text + strspn(text, space); *p; p += strspn(p, space)) {
                size_t n = strcspn(p, space);
                buf_addf(&b, "%s%.*s", b.n ? " " : "", (int)n, p);
                p += n;
        }
        return buf_steal(&b);
}

static void has(const char *output, const char *text) {
        _cleanup_(freep) char *is = unwrapped(output), *want = unwrapped(text);
        if (!strstr(is, want))
                fail_msg("no '%s' in: %s", want, is);
}

static void run_has(const struct command *command, const char *arg, int code, const char *text) {
        _cleanup_(freep) char *output = NULL;
        int r = run(command, cluster_source(cluster), arg, &output);
        has(output, text);
        assert_int_equal(r, code);
}

static void put_pods(void) {
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster,
                        &(struct cluster_pod){ .name = "train-0", .claim = "train-0.channel", .node = "a0" });
        cluster_event(cluster, "Pod", "team-b", "train-0", "FailedPrepareDynamicResources",
                      "Failed to prepare dynamic resources: a0: no IMEX daemon runs on this node yet");
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'auto-0','labels':{'" CD_LABEL_AUTO
                    "':'enabled'}},'spec':{'containers':[{'name':'main'}]},'status':{'phase':'Pending'}}");
}

static const struct {
        const struct command *command;
        const char *arg;
} runs[] = {
        { &command_status, NULL },  { &command_version, NULL },  { &command_why, "train-0" },
        { &command_why, "auto-0" }, { &command_why, "node/a0" }, { &command_why, "computedomain/bench" },
        { &command_racks, NULL },
};

/* failure: a tenant creates objects that look like the driver's -> no command of an admin takes them for it
 */
static void a_tenant_cannot_pose_as_the_driver(void **state) {
        (void)state;
        for (int bundled = 0; bundled < 2; bundled++) {
                char *before[ARRAY_LEN(runs)];
                int codes[ARRAY_LEN(runs)];
                end_cluster();
                begin_healthy();
                put_pods();
                for (size_t i = 0; i < ARRAY_LEN(runs); i++)
                        codes[i] = run(runs[i].command, cluster_source(cluster), runs[i].arg, &before[i]);
                cluster_pose(cluster);
                struct source *s = cluster_source(cluster), *read = NULL;
                if (bundled)
                        s = read = bundle_of_cluster();
                for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
                        _cleanup_(freep) char *after = NULL;
                        assert_int_equal(run(runs[i].command, s, runs[i].arg, &after), codes[i]);
                        assert_string_equal(after, before[i]);
                        free(before[i]);
                }
                if (read)
                        read->free(read);
        }
}

static void a_tenant_cannot_pose_as_the_driver_to_doctor(void **state) {
        static const struct {
                unsigned mode;
                const char *golden;
        } modes[] = { { DOCTOR_RUNNING, "cli-doctor-fine.txt" }, { DOCTOR_NODE, "cli-doctor-node.txt" } };
        (void)state;
        cluster_pose(cluster);
        put_daemon_set(IMAGE, 6, 6);
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
                struct doctor_test x;
                examine(&x, cluster_source(cluster), modes[i].mode);
                golden_compare(modes[i].golden, buf_str(&x.t.out));
                assert_int_equal(doctor_exit(&x.d), COMMAND_FINE);
                examined(&x);
        }
}

static void workloads_of_a_tenant_do_not_replace_those_of_the_driver(void **state) {
        (void)state;
        cluster_pose(cluster);
        cluster_remove(cluster, &tool_kinds_deployments, CLUSTER_NS, "compute-domains-controller");
        cluster_remove(cluster, &kube_daemonsets, CLUSTER_NS, "compute-domains-kubelet-plugin");
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domains-kubelet-plugin-a0");
        cluster_remove(cluster, &kube_resource_claim_templates, "team-b", "bench-channel");
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0" });
        run_has(&command_why, "train-0", COMMAND_PROBLEM,
                "no controller of the driver is ready in namespace nvidia-compute-domains");
        run_has(&command_why, "node/a0", COMMAND_PROBLEM, "plugin exists: the driver is not installed");
}

/* Without the policies, nothing distinguishes the driver from a tenant that poses as it. */
static void the_driver_is_not_guessed(void **state) {
        static const char doubt[] = "Workloads in several namespaces look like the driver";
        (void)state;
        put_pods();
        cluster_pose(cluster);
        cluster_fail(cluster, &doctor_kinds_admission, ERR_DENIED, "no");
        run_has(&command_status, NULL, COMMAND_DENIED, doubt);
        run_has(&command_status, NULL, COMMAND_DENIED, "a-team, nvidia-compute-domains, team-b");
        run_has(&command_version, NULL, COMMAND_FINE, "driver      not known");
        run_has(&command_why, "node/a0", COMMAND_DENIED, doubt);
        run_has(&command_why, "node/a0", COMMAND_DENIED, "validatingadmissionpolicies: may not be read");
        for (int node = 0; node < 2; node++) {
                struct doctor_test x;
                examine(&x, cluster_source(cluster), node ? DOCTOR_NODE : DOCTOR_RUNNING);
                has(buf_str(&x.t.out), "list validatingadmissionpolicies. Or name the driver's namespace");
                assert_int_equal(count_state(&x.d, DOCTOR_PROBLEM), 0);
                assert_int_equal(doctor_exit(&x.d), COMMAND_DENIED);
                assert_null(strstr(buf_str(&x.t.out), "Linux 6.8.0\n"));
                examined(&x);
        }
        options.output = "json";
        run_has(&command_status, NULL, COMMAND_DENIED, "\"namespace\":null");
        run_has(&command_status, NULL, COMMAND_DENIED, "\"driverDoubt\":\"Workloads in");
        run_has(&command_version, NULL, COMMAND_FINE, "\"driverDoubt\":\"Workloads in");
}

/* failure: the driver's namespace is not known -> doctor does not judge another namespace */
static void a_namespace_that_is_not_known_is_not_judged(void **state) {
        struct doctor_test x;
        size_t n = 0;
        (void)state;
        cluster_pose(cluster);
        cluster_remove_all(cluster, &kube_namespaces);
        cluster_remove_all(cluster, &doctor_kinds_admission);
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        for (size_t i = 0; i < x.d.n; i++) {
                const struct doctor_result *r = &x.d.results[i];
                if (!streq(r->check, "pod-security") && !streq(r->check, "quota"))
                        continue;
                assert_int_equal(r->state, DOCTOR_SKIPPED);
                n++;
        }
        assert_int_equal(n, 2);
        examined(&x);
}

/* failure: a tenant's DaemonSet turns the probes of hosts off -> missing reports remain a problem */
static void probes_that_a_tenant_turns_off_are_missed(void **state) {
        (void)state;
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'team-b','name':'x'},'spec':{'template':{'spec':{'containers':["
                    "{'name':'x','command':['compute-domain-kubelet-plugin'],'env':[{'name':"
                    "'IMEX_HOST_PROBE_INTERVAL','value':'0'}]}]}}}}");
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'Ready','conditions':[{'type':'Ready','status':'True','reason':'Admitted'},{"
                       "'type':'HostIMEXHealthy','status':'Unknown','reason':'NotProbed','message':'-'}]");
        run_has(&command_status, NULL, COMMAND_PROBLEM, "NotProbed: -");
        run_has(&command_why, "computedomain/bench", COMMAND_PROBLEM, "NotProbed");
}

static void policies_that_do_not_exist_are_the_remedy(void **state) {
        (void)state;
        cluster_pose(cluster);
        cluster_remove_all(cluster, &doctor_kinds_admission);
        run_has(&command_status, NULL, COMMAND_FAILED, "no admission policy of the chart names it");
        struct doctor_test x;
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        has(buf_str(&x.t.out), "helm upgrade");
        assert_int_equal(doctor_exit(&x.d), COMMAND_FAILED);
        examined(&x);
}

/* A tenant may be the only one that runs such a program. */
static void a_namespace_without_a_policy_is_used_and_reported(void **state) {
        static const char doubt[] = "The namespace nvidia-compute-domains of the driver is not verified: the "
                                    "admission policies that name it may not be read.";
        (void)state;
        cluster_fail(cluster, &doctor_kinds_admission, ERR_DENIED, "no");
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domains-kubelet-plugin-a0");
        run_has(&command_status, NULL, COMMAND_PROBLEM, doubt);
        run_has(&command_version, NULL, COMMAND_FINE, doubt);
        run_has(&command_version, NULL, COMMAND_FINE, "driver      0.1.0");
        run_has(&command_why, "node/a0", COMMAND_PROBLEM, doubt);
        run_has(&command_why, "node/a0", COMMAND_PROBLEM, "no plugin runs on a0");
        struct doctor_test x;
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        has(buf_str(&x.t.out), doubt);
        examined(&x);
        struct inventory inv;
        struct buf page = BUF_INIT(TERM_OUT_MAX);
        struct view v;
        view_init(&v, cluster_source(cluster));
        inventory_make(&v, "team-b", &inv);
        racks_html(&v, &inv, &page);
        has(buf_str(&page), doubt);
        view_done(&v);
        buf_done(&page);
}

/* The commands of `doctor --node` run with the rights of an admin. */
static void nothing_is_run_in_a_namespace_that_is_not_verified(void **state) {
        (void)state;
        for (int named = 0; named < 2; named++) {
                struct doctor_test x;
                end_cluster();
                begin_healthy();
                cluster_fail(cluster, &doctor_kinds_admission, ERR_DENIED, "no");
                named_namespace = named ? CLUSTER_NS : NULL;
                examine(&x, cluster_source(cluster), DOCTOR_NODE);
                named_namespace = NULL;
                if (named)
                        golden_compare("cli-doctor-node.txt", buf_str(&x.t.out));
                else
                        has(buf_str(&x.t.out), "--namespace NAMESPACE");
                assert_int_equal(doctor_exit(&x.d), named ? COMMAND_FINE : COMMAND_DENIED);
                examined(&x);
        }
}

/* A user may name a wrong namespace out of habit. */
static void a_policy_takes_precedence_over_the_option(void **state) {
        struct doctor_test x;
        (void)state;
        cluster_pose(cluster);
        named_namespace = "team-b";
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        named_namespace = NULL;
        golden_compare("cli-doctor-node.txt", buf_str(&x.t.out));
        examined(&x);
}

static void find(struct view *v, const char *named) {
        view_init(v, cluster_source(cluster));
        v->named_ns = named;
        view_find_driver(v);
}

/* An installation may have left its policies. */
static void policies_of_several_namespaces_are_compared_with_the_workloads(void **state) {
        struct view v;
        (void)state;
        cluster_policy(cluster, "old-controller-nodes", "team-b");
        find(&v, NULL);
        assert_int_equal(v.driver, VIEW_DRIVER_VERIFIED);
        assert_string_equal(v.driver_ns, CLUSTER_NS);
        view_done(&v);
        cluster_pose(cluster);
        find(&v, NULL);
        assert_int_equal(v.driver, VIEW_DRIVER_UNCLEAR);
        assert_null(v.driver_ns);
        has(v.driver_doubt, "name several namespaces of the driver: nvidia-compute-domains, team-b.");
        view_done(&v);
        find(&v, "team-b");
        assert_int_equal(v.driver, VIEW_DRIVER_VERIFIED);
        assert_string_equal(v.driver_ns, "team-b");
        view_done(&v);
        find(&v, "a-team");
        assert_int_equal(v.driver, VIEW_DRIVER_UNCLEAR);
        view_done(&v);
}

/* A release that allocates only GPUs. */
static void put_gpus_release(const char *ns) {
        cluster_put(cluster, &doctor_kinds_admission,
                    "{'metadata':{'name':'%s-resourceslices'},'spec':{'matchConditions':[{'name':"
                    "'is-our-kubelet-plugin','expression':'request.userInfo.username == "
                    "\\u0027system:serviceaccount:%s:x\\u0027'}]}}",
                    ns, ns);
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'%s','name':'gpus'},'spec':{'template':{'spec':{'containers':["
                    "{'name':'gpus','command':['gpu-kubelet-plugin']}]}}}}",
                    ns);
}

static void remove_workloads(void) {
        cluster_remove_all(cluster, &tool_kinds_deployments);
        cluster_remove_all(cluster, &kube_daemonsets);
}

/* failure: another release allocates only GPUs -> the driver is the release that has a controller */
static void a_release_for_gpus_only_does_not_hide_the_driver(void **state) {
        struct view v;
        (void)state;
        put_gpus_release("a-gpus");
        for (int readable = 1; readable >= 0; readable--) {
                if (!readable) {
                        cluster_fail(cluster, &tool_kinds_deployments, ERR_DENIED, "no");
                        cluster_fail(cluster, &kube_daemonsets, ERR_DENIED, "no");
                }
                find(&v, NULL);
                assert_int_equal(v.driver, VIEW_DRIVER_VERIFIED);
                assert_string_equal(v.driver_ns, CLUSTER_NS);
                assert_null(v.driver_doubt);
                view_done(&v);
        }
}

/* The policies of the controller remain from an earlier installation. */
static void a_release_for_gpus_only_is_found_beside_old_policies(void **state) {
        struct view v;
        (void)state;
        remove_workloads();
        put_gpus_release("a-gpus");
        find(&v, NULL);
        assert_int_equal(v.driver, VIEW_DRIVER_VERIFIED);
        assert_string_equal(v.driver_ns, "a-gpus");
        view_done(&v);
}

/* failure: only the plugin of GPUs is installed -> `why` names its DaemonSet, not a missing driver */
static void why_names_a_release_for_gpus_only(void **state) {
        static const char text[] = "no DaemonSet of the ComputeDomain plugin exists: DaemonSet gpus in "
                                   "nvidia-compute-domains allocates only GPUs";
        (void)state;
        remove_workloads();
        cluster_remove_all(cluster, &doctor_kinds_admission);
        cluster_remove_all(cluster, &kube_pods);
        put_gpus_release(CLUSTER_NS);
        run_has(&command_why, "node/a0", COMMAND_PROBLEM, text);
        run_has(&command_why, "node/a0", COMMAND_PROBLEM, "resources.computeDomains.enabled=true");
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'team-b','name':'train-0','deletionTimestamp':'2026-11-27T11:55:"
                "00Z','deletionGracePeriodSeconds':30},'spec':{'nodeName':'a0','containers':[],"
                "'resourceClaims':[{'name':'gpu','resourceClaimName':'gpu'}]},'status':{'phase':'Running'}}");
#define CLAIM_OF(class, driver)                                                                              \
        "{'metadata':{'namespace':'team-b','name':'gpu'},'spec':{'devices':{'requests':[{'name':'c',"        \
        "'exactly':{'deviceClassName':'" class "'}}]}},'status':{'allocation':{'devices':{'results':[{'"     \
                                               "request':'c','driver':'" driver                              \
                                               "','pool':'a0','device':'x-0'}]}}}}"
        cluster_put(cluster, &kube_resource_claims, CLAIM_OF("gpu.nvidia.com", GPU_DRIVER));
        run_has(&command_why, "train-0", COMMAND_PROBLEM, "delay the deletion");
        cluster_put(cluster, &kube_resource_claims, CLAIM_OF(CD_CLASS_CHANNEL, CD_DRIVER));
        run_has(&command_why, "train-0", COMMAND_PROBLEM, text);
        cluster_fail(cluster, &kube_compute_domains, ERR_NOT_FOUND, "no such kind");
        run_has(&command_status, NULL, COMMAND_PROBLEM,
                "The cluster has no ComputeDomains: DaemonSet gpus in nvidia-compute-domains allocates only "
                "GPUs.");
        struct doctor_test x;
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        has(buf_str(&x.t.out), "no plugin runs on a0");
        examined(&x);
}

/* failure: several releases allocate only GPUs -> they are listed, and `doctor --namespace` chooses one */
static void releases_for_gpus_only_are_listed(void **state) {
        static const char list[] = "Releases in several namespaces allocate only GPUs: a-gpus, b-gpus. "
                                   "`doctor --namespace NAMESPACE` examines one of them.";
        struct doctor_test x;
        struct view v;
        (void)state;
        remove_workloads();
        put_gpus_release("a-gpus");
        put_gpus_release("b-gpus");
        run_has(&command_why, "node/a0", COMMAND_PROBLEM, list);
        run_has(&command_why, "node/a0", COMMAND_PROBLEM,
                "the releases in the namespaces a-gpus, b-gpus allocate only GPUs");
        run_has(&command_status, NULL, COMMAND_PROBLEM, list);
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        has(buf_str(&x.t.out), "allocate only GPUs, which `doctor --node NODE --namespace NAMESPACE` checks");
        examined(&x);
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        has(buf_str(&x.t.out), list);
        assert_int_equal(doctor_exit(&x.d), COMMAND_FAILED);
        examined(&x);
        find(&v, "b-gpus");
        assert_int_equal(v.driver, VIEW_DRIVER_VERIFIED);
        assert_string_equal(v.driver_ns, "b-gpus");
        view_done(&v);
        /* Another policy may name the namespace of a controller. */
        cluster_fail(cluster, &doctor_kinds_admission, ERR_RETRY, "the list does not end");
        find(&v, NULL);
        assert_int_equal(v.driver, VIEW_DRIVER_UNCLEAR);
        view_done(&v);
}

static void a_policy_names_the_namespace_of_workloads_that_may_not_be_read(void **state) {
        struct view v;
        (void)state;
        cluster_fail(cluster, &tool_kinds_deployments, ERR_DENIED, "no");
        cluster_fail(cluster, &kube_daemonsets, ERR_DENIED, "no");
        find(&v, NULL);
        assert_int_equal(v.driver, VIEW_DRIVER_VERIFIED);
        assert_string_equal(v.driver_ns, CLUSTER_NS);
        view_done(&v);
}

/* Only the conditions of the chart are read: other products have policies, too. */
static void the_condition_of_a_policy_names_the_namespace(void **state) {
        static const struct {
                const char *name, *expression, *ns;
        } cases[] = {
                { "is-our-controller",
                  "request.userInfo.username in [\\u0027system:serviceaccount:n:c\\u0027]", "n" },
                { "is-our-kubelet-plugin",
                  "request.userInfo.username == \\u0027system:serviceaccount:n-2:p\\u0027", "n-2" },
                { "isRestrictedUser", "request.userInfo.username == \\u0027system:serviceaccount:n:p\\u0027",
                  NULL },
                { "is-our-daemon", "request.userInfo.username == \\u0027system:serviceaccount:n:p\\u0027",
                  NULL },
                { "is-our-controller", "request.userInfo.username == \\u0027jane\\u0027", NULL },
                { "is-our-controller", "request.userInfo.username == \\u0027system:serviceaccount:", NULL },
                { "is-our-controller",
                  "request.userInfo.username == \\u0027system:serviceaccount:/x:y\\u0027", NULL },
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct view v;
                bool controller;
                cluster_remove_all(cluster, &doctor_kinds_admission);
                cluster_put(cluster, &doctor_kinds_admission,
                            "{'metadata':{'name':'x'},'spec':{'matchConditions':[{'name':'other','expression'"
                            ":'true'},{'name':'%s','expression':'%s'}]}}",
                            cases[i].name, cases[i].expression);
                view_init(&v, cluster_source(cluster));
                view_read(&v, VIEW_ADMISSION, NULL);
                const char *ns = admission_object_driver(v.kinds[VIEW_ADMISSION].items[0], v.a, &controller);
                if (!streq(ns, cases[i].ns))
                        fail_msg("%s: %s", cases[i].expression, str_or(ns, "none"));
                if (ns)
                        assert_int_equal(controller, streq(cases[i].name, "is-our-controller"));
                view_done(&v);
        }
}

/* Only the plugin of GPUs is installed: the policies of the plugins name the namespace. */
static void an_installation_for_gpus_only_is_verified(void **state) {
        struct doctor_test x;
        (void)state;
        cluster_remove_all(cluster, &tool_kinds_deployments);
        cluster_remove_all(cluster, &kube_daemonsets);
        cluster_put(
                cluster, &kube_daemonsets,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'gpus'},'spec':{'template':{'spec':{'containers':[{'name':'gpus','image':'" IMAGE
                "','command':['gpu-kubelet-plugin']}]}}}}");
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        has(buf_str(&x.t.out), "DaemonSet gpus in nvidia-compute-domains allocates only GPUs");
        examined(&x);
        cluster_fail(cluster, &doctor_kinds_admission, ERR_DENIED, "no");
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        has(buf_str(&x.t.out), "The namespace nvidia-compute-domains of the driver is not verified");
        examined(&x);
}

/* No policy is known to name the namespace of the Go driver. */
static void the_go_driver_is_not_guessed(void **state) {
        (void)state;
        for (int named = 0; named < 2; named++) {
                struct doctor_test x;
                end_cluster();
                begin_mode(DOCTOR_GO);
                cluster_put(cluster, &kube_daemonsets,
                            "{'metadata':{'namespace':'z-team','name':'x'},'spec':{'template':{'spec':{'"
                            "containers':[{'name':'compute-domains','image':'evil.example/"
                            "dra-driver-nvidia-gpu:v1','command':['compute-domain-kubelet-plugin']}]}}}}");
                named_namespace = named ? "dra-driver-nvidia-gpu" : NULL;
                examine(&x, cluster_source(cluster), DOCTOR_GO);
                named_namespace = NULL;
                has(buf_str(&x.t.out), named ? "RELEASE=dra NAMESPACE=dra-driver-nvidia-gpu"
                                             : "DaemonSet dra-driver-nvidia-gpu-kubelet-plugin in "
                                               "dra-driver-nvidia-gpu, DaemonSet "
                                               "x in z-team. Name its namespace: --namespace NAMESPACE");
                assert_int_equal(doctor_exit(&x.d), named ? COMMAND_FINE : COMMAND_FAILED);
                examined(&x);
        }
}

/* Bundles of earlier versions contain workloads of other applications, but also the policies. */
static void a_bundle_without_policies_is_read(void **state) {
        _cleanup_(freep) char *output = NULL;
        (void)state;
        cluster_fail(cluster, &doctor_kinds_admission, ERR_DENIED, "no");
        struct source *read = bundle_of_cluster();
        assert_int_equal(run(&command_status, read, NULL, &output), COMMAND_FINE);
        has(output, "namespace nvidia-compute-domains   IMEX driver-managed   isolation domain");
        has(output, "is not verified: the admission policies that name it may not be read");
        read->free(read);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_tenant_cannot_pose_as_the_driver),
                T(a_tenant_cannot_pose_as_the_driver_to_doctor),
                T(workloads_of_a_tenant_do_not_replace_those_of_the_driver),
                T(the_driver_is_not_guessed),
                T(a_namespace_that_is_not_known_is_not_judged),
                T(probes_that_a_tenant_turns_off_are_missed),
                T(policies_that_do_not_exist_are_the_remedy),
                T(a_namespace_without_a_policy_is_used_and_reported),
                T(nothing_is_run_in_a_namespace_that_is_not_verified),
                T(a_policy_takes_precedence_over_the_option),
                T(policies_of_several_namespaces_are_compared_with_the_workloads),
                T(a_release_for_gpus_only_does_not_hide_the_driver),
                T(a_release_for_gpus_only_is_found_beside_old_policies),
                T(why_names_a_release_for_gpus_only),
                T(releases_for_gpus_only_are_listed),
                T(a_policy_names_the_namespace_of_workloads_that_may_not_be_read),
                T(the_condition_of_a_policy_names_the_namespace),
                T(an_installation_for_gpus_only_is_verified),
                T(the_go_driver_is_not_guessed),
                T(a_bundle_without_policies_is_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
