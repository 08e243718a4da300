/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/cli/doctor_world.h"

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

static const char *const schemas[] = {
#include "schemas.inc"
};

struct cluster *cluster;

/* ---- a healthy cluster ---- */

void put_crd(size_t i, const char *name) {
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"%s.resource.nvidia.com\"},\"spec\":{\"versions\":[{\"name\":"
                "\"v1beta1\",\"served\":true,\"schema\":{\"openAPIV3Schema\":%s}}]},\"status\":{"
                "\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]}}",
                name, schemas[i]);
        cluster_put_json(cluster, &kube_crds, json);
}

static void put_policy(const char *name) {
        cluster_policy(cluster, name, CLUSTER_NS);
        cluster_put(cluster, &doctor_kinds_bindings,
                    "{'metadata':{'name':'cd-%s'},'spec':{'policyName':'cd-%s'}}", name, name);
}

void put_namespace(const char *level) {
        cluster_put(cluster, &kube_namespaces,
                    "{'metadata':{'name':'" CLUSTER_NS
                    "','labels':{'pod-security.kubernetes.io/enforce':'%s'}}}",
                    level);
}

void put_lease(const char *renewed) {
        cluster_put(cluster, &kube_leases,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-controller'},'spec':{'holderIdentity':'controller-0','"
                    "leaseDurationSeconds':15,'renewTime':'%s'}}",
                    renewed);
}

void put_plugin(const char *node, const char *image, const char *status) {
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin-%s','labels':{}},'spec':{'nodeName':'%s','"
                    "containers':[{'name':'compute-domains','image':'%s','command':['"
                    "compute-domain-kubelet-plugin']},{'name':'gpus','image':'%s','command':['"
                    "gpu-kubelet-plugin']}]},'status':{%s}}",
                    node, node, image, image, status);
}

void put_daemon_set(const char *image, int desired, int current) {
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin'},'spec':{'template':{'spec':{'containers':[{'"
                    "name':'compute-domains','image':'%s','command':['compute-domain-kubelet-plugin']}]}}},'"
                    "status':{'desiredNumberScheduled':%d,'currentNumberScheduled':%d,'numberReady':%d}}",
                    image, desired, current, current);
}

void put_class(const char *name, const char *spec) {
        cluster_put(cluster, &tool_kinds_device_classes, "{'metadata':{'name':'%s'},'spec':{%s}}", name,
                    spec);
}

void begin_healthy(void) {
        static const char *const policies[] = {
                "fabrics",        "controller-nodes", "controller-daemonsets", "controller-claimtemplates",
                "resourceslices", "events",           "daemon-claims",         "daemon-pods",
                "go-daemon-pods"
        };
        static const char *const nodes[] = { "a0", "a1", "a2", "a3", "b0", "b1" };
        cluster = cluster_new();
        options = (struct options){ .output = "table" };
        doctor_options = (struct doctor_options){ 0 };
        put_crd(0, "computedomains");
        put_crd(1, "computedomaincliques");
        put_crd(2, "computedomainfabrics");
        for (size_t i = 0; i < ARRAY_LEN(policies); i++)
                put_policy(policies[i]);
        put_namespace("privileged");
        put_lease("2026-11-27T11:59:58.000000Z");
        put_class(CD_CLASS_CHANNEL, "");
        put_class(CD_CLASS_DAEMON, "");
        put_daemon_set(IMAGE, 6, 6);
        for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
                put_plugin(nodes[i], IMAGE, RUNS);
        /* The policy of the chart. */
        cluster_put(cluster, &tool_kinds_policies,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-daemon'},'spec':{'podSelector':{'matchLabels':{"
                    "'" CD_LABEL_COMPONENT "':'" CD_DAEMON_OBJECT "'}},'policyTypes':['Ingress'],'ingress':[{"
                    "'from':[{}],'ports':[{'protocol':'TCP','port':50005},{'protocol':'TCP','port':28000,"
                    "'endPort':32095}]}]}}");
}

void end_cluster(void) {
        cluster_free(cluster);
        cluster = NULL;
}

/* A cluster without any driver. */
void begin_empty(void) {
        begin_healthy();
        cluster_remove_all(cluster, &tool_kinds_deployments);
        cluster_remove_all(cluster, &kube_daemonsets);
        cluster_remove_all(cluster, &kube_pods);
        cluster_remove_all(cluster, &kube_namespaces);
        cluster_remove_all(cluster, &tool_kinds_device_classes);
        cluster_remove_all(cluster, &kube_crds);
        cluster_remove_all(cluster, &doctor_kinds_admission);
        cluster_remove_all(cluster, &doctor_kinds_bindings);
}

#define GO_NS "dra-driver-nvidia-gpu"

void put_go_driver(void) {
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'" GO_NS
                    "','name':'dra-driver-nvidia-gpu-kubelet-plugin','labels':{'app.kubernetes.io/instance':"
                    "'dra'}},'spec':{'template':{'spec':{'containers':[{'name':'compute-domains','image':'"
                    "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.5.0@sha256:00','command':['"
                    "compute-domain-kubelet-plugin']}]}}},'status':{}}");
        cluster_put(
                cluster, &tool_kinds_deployments,
                "{'metadata':{'namespace':'" GO_NS
                "','name':'dra-driver-nvidia-gpu-controller'},'spec':{'replicas':1,'template':{'spec':{'"
                "containers':[{'name':'compute-domain','image':'mirror.example:5000/"
                "dra-driver-nvidia-gpu:v0.5.0','command':['compute-domain-controller']}]}}},'status':{}}");
}

/* The Go driver, and a ComputeDomain that it has formed. */
static void begin_go(void) {
        begin_empty();
        put_go_driver();
        put_crd(0, "computedomains");
        put_crd(1, "computedomaincliques");
        put_class(CD_CLASS_CHANNEL, "");
        cluster_domain(cluster, "team-a", "llm", "aa000000-0000-4000-8000-000000000001",
                       "'status':'Ready','nodes':[{'name':'a0','cliqueID':'" CLUSTER_A
                       "','index':0,'status':'Ready'}]");
        cluster_claim(cluster, "team-a", "llm-0.channel", "aa000000-0000-4000-8000-000000000001", "a0");
        cluster_put(cluster, &doctor_kinds_cliques,
                    "{'metadata':{'namespace':'" GO_NS
                    "','name':'aa000000-0000-4000-8000-000000000001." CLUSTER_A "','labels':{'" CD_LABEL
                    "':'aa000000-0000-4000-8000-000000000001'}}}");
}

void put_node(const char *name, const char *labels, const char *info, const char *more) {
        cluster_put(
                cluster, &kube_nodes,
                "{'metadata':{'name':'%s','labels':{%s}},'spec':{},'status':{'conditions':[{'type':'Ready',"
                "'status':'True'}],'nodeInfo':{%s}%s}}",
                name, labels, info, more);
}

void denying_policy(void) {
        cluster_put(cluster, &tool_kinds_policies,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'default-deny'},'spec':{'podSelector':{},'policyTypes':['Ingress','Egress']}}");
        cluster_put(cluster, &tool_kinds_policies,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'dns'},'spec':{'podSelector':{},'policyTypes':['Egress'],'egress':[{'ports':[{"
                    "'protocol':'UDP','port':53},{'protocol':'TCP','port':53}]}]}}");
}

void withheld(const char *node, const char *reason, const char *why) {
        _cleanup_(freep) char *text =
                xasprintf("no IMEX channel or daemon is offered on this node (%s): %s", reason, why);
        cluster_withhold(cluster, node);
        cluster_event(cluster, "Node", NULL, node, "ComputeDomainDevicesWithheld", text);
}

void fabric_error(void) {
        for (const char *p = "a0a1a2a3b0b1"; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 };
                withheld(node, "FabricError", "2 of 4 GPUs are not registered");
        }
}

void node_event(const char *node, const char *reason, const char *message) {
        cluster_event(cluster, "Node", NULL, node, reason, message);
}

/* ---- running it ---- */

struct source *bundle_of_cluster(void) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(BUNDLE_MAX);
        struct source *read;
        struct view v;
        struct err e;
        struct bundle_writer *w = bundle_writer_new(cluster_source(cluster));
        view_init(&v, bundle_writer_source(w));
        bundle_read_all(&v, "team-b");
        view_done(&v);
        bundle_writer_render(w, &tar);
        bundle_writer_free(w);
        assert_int_equal(bundle_read_tar((struct str){ tar.p, tar.n }, NULL, &read, &e), 0);
        return read;
}

const char *named_namespace;

void begin_mode(unsigned mode) {
        if (mode == DOCTOR_PRE)
                begin_empty();
        else if (mode == DOCTOR_GO)
                begin_go();
        else
                begin_healthy();
        setenv("FAKE_EXEC", "fine", 1);
}

void examine(struct doctor_test *x, struct source *s, unsigned mode) {
        static const char *const args[] = { "--context", "prod" };
        const struct kubectl k = { FAKE_EXEC, args, ARRAY_LEN(args) };
        view_init(&x->v, s);
        x->v.named_ns = named_namespace;
        x->d = (struct doctor){ .v = &x->v, .a = x->v.a, .mode = mode, .ns = CLUSTER_NS };
        x->t = (struct term){ .out = BUF_INIT(TERM_OUT_MAX) };
        doctor_run_checks(&x->d);
        if (mode == DOCTOR_NODE)
                doctor_check_node(&x->d, "a0", &k);
        doctor_print(&x->d, &x->t);
}

void examined(struct doctor_test *x) {
        buf_done(&x->t.out);
        view_done(&x->v);
}

size_t count_state(const struct doctor *d, enum doctor_state state) {
        size_t n = 0;
        for (size_t i = 0; i < d->n; i++)
                n += d->results[i].state == state;
        return n;
}

bool has_fault(const struct doctor *d, enum doctor_fault fault) {
        for (size_t i = 0; i < d->n; i++)
                if (d->results[i].state == DOCTOR_PROBLEM && d->results[i].fault == fault)
                        return true;
        return false;
}
