/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures of `status` and `racks`, and the documentation of the commands. The texts are in
 * test/unit/golden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/command_table.h"
#include "cli/pod_case.h"
#include "cli/racks_html.h"
#include "unit/golden.h"
#include "world/cluster.h"

static struct cluster *cluster;

static int set_up(void **state) {
        (void)state;
        cluster = cluster_new();
        options = (struct options){ .output = "table" };
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        cluster_free(cluster);
        return 0;
}

static int run_command_on(const struct command *command, const char *golden) {
        struct cli c = { .a = arena_new(1024),
                         .source = cluster_source(cluster),
                         .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        view_init(&c.v, c.source);
        int r = command->run(&c);
        if (golden)
                golden_compare(golden, buf_str(&c.t.out));
        view_done(&c.v);
        buf_done(&c.t.out);
        arena_free(c.a);
        return r;
}

#define LLM "aa000000-0000-4000-8000-000000000001"
#define NODE(n, clique, i, s) "{'name':'" n "','cliqueID':'" clique "','index':" i ",'status':'" s "'}"

/* Two ComputeDomains, one of which waits for a node, and a node that withholds its channel. */
static void some_trouble(void) {
        cluster_domain(cluster, "team-a", "llm-70b", LLM,
                       "'status':'Ready','nodesReady':2,'nodesWanted':2,'nodes':[" NODE(
                               "a0", CLUSTER_A, "0",
                               "Ready") "," NODE("a1", CLUSTER_A, "1",
                                                 "Ready") "],'conditions':[{'type':'PeersConnected','status':"
                                                          "'True','reason':'AllConnected'}]");
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'NotReady','nodesReady':0,'nodesWanted':1,'nodes':[" NODE(
                               "a2", CLUSTER_A, "0",
                               "NotReady") "],'conditions':[{'type':'Ready','status':'False','reason':'"
                                           "NodesNotReady','message':'a2: no daemon Pod on the node yet'},"
                                           "{'type':'PeersConnected','status':'False','reason':'PeersMissing'"
                                           ",'message':'a2'}]");
        cluster_claim(cluster, "team-a", "l-0.channel", LLM, "a0");
        cluster_claim(cluster, "team-a", "l-1.channel", LLM, "a1");
        cluster_claim(cluster, "team-b", "b-0.channel", CLUSTER_BENCH, "a2");
        cluster_withhold(cluster, "b1");
        cluster_event(cluster, "Node", NULL, "b1", "ComputeDomainDevicesWithheld",
                      "no IMEX channel or daemon is offered on this node (FabricError): broken");
}

static void status_shows_driver_racks_and_domains(void **state) {
        (void)state;
        some_trouble();
        assert_int_equal(run_command_on(&command_status, "cli-status.txt"), COMMAND_PROBLEM);
        options.output = "json";
        assert_int_equal(run_command_on(&command_status, "cli-status-json.txt"), COMMAND_PROBLEM);
}

static void status_of_a_healthy_cluster_has_no_problem(void **state) {
        (void)state;
        assert_int_equal(run_command_on(&command_status, "cli-status-fine.txt"), COMMAND_FINE);
}

/* The daemons query the connections again within half a minute. */
static void status_shows_peers_as_connecting_until_the_daemons_have_looked_again(void **state) {
        (void)state;
        static const char status[] = "'status':'Ready','nodesReady':2,'nodesWanted':2,'nodes':[" NODE(
                "a0", CLUSTER_A, "0",
                "Ready") "," NODE("a1", CLUSTER_A, "1",
                                  "Ready") "],'"
                                           "conditions':[{'type':'PeersConnected','status':'False','reason':'"
                                           "PeersMissing','message':"
                                           "'a0: not connected to its only "
                                           "peers','lastTransitionTime':'2026-11-27T%s'}]";
        _cleanup_(freep) char *young = xasprintf(status, "11:59:30Z"), *old = xasprintf(status, "11:59:00Z");
        cluster_domain(cluster, "team-a", "llm-70b", LLM, young);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, old);
        assert_int_equal(run_command_on(&command_status, "cli-status-connecting.txt"), COMMAND_PROBLEM);
}

static void status_shows_a_tenant_its_own_domains(void **state) {
        (void)state;
        some_trouble();
        cluster_confine(cluster, "team-b");
        assert_int_equal(run_command_on(&command_status, "cli-status-confined.txt"), COMMAND_PROBLEM);
}

/* Ready and no node: nothing else shows that the pods of team-b wait. */
static void a_computedomain_whose_pods_wait_for_a_channel_is_a_problem(void **state) {
        (void)state;
#define SHORT                                                                                                \
        "{'type':'ChannelAvailable','status':'False','reason':'NoFreeChannel','message':'All channels are "  \
        "in "                                                                                                \
        "use: 6 of 6'}"
        cluster_domain(
                cluster, "team-b", "bench", CLUSTER_BENCH,
                "'status':'Ready','conditions':[{'type':'Ready','status':'True','reason':'NoNodes'}," SHORT
                "]");
        cluster_domain(cluster, "team-b", "other", LLM,
                       "'status':'NotReady','conditions':[{'type':'Ready','status':'False','reason':'"
                       "NodesMissing','message':'1 node has joined, but spec.numNodes is 4'}," SHORT "]");
        cluster_confine(cluster, "team-b");
        assert_int_equal(run_command_on(&command_status, "cli-status-shortage.txt"), COMMAND_PROBLEM);
}

/* The caller frees the page. */
static char *page_of(struct cluster *c) {
        struct buf b = BUF_INIT(TERM_OUT_MAX);
        struct inventory inv;
        struct view v;
        view_init(&v, cluster_source(c));
        inventory_make(&v, "team-b", &inv);
        racks_html(&v, &inv, &b);
        view_done(&v);
        return buf_steal(&b);
}

/* Runs a command. Its output contains the text. */
static void command_has(const struct command *command, int code, const char *text) {
        struct cli c = { .a = arena_new(1024),
                         .source = cluster_source(cluster),
                         .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        view_init(&c.v, c.source);
        int r = command->run(&c);
        if (r != code || !strstr(buf_str(&c.t.out), text))
                fail_msg("exit code %d, or no '%s' in: %s", r, text, buf_str(&c.t.out));
        view_done(&c.v);
        buf_done(&c.t.out);
        arena_free(c.a);
}

#define CONDITION(type, status, reason, message)                                                             \
        "{'type':'" type "','status':'" status "','reason':'" reason "','message':'" message "'}"
#define ADMITTED "'status':'Ready','conditions':[{'type':'Ready','status':'True','reason':'Admitted'},"
#define ADMITTED_BUT(type, reason, message) ADMITTED CONDITION(type, "False", reason, message) "]"

/* failure: IMEX of a host is down and Ready is True, as with host-managed IMEX -> `status` reports a problem
 */
static void status_reports_each_condition_that_is_a_problem(void **state) {
        (void)state;
        static const struct {
                const char *status, *text;
        } cases[] = {
                { ADMITTED_BUT("HostIMEXHealthy", "HostIMEXDown", "a0 is DOWN: -"),
                  "HostIMEXDown: a0 is DOWN: -" },
                { ADMITTED_BUT("HostIMEXHealthy", "HostIMEXDegraded", "a0 is DEGRADED: -"),
                  "HostIMEXDegraded: a0 is DEGRADED: -" },
                { ADMITTED_BUT("IMEXHealthy", "IMEXDown", "a0 is DOWN: -"), "IMEXDown: a0 is DOWN: -" },
                { ADMITTED_BUT("ChannelAssigned", "Waiting", "none on rack-a yet"),
                  "Waiting: none on rack-a yet" },
                { ADMITTED_BUT("SharedClaimAvailable", "NoChannelOffered", "no label"),
                  "NoChannelOffered: no label" },
                { ADMITTED_BUT("SharedClaimAvailable", "SharedClaimsNotSupported", "old"),
                  "SharedClaimsNotSupported: old" },
                { ADMITTED_BUT("StartGateOpen", "StartGateInvalid", "no number"),
                  "StartGateInvalid: no number" },
                { ADMITTED CONDITION("IMEXHealthy", "True", "IMEXUp", "-") "," CONDITION(
                          "StartGateOpen", "False", "StartGateClosed", "1 of 4") "]",
                  "StartGateClosed: 1 of 4" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, cases[i].status);
                command_has(&command_status, COMMAND_PROBLEM, cases[i].text);
                _cleanup_(freep) char *page = page_of(cluster);
                assert_non_null(strstr(page, cases[i].text));
        }
}

static void a_computedomain_without_pods_is_no_problem(void **state) {
        (void)state;
        static const char *const cases[] = {
                ADMITTED CONDITION("HostIMEXHealthy", "Unknown", "NoNodes", "-") "," CONDITION(
                        "ChannelAssigned", "Unknown", "NoNodes",
                        "-") "," CONDITION("StartGateOpen", "False", "StartGateClosed", "0 of 4") "]",
                "'status':'NotReady','conditions':[" CONDITION(
                        "Ready", "False", "NodesMissing",
                        "0 nodes") "," CONDITION("PeersConnected", "Unknown", "NoFabricNodes",
                                                 "-") "," CONDITION("StartGateOpen", "False",
                                                                    "StartGateClosed", "0 of 4") "]",
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct diagnosis d = { 0 };
                struct view v;
                cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, cases[i]);
                command_has(&command_status, COMMAND_FINE, i ? "0 nodes" : "Ready");
                /* What `doctor` asks. */
                view_init(&v, cluster_source(cluster));
                view_read(&v, VIEW_DOMAINS, NULL);
                d.v = &v;
                d.a = v.a;
                VIEW_EACH(&v, VIEW_DOMAINS, struct compute_domain, cd)
                for (size_t k = 0; k < cd->n_conditions; k++)
                        assert_false(domain_diagnose_condition(&d, cd, &cd->conditions[k]));
                view_done(&v);
        }
}

/* Its other conditions are not written any more. */
static void a_computedomain_that_is_being_deleted_is_judged_by_its_condition_ready(void **state) {
        (void)state;
        static const char deleting[] =
                "{'metadata':{'namespace':'team-b','name':'bench','uid':'" CLUSTER_BENCH
                "','deletionTimestamp':'2026-11-27T11:59:50Z'},'spec':{'numNodes':0},'status':{'status':'%s',"
                "'conditions':[{'type':'Ready','status':'%s','reason':'%s','message':'m'}," CONDITION(
                        "PeersConnected", "False", "PeersMissing", "a0") "]}}";
        cluster_put(cluster, &kube_compute_domains, deleting, "Ready", "True", "AllNodesReady");
        command_has(&command_status, COMMAND_FINE, "Deleting");
        cluster_put(cluster, &kube_compute_domains, deleting, "NotReady", "False", "DeletionWaiting");
        command_has(&command_status, COMMAND_PROBLEM, "Deleting");
}

static void version_has(const char *text) {
        command_has(&command_version, COMMAND_FINE, text);
}

static void the_go_driver_is_not_mistaken_for_this_driver(void **state) {
        (void)state;
        cluster_put(
                cluster, &tool_kinds_deployments,
                "{'metadata':{'namespace':'dra','name':'x-controller','labels':{'app.kubernetes.io/version':"
                "'0.5.0'}},'spec':{'replicas':1,'template':{'spec':{'containers':[{'name':'compute-domain','"
                "image':'registry.example/dra-driver-nvidia-gpu:v0.5.0','command':['compute-domain-controller"
                "']}]}}},'status':{'readyReplicas':0}}");
        version_has("driver      0.1.0\nimage       registry.example/compute-domains:v0.1.0\n");
        assert_int_equal(run_command_on(&command_status, "cli-status-fine.txt"), COMMAND_FINE);
        cluster_remove(cluster, &tool_kinds_deployments, CLUSTER_NS, "compute-domains-controller");
        version_has("driver      not found\nkubernetes");
}

static void status_without_any_right_has_its_own_exit_code(void **state) {
        (void)state;
        cluster_confine(cluster, "team-z");
        assert_int_equal(run_command_on(&command_status, NULL), COMMAND_DENIED);
}

/* Runs `status`, whose output lacks the text. */
static void status_lacks(const char *text) {
        struct cli c = { .a = arena_new(1024),
                         .source = cluster_source(cluster),
                         .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        view_init(&c.v, c.source);
        command_status.run(&c);
        if (strstr(buf_str(&c.t.out), text))
                fail_msg("'%s' in: %s", text, buf_str(&c.t.out));
        view_done(&c.v);
        buf_done(&c.t.out);
        arena_free(c.a);
}

/* failure: the user may list ComputeDomains in no namespace -> `status` does not claim that there is none */
static void status_reports_that_no_computedomain_may_be_read(void **state) {
        (void)state;
        static const char *const namespaces[] = { NULL, "team-b" };
        cluster_confine(cluster, "team-z");
        for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
                options.ns = namespaces[i];
                command_has(&command_status, COMMAND_DENIED, "\n\nComputeDomains may not be read\n");
                status_lacks("No ComputeDomain");
        }
        options.output = "json";
        command_has(&command_status, COMMAND_DENIED, "\"domainsUnread\":\"ComputeDomains may not be read\"");
}

/* failure: the user may list ComputeDomains of one namespace -> `status -A` reports that others are missing
 */
static void status_of_all_namespaces_reports_that_others_may_not_be_read(void **state) {
        (void)state;
        static const char others[] = "\n\n? ComputeDomains of other namespaces may not be read\n";
        cluster_confine(cluster, "team-b");
        command_has(&command_status, COMMAND_FINE, others);
        options.ns = "team-b";
        status_lacks("of other namespaces"); /* the user asks for no other */
        options.all_namespaces = true;
        command_has(&command_status, COMMAND_DENIED, "team-b/bench");
        command_has(&command_status, COMMAND_DENIED, others);
        cluster_remove_all(cluster, &kube_compute_domains);
        command_has(&command_status, COMMAND_DENIED,
                    "No ComputeDomain in namespace team-b\n\n? ComputeDomains of");
        options.output = "json";
        command_has(&command_status, COMMAND_DENIED,
                    "\"domainsUnread\":\"ComputeDomains of other namespaces may not be read\"");
        options.output = "table";
        some_trouble();
        command_has(&command_status, COMMAND_PROBLEM, others);
        cluster_confine(cluster, NULL);
        status_lacks("may not be read");
}

/* No list is answered, which does not show a healthy cluster. */
static void lists_that_failed_have_their_own_exit_code(void **state) {
        (void)state;
        static const char down[] = "the API server does not answer";
        cluster_fail(cluster, &kube_compute_domains, ERR_RETRY, down);
        command_has(&command_status, COMMAND_FAILED,
                    "controller   2/2\n  \xe2\x9c\x94 plugins      6/6\n  \xe2\x9c\x94 nodes        6 offer");
        command_has(&command_status, COMMAND_FAILED,
                    "\n\nThe ComputeDomains could not be read\n\n? computedomains: the API server does");
        command_has(&command_version, COMMAND_FINE, "driver      0.1.0");
        cluster_fail(cluster, &kube_resource_claims, ERR_RETRY, down);
        command_has(&command_status, COMMAND_FAILED, "? nodes        could not be read\n");
        cluster_fail(cluster, &kube_pods, ERR_RETRY, down);
        command_has(&command_status, COMMAND_FAILED, "? plugins      could not be read\n");
        const struct kube_resource *others[] = { &kube_daemonsets, &tool_kinds_deployments, &kube_nodes,
                                                 &kube_resource_slices, &kube_fabrics };
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                cluster_fail(cluster, others[i], ERR_RETRY, down);
        command_has(&command_status, COMMAND_FAILED,
                    "? controller   could not be read\n  ? plugins      could not be read\n  ? nodes        "
                    "could not be read\n");
        command_has(&command_version, COMMAND_FAILED, "driver      could not be read\n");
        options.output = "json";
        command_has(&command_status, COMMAND_FAILED,
                    "\"problems\":0,\"failed\":[{\"what\":\"pods\",\"why\":\"the API server does not");
}

/* Names in a bundle from somebody else may be no names of Kubernetes. */
static void names_in_commands_are_quoted(void **state) {
        (void)state;
        cluster_domain(cluster, "team-b", "x;id", LLM,
                       "'status':'NotReady','conditions':[{'type':'Ready','status':'False','reason':'"
                       "NodeFailing','message':'m'}]");
        command_has(&command_status, COMMAND_PROBLEM, "why computedomain/'x;id' -n team-b");
}

/* Another list shows the problem. */
static void a_problem_outweighs_a_list_that_failed(void **state) {
        (void)state;
        some_trouble();
        cluster_fail(cluster, &kube_nodes, ERR_RETRY, "the API server does not answer");
        command_has(&command_status, COMMAND_PROBLEM, "? nodes: the API server does not answer\n");
}

static void racks_show_who_uses_which_node(void **state) {
        (void)state;
        some_trouble();
        assert_int_equal(run_command_on(&command_racks, "cli-racks.txt"), COMMAND_FINE);
}

/* ---- the page ---- */

static void the_page_shows_racks_nodes_channels_and_problems(void **state) {
        (void)state;
        some_trouble();
        _cleanup_(freep) char *page = page_of(cluster);
        golden_compare("cli-racks.html", page);
}

static void the_page_of_assigned_channels_shows_how_many_are_in_use(void **state) {
        (void)state;
        cluster_assign_channels(cluster);
        cluster_put(
                cluster, &kube_fabrics,
                "{'metadata':{'name':'" CLUSTER_A "','uid':'" CLUSTER_A
                "'},'rack':'rack-a','tableOf':'" CLUSTER_A
                "','channelCount':2048,'channelsInUse':3,'domains':[],'channels':[],'status':{'conditions':"
                "[]}}");
        _cleanup_(freep) char *page = page_of(cluster);
        assert_non_null(strstr(page, "; 3 of 2048 IMEX channels in use"));
        assert_non_null(strstr(page, "isolation channel"));
}

/* A user chooses the names and messages of objects, and may try to run a script in an admin's browser. */
static void texts_of_objects_are_escaped_on_the_page(void **state) {
        (void)state;
        static const char evil[] =
                "</title></style><script>alert(1)</script><img src=x onerror=alert(1)>\\u0022 "
                "onload=x &lt; &#x3c; \\u202e\\u0007";
        cluster_domain(cluster, "team-b", evil, CLUSTER_BENCH, "'status':'Ready'");
        cluster_domain(
                cluster, evil, "x", LLM,
                "'status':'<b>','nodes':[{'name':'a0','cliqueID':'<i>','index':0,'status':'<u>'}],"
                "'conditions':[{'type':'Ready','status':'False','reason':'<a>','message':'<script>'}]");
        cluster_claim(cluster, evil, evil, "ff000000-0000-4000-8000-000000000001", "a3");
        cluster_claim(cluster, "team-b", "x.channel", CLUSTER_BENCH, "<svg/onload=alert(2)>");
        cluster_put(cluster, &kube_fabrics,
                    "{'metadata':{'name':'" CLUSTER_A "','uid':'" CLUSTER_A
                    "'},'rack':'<script>rack','tableOf':'" CLUSTER_A
                    "','conditions':[{'type':'<q>','status':'True','message':'%s'}]}",
                    evil);
        cluster_withhold(cluster, "b1");
        cluster_event(cluster, "Node", NULL, "b1", "ComputeDomainDevicesWithheld",
                      "no IMEX channel or daemon is offered on this node (<p>): <h1>");
        _cleanup_(freep) char *page = page_of(cluster);
        static const char *const never[] = { "<script", "<img",   "<svg",       "<i>",   "<u>",
                                             "<a>",     "<q>",    "<p>:",       "<h1><", "onload=x\"",
                                             "\x07",    "\u202e", "javascript:" };
        for (size_t i = 0; i < ARRAY_LEN(never); i++)
                if (strstr(page, never[i]))
                        fail_msg("the page contains %s", never[i]);
        assert_non_null(strstr(page, "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"
                                     "&quot; onload=x &amp;lt; &amp;#x3c; ??"));
        assert_non_null(strstr(page, "<b>&lt;script&gt;rack</b>"));
        assert_non_null(strstr(page, "<th scope=\"row\">&lt;svg/onload=alert(2)&gt;</th>"));
        /* The only end tags of elements that could be closed early. */
        for (size_t i = 0; i < 2; i++) {
                const char *tag = i ? "</style>" : "</title>", *first = strstr(page, tag);
                assert_non_null(first);
                assert_null(strstr(first + 1, tag));
        }
}

static void a_page_without_nodes_is_complete(void **state) {
        (void)state;
        cluster_remove_all(cluster, &kube_nodes);
        cluster_remove_all(cluster, &kube_resource_slices);
        cluster_remove_all(cluster, &kube_fabrics);
        cluster_remove_all(cluster, &kube_compute_domains);
        _cleanup_(freep) char *page = page_of(cluster);
        assert_non_null(strstr(page, "<p>No node has a GPU.</p>"));
        assert_non_null(strstr(page, "<h2>ComputeDomains</h2>\n<p>None.</p>"));
        assert_non_null(strstr(page, "</html>"));
}

/* Without these lists, there may be more problems. */
static void a_page_without_all_lists_does_not_deny_problems(void **state) {
        (void)state;
        _cleanup_(freep) char *complete = page_of(cluster);
        assert_non_null(strstr(complete, "<h2>Problems</h2>\n<p class=\"good\">None.</p>"));
        cluster_fail(cluster, &kube_fabrics, ERR_DENIED, "no");
        cluster_fail(cluster, &kube_pods, ERR_RETRY, "no");
        _cleanup_(freep) char *partial = page_of(cluster);
        assert_non_null(strstr(partial, "<h2>Problems</h2>\n<p>None found.</p>"));
        assert_non_null(strstr(partial, "Not all objects could be read: computedomainfabrics, pods</p>"));
}

/* The plugin reports the channels that its node holds. A shared claim names no node. */
static void racks_show_computedomains_with_shared_claims(void **state) {
        (void)state;
        cluster_assign_channels(cluster);
        cluster_put(cluster, &kube_compute_domains,
                    "{'metadata':{'namespace':'team-a','name':'llm','uid':'" LLM
                    "'},'spec':{'numNodes':0,'channel':{'resourceClaim':{'name':'llm'}}},'status':{'status':"
                    "'Ready'}}");
        cluster_claim(cluster, "team-b", "b-0.channel", CLUSTER_BENCH, "a1");
        for (size_t i = 0; i < 2; i++)
                cluster_put(cluster, &kube_pods,
                            "{'metadata':{'namespace':'" CLUSTER_NS
                            "','name':'compute-domains-kubelet-plugin-a%zu','annotations':{"
                            "'" IMEX_ANNOTATION_HOST_CHANNELS "':'{\\u0022" CLUSTER_A
                            "\\u0022:{\\u0022uid\\u0022:\\u0022\\u0022,\\u0022channelCount\\u0022:2048,"
                            "\\u0022held\\u0022:{\\u00227\\u0022:\\u0022" LLM
                            "\\u0022,\\u00228\\u0022:\\u0022" CLUSTER_BENCH
                            "\\u0022}}}'}},'spec':{'nodeName':'a%zu','containers':[{'name':'compute-domains',"
                            "'command':['compute-domain-kubelet-plugin']}]},'status':{'phase':'Running',"
                            "'conditions':[{'type':'Ready','status':'True'}]}}",
                            i, i);
        assert_int_equal(run_command_on(&command_racks, "cli-racks-shared.txt"), COMMAND_FINE);
        _cleanup_(freep) char *page = page_of(cluster);
        assert_non_null(strstr(page, "team-a/llm <span class=\"dim\">shared claim</span>"));
        options.output = "json";
        command_has(&command_racks, COMMAND_FINE, "\"usedBy\":[\"team-b/bench\",\"team-a/llm\"]");
}

/* failure: only the plugin of GPUs is installed -> no node is reported to lack its plugin */
static void status_of_gpus_only_reports_no_missing_pods(void **state) {
        (void)state;
        cluster_remove_all(cluster, &tool_kinds_deployments);
        cluster_remove_all(cluster, &kube_daemonsets);
        cluster_remove_all(cluster, &kube_pods);
        cluster_remove_all(cluster, &kube_resource_slices);
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'gpus'},'spec':{'template':{'spec':{'containers':[{'name':'gpus','command':["
                    "'gpu-kubelet-plugin']}]}}}}");
        command_has(&command_status, COMMAND_PROBLEM, "plugins      not installed\n");
        /* The controller, the plugins and the nodes: no line about a single node. */
        command_has(&command_status, COMMAND_PROBLEM, "\n3 problems\n");
        _cleanup_(freep) char *page = page_of(cluster);
        assert_null(strstr(page, "no plugin Pod"));
        assert_non_null(
                strstr(page, "<ul>\n<li><b>the driver</b>: ComputeDomains are not installed</li>\n</ul>"));
        assert_non_null(strstr(page, "<td class=\"bad\">ComputeDomains are not installed</td>"));
}

static void plugins_without_their_daemonset_are_judged(void **state) {
        (void)state;
        cluster_remove(cluster, &kube_daemonsets, CLUSTER_NS, "compute-domains-kubelet-plugin");
        assert_int_equal(run_command_on(&command_status, "cli-status-fine.txt"), COMMAND_FINE);
}

/* The driver runs, and its CustomResourceDefinition was deleted. */
static void a_missing_definition_is_no_missing_driver(void **state) {
        (void)state;
        cluster_fail(cluster, &kube_compute_domains, ERR_NOT_FOUND, "no such kind");
        command_has(&command_status, COMMAND_PROBLEM, "controller   2/2\n");
        command_has(&command_status, COMMAND_PROBLEM,
                    "The CustomResourceDefinition computedomains.resource.nvidia.com is missing");
        command_has(&command_status, COMMAND_PROBLEM, "\n1 problem\n");
        options.output = "json";
        command_has(&command_status, COMMAND_PROBLEM, "\"problems\":1");
        command_has(&command_status, COMMAND_PROBLEM, "\"definitionMissing\":true");
        cluster_remove_all(cluster, &tool_kinds_deployments);
        cluster_remove_all(cluster, &kube_daemonsets);
        command_has(&command_status, COMMAND_PROBLEM, "{\"namespace\":");
        options.output = "table";
        command_has(&command_status, COMMAND_PROBLEM,
                    "The cluster has no ComputeDomains: the driver is not installed.");
}

static void watch_refuses_what_it_cannot_show(void **state) {
        (void)state;
        static const char *const args[] = { "pod/x", "node/x", "computedomain/x" };
        for (size_t i = 0; i < ARRAY_LEN(args); i++) {
                const char *arg = args[i];
                struct cli c = { .a = arena_new(1024), .args = &arg, .n_args = 1 };
                options.output = i == 2 ? "json" : "table";
                assert_int_equal(command_watch.run(&c), COMMAND_FAILED);
                arena_free(c.a);
        }
}

static void racks_need_cluster_rights(void **state) {
        (void)state;
        cluster_confine(cluster, "team-b");
        assert_int_equal(run_command_on(&command_racks, NULL), COMMAND_DENIED);
}

static void the_page_of_the_documentation_is_current(void **state) {
        (void)state;
        struct buf b = BUF_INIT(1 << 20);
        command_page(&b);
        golden_compare("../../../docs/reference/cli.md", buf_str(&b));
        buf_done(&b);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(status_shows_driver_racks_and_domains),
                T(status_of_a_healthy_cluster_has_no_problem),
                T(status_shows_peers_as_connecting_until_the_daemons_have_looked_again),
                T(status_shows_a_tenant_its_own_domains),
                T(a_computedomain_whose_pods_wait_for_a_channel_is_a_problem),
                T(status_reports_each_condition_that_is_a_problem),
                T(a_computedomain_without_pods_is_no_problem),
                T(a_computedomain_that_is_being_deleted_is_judged_by_its_condition_ready),
                T(the_go_driver_is_not_mistaken_for_this_driver),
                T(status_without_any_right_has_its_own_exit_code),
                T(status_reports_that_no_computedomain_may_be_read),
                T(status_of_all_namespaces_reports_that_others_may_not_be_read),
                T(lists_that_failed_have_their_own_exit_code),
                T(names_in_commands_are_quoted),
                T(a_problem_outweighs_a_list_that_failed),
                T(racks_show_who_uses_which_node),
                T(the_page_shows_racks_nodes_channels_and_problems),
                T(the_page_of_assigned_channels_shows_how_many_are_in_use),
                T(texts_of_objects_are_escaped_on_the_page),
                T(a_page_without_nodes_is_complete),
                T(a_page_without_all_lists_does_not_deny_problems),
                T(racks_show_computedomains_with_shared_claims),
                T(status_of_gpus_only_reports_no_missing_pods),
                T(plugins_without_their_daemonset_are_judged),
                T(a_missing_definition_is_no_missing_driver),
                T(watch_refuses_what_it_cannot_show),
                T(racks_need_cluster_rights),
                T(the_page_of_the_documentation_is_current),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
