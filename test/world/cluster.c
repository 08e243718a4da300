/* SPDX-License-Identifier: Apache-2.0 */
#include "world/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/doctor_kinds.h"
#include "cli/tool_kinds.h"

enum { OBJECTS_MAX = 4000, FAILURES_MAX = 16 };

struct cluster_object {
        const struct kube_resource *res;
        yyjson_doc *doc;
};

struct cluster {
        struct source source;
        struct cluster_object objects[OBJECTS_MAX];
        size_t n;
        const char *confined, *version;
        struct {
                const struct kube_resource *res;
                struct err e;
        } failures[FAILURES_MAX];
        size_t n_failures;
};

static const char *meta_of(const struct cluster_object *o, const char *key) {
        return yyjson_get_str(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(o->doc), "metadata"), key));
}

static int fake_list(struct source *s, const struct source_query *q, source_object_fn *fn, void *u,
                     struct err *e) {
        struct cluster *c = CONTAINER(s, struct cluster, source);
        for (size_t i = 0; i < c->n_failures; i++)
                if (c->failures[i].res == q->res) {
                        *e = c->failures[i].e;
                        return -1;
                }
        if (c->confined && (!q->res->namespaced || !streq(q->ns, c->confined)))
                return err_set(e, ERR_DENIED, 403, "%s is forbidden: User \"jane\" cannot list resource",
                               q->res->plural);
        for (size_t i = 0; i < c->n; i++) {
                const struct cluster_object *o = &c->objects[i];
                if (o->res == q->res &&
                    (!q->ns || !q->res->namespaced || streq(q->ns, meta_of(o, "namespace"))) &&
                    (!q->name || streq(q->name, meta_of(o, "name"))))
                        fn(u, yyjson_doc_get_root(o->doc));
        }
        return 0;
}

static const char *fake_version(struct source *s) {
        return CONTAINER(s, struct cluster, source)->version;
}

static void fake_free(struct source *s) {
        (void)s;
}

void cluster_remove(struct cluster *c, const struct kube_resource *res, const char *ns, const char *name) {
        for (size_t i = 0; i < c->n; i++) {
                struct cluster_object *o = &c->objects[i];
                if (o->res != res || !streq(meta_of(o, "namespace"), ns) || !streq(meta_of(o, "name"), name))
                        continue;
                yyjson_doc_free(o->doc);
                memmove(o, o + 1, (--c->n - i) * sizeof *o);
                return;
        }
}

void cluster_remove_all(struct cluster *c, const struct kube_resource *res) {
        for (size_t i = 0; i < c->n;) {
                if (c->objects[i].res == res)
                        cluster_remove(c, res, meta_of(&c->objects[i], "namespace"),
                                       meta_of(&c->objects[i], "name"));
                else
                        i++;
        }
}

void cluster_put(struct cluster *c, const struct kube_resource *res, const char *fmt, ...) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        va_list ap;
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        for (size_t i = 0; i < b.n; i++)
                if (b.p[i] == '\'')
                        b.p[i] = '"';
        cluster_put_json(c, res, buf_str(&b));
}

void cluster_put_json(struct cluster *c, const struct kube_resource *res, const char *json) {
        struct err e;
        yyjson_doc *parsed = json_parse(str_from(json), 0, &e);
        if (!parsed)
                fail_msg("%s in %s", e.msg, json);
        yyjson_mut_doc *m = yyjson_doc_mut_copy(parsed, NULL);
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(m), "metadata");
        const char *ns = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "namespace")),
                   *name = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "name"));
        if (!yyjson_mut_obj_get(meta, "uid"))
                yyjson_mut_obj_add_strcpy(m, meta, "uid", name);
        if (!yyjson_mut_obj_get(meta, "resourceVersion"))
                yyjson_mut_obj_add_str(m, meta, "resourceVersion", "1");
        if (!yyjson_mut_obj_get(meta, "creationTimestamp"))
                yyjson_mut_obj_add_str(m, meta, "creationTimestamp", CLUSTER_BEFORE);
        cluster_remove(c, res, ns, name);
        assert_true(c->n < OBJECTS_MAX);
        c->objects[c->n++] = (struct cluster_object){ res, yyjson_mut_doc_imut_copy(m, NULL) };
        yyjson_mut_doc_free(m);
        yyjson_doc_free(parsed);
}

void cluster_claim(struct cluster *c, const char *ns, const char *name, const char *domain_uid,
                   const char *node) {
        _cleanup_(freep) char *config = xasprintf(
                "{'requests':['channel'],'opaque':{'driver':'" CD_DRIVER
                "','parameters':{'apiVersion':'" CD_API_VERSION
                "','kind':'ComputeDomainChannelConfig','domainID':'%s','allocationMode':'Single'}}}",
                domain_uid);
        _cleanup_(freep) char *allocation =
                xasprintf("{'allocation':{'devices':{'results':[{'request':'channel','driver':'" CD_DRIVER
                          "','pool':'%s','device':'channel-0'}],'config':[{'source':'FromClaim',%s]}},'"
                          "reservedFor':[{'resource':'pods','name':'%.*s'}]}",
                          node ? node : "", config + 1, (int)strcspn(name, "."), name);
        cluster_put(c, &kube_resource_claims,
                    "{'metadata':{'namespace':'%s','name':'%s'},'spec':{'devices':{'requests':[{'name':'"
                    "channel','exactly':"
                    "{'deviceClassName':'" CD_CLASS_CHANNEL "'}}],'config':[%s]}},'status':%s}",
                    ns, name, config, node ? allocation : "{}");
}

void cluster_domain(struct cluster *c, const char *ns, const char *name, const char *uid,
                    const char *status) {
        cluster_put(c, &kube_compute_domains,
                    "{'metadata':{'namespace':'%s','name':'%s','uid':'%s'},'spec':{'numNodes':0,'channel':"
                    "{'resourceClaimTemplate':{'name':'%s-channel'}}},'status':{%s}}",
                    ns, name, uid, name, status);
        cluster_put(c, &kube_resource_claim_templates,
                    "{'metadata':{'namespace':'%s','name':'%s-channel','labels':{'" CD_LABEL
                    "':'%s','" CD_LABEL_TARGET "':'Workload'}},'spec':{'spec':{'devices':{'requests':[{'name'"
                                               ":'channel','exactly':{'deviceClassName':'" CD_CLASS_CHANNEL
                    "'}}],'config':[{'requests':['channel'],'opaque':{'driver':'" CD_DRIVER
                    "','parameters':{'domainID':'%s','apiVersion':'" CD_API_VERSION
                    "','kind':'ComputeDomainChannelConfig'}}}]}}}}",
                    ns, name, uid, uid);
}

void cluster_put_pod(struct cluster *c, const struct cluster_pod *p) {
        _cleanup_(freep) char *node = p->node ? xasprintf(",'nodeName':'%s'", p->node) : xstrdup("");
        _cleanup_(freep) char *claim =
                p->claim ? xasprintf(",'resourceClaimStatuses':[{'name':'channel','resourceClaimName':'%s'}]",
                                     p->claim)
                         : xstrdup("");
        cluster_put(c, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'%s','labels':{%s}},'spec':{'containers':[%s],"
                    "'resourceClaims':[{'name':'channel','resourceClaimTemplateName':'%s'}]%s%s},'status':{'"
                    "phase':'%s'%s%s}}",
                    p->name, p->labels ? p->labels : "'job-name':'train'",
                    p->containers ? p->containers
                                  : "{'name':'main','resources':{'claims':[{'name':'channel'}]}}",
                    p->template ? p->template : "bench-channel", node, p->more ? p->more : "",
                    p->phase ? p->phase : "Pending", claim, p->status ? p->status : "");
}

void cluster_event(struct cluster *c, const char *kind, const char *ns, const char *name, const char *reason,
                   const char *message) {
        _cleanup_(freep) char *event = xasprintf("%s.%zu", name, c->n);
        _cleanup_(freep) char *about = ns ? xasprintf("'namespace':'%s',", ns) : xstrdup("");
        cluster_put(c, &kube_events,
                    "{'metadata':{'namespace':'%s','name':'%s'},'involvedObject':{'kind':'%s',%s'name':'%s'},"
                    "'reason':'%s','message':'%s',"
                    "'lastTimestamp':'2026-11-27T11:59:%02zuZ'}",
                    ns ? ns : "default", event, kind, about, name, reason, message, c->n % 60);
}

static void put_slice(struct cluster *c, const char *node, const char *clique, const char *devices) {
        cluster_put(c, &kube_resource_slices,
                    "{'metadata':{'name':'%s-compute-domain','annotations':{'" CD_ANNOTATION_CLIQUE
                    "':'%s'}},'spec':{'driver':'" CD_DRIVER "','nodeName':'%s','devices':[%s]}}",
                    node, clique, node, devices);
}

void cluster_withhold(struct cluster *c, const char *node) {
        put_slice(c, node, *node == 'a' ? CLUSTER_A : CLUSTER_B, "");
}

void cluster_daemon(struct cluster *c, const char *node, const char *annotations, const char *status) {
        cluster_put(c, &kube_pods,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domain-daemon-%s','labels':{'" CD_LABEL_COMPONENT
                    "':'" CD_DAEMON_OBJECT "','app':'imex-daemon'},'annotations':{%s}},'spec':{'nodeName':'%"
                                           "s','containers':[{'name':'" CD_DAEMON_OBJECT
                    "','command':['" CD_DAEMON_OBJECT "']}]},'status':{%s}}",
                    node, annotations, node,
                    status ? status
                           : "'phase':'Running','conditions':[{'type':'Ready','status':'True'}],'"
                             "containerStatuses':[{'name':'" CD_DAEMON_OBJECT
                             "','state':{'running':{'startedAt':'2026-11-27T08:00:00Z'}}}]");
}

static void put_node(struct cluster *c, const char *node, const char *clique) {
        _cleanup_(freep) char *device = xasprintf(
                "{'name':'channel-0','attributes':{'type':{'string':'channel'},'id':{'int':0},'cliqueID':{'"
                "string':'%s'}}},"
                "{'name':'daemon-0','attributes':{'type':{'string':'daemon'},'cliqueID':{'string':'%s'}}}",
                clique, clique);
        cluster_put(c, &kube_nodes,
                    "{'metadata':{'name':'%s','labels':{'" GPU_PRESENT_LABEL "':'true','" GPU_CLIQUE_LABEL
                    "':'%s','" CD_LABEL_DAEMON "':'true'}},'spec':{},'status':{'conditions':[{'type':'Ready',"
                    "'status':'True'}],'nodeInfo':{'bootID':"
                    "'11111111-1111-4111-8111-111111111111','kubeletVersion':'v1.36.3','"
                    "containerRuntimeVersion':'containerd://"
                    "2.1.4','kernelVersion':'6.8.0-45-generic','architecture':'arm64'}}}",
                    node, clique);
        put_slice(c, node, clique, device);
        cluster_put(c, &kube_pods,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin-%s','labels':{}},'spec':{'nodeName':'%s','"
                    "containers':"
                    "[{'name':'compute-domains','command':['compute-domain-kubelet-plugin','-v','4']}]},'"
                    "status':{'phase':'Running','conditions':"
                    "[{'type':'Ready','status':'True','lastTransitionTime':'2026-11-27T08:00:00Z'}]}}",
                    node, node);
        cluster_daemon(c, node,
                       "'imex.resource.nvidia.com/state':'IDLE','imex.resource.nvidia.com/ready':'false'",
                       NULL);
}

static void put_fabric(struct cluster *c, const char *clique, const char *rack) {
        cluster_put(
                c, &kube_fabrics,
                "{'metadata':{'name':'%s','uid':'%s'},'rack':'%s','tableOf':'%s','domains':[],'channels':[]}",
                clique, clique, rack, clique);
}

static void put_controller(struct cluster *c, const char *isolation) {
        cluster_put(c, &tool_kinds_deployments,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-controller','labels':{'app.kubernetes.io/version':'0.1.0'}},"
                    "'spec':{'replicas':2,'template':{'spec':{'containers':[{'name':'compute-domain','image':"
                    "'registry.example/compute-domains:v0.1.0',"
                    "'command':['compute-domain-controller'],'env':[{'name':'IMEX_MODE','value':'"
                    "driverManaged'},{'name':'IMEX_ISOLATION','value':'%s'}]}]}}},"
                    "'status':{'readyReplicas':2}}",
                    isolation);
}

void cluster_assign_channels(struct cluster *c) {
        put_controller(c, "channel");
}

void cluster_policy(struct cluster *c, const char *name, const char *ns) {
        cluster_put(c, &doctor_kinds_admission,
                    "{'metadata':{'name':'cd-%s'},'spec':{'matchConditions':[{'name':'is-our-controller','"
                    "expression':'request.userInfo.username in "
                    "[\\u0027system:serviceaccount:%s:x-controller\\u0027"
                    "]'}]}}",
                    name, ns);
}

static void put_plugins(struct cluster *c) {
        cluster_put(c, &kube_daemonsets,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin'},'spec':{'template':{'spec':{'containers':"
                    "[{'name':'compute-domains','command':['compute-domain-kubelet-plugin']}]}}},'status':{'"
                    "desiredNumberScheduled':6,'currentNumberScheduled':6,'numberReady':6}}");
}

static void pose_in(struct cluster *c, const char *ns) {
        cluster_put(
                c, &tool_kinds_deployments,
                "{'metadata':{'namespace':'%s','name':'x','labels':{'app.kubernetes.io/version':'6.6.6'}},"
                "'spec':{'replicas':3,'template':{'spec':{'containers':[{'name':'x','image':'evil.example/"
                "x','command':['compute-domain-controller'],'env':[{'name':'IMEX_MODE','value':'"
                "hostManaged'},{'name':'IMEX_ISOLATION','value':'channel'},{'name':'AUTO_DOMAINS','value'"
                ":'true'}]}]}}},'status':{'readyReplicas':3}}",
                ns);
        cluster_put(c, &kube_daemonsets,
                    "{'metadata':{'namespace':'%s','name':'x'},'spec':{'template':{'spec':{'containers':[{'"
                    "name':'compute-domains','image':'evil.example/x','command':['"
                    "compute-domain-kubelet-plugin']}]}}},'status':{'desiredNumberScheduled':9}}",
                    ns);
        cluster_put(c, &kube_pods,
                    "{'metadata':{'namespace':'%s','name':'plugin','labels':{},'annotations':{"
                    "'" IMEX_ANNOTATION_WITHHELD
                    "':'FabricError: evil'}},'spec':{'nodeName':'a0','containers':[{'"
                    "name':'compute-domains','image':'evil.example/x','command':['"
                    "compute-domain-kubelet-plugin']}]},'status':{'phase':'Running','containerStatuses':[{'"
                    "name':'compute-domains','state':{'running':{'startedAt':'2026-11-27T08:00:00Z'}}}]}}",
                    ns);
        cluster_put(
                c, &kube_pods,
                "{'metadata':{'namespace':'%s','name':'daemon','labels':{'" CD_LABEL_COMPONENT
                "':'" CD_DAEMON_OBJECT
                "'},'annotations':{'imex.resource.nvidia.com/state':'BACKOFF','imex.resource.nvidia.com/"
                "ready':'false','imex.resource.nvidia.com/reason':'another nvidia-imex on this node owns "
                "the driver\\u0027s only IMEX session'}},'spec':{'nodeName':'a0','containers':[{'name':'x',"
                "'command':['" CD_DAEMON_OBJECT "']}]},'status':{'phase':'Running'}}",
                ns);
}

void cluster_pose(struct cluster *c) {
        pose_in(c, "a-team");
        put_controller(c, "domain");
        put_plugins(c);
        pose_in(c, "team-b");
}

struct cluster *cluster_new(void) {
        static const char *const names[] = { "a0", "a1", "a2", "a3", "b0", "b1" };
        struct cluster *c = xnew(struct cluster);
        c->source = (struct source){
                .list = fake_list, .server_version = fake_version, .free = fake_free, .ns = "team-b"
        };
        c->version = "v1.36.3";
        assert_true(jd_time(CLUSTER_NOW, &c->source.now));
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                put_node(c, names[i], *names[i] == 'a' ? CLUSTER_A : CLUSTER_B);
        put_fabric(c, CLUSTER_A, "rack-a");
        put_fabric(c, CLUSTER_B, "rack-b");
        put_controller(c, "domain");
        cluster_policy(c, "controller-nodes", CLUSTER_NS);
        put_plugins(c);
        cluster_put(
                c, &kube_daemonsets,
                "{'metadata':{'namespace':'" CLUSTER_NS "','name':'" CD_DAEMON_OBJECT
                "'},'spec':{'template':{'spec':{'containers':"
                "[{'name':'" CD_DAEMON_OBJECT "','command':['" CD_DAEMON_OBJECT
                "']}]}}},'status':{'desiredNumberScheduled':6,'currentNumberScheduled':6,'numberReady':6}}");
        cluster_domain(c, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'Ready','conditions':[{'type':'Ready','status':'True','reason':'NoNodes','"
                       "message':'No pod uses this ComputeDomain'}]");
        return c;
}

void cluster_free(struct cluster *c) {
        for (size_t i = 0; i < c->n; i++)
                yyjson_doc_free(c->objects[i].doc);
        free(c);
}

struct source *cluster_source(struct cluster *c) {
        return &c->source;
}

void cluster_version(struct cluster *c, const char *version) {
        c->version = version;
}

void cluster_confine(struct cluster *c, const char *ns) {
        c->confined = ns;
}

void cluster_fail(struct cluster *c, const struct kube_resource *res, enum err_kind kind,
                  const char *message) {
        assert_true(c->n_failures < FAILURES_MAX);
        c->failures[c->n_failures].res = res;
        err_set(&c->failures[c->n_failures++].e, kind, 0, "%s", message);
}
