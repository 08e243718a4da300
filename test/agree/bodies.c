/* SPDX-License-Identifier: Apache-2.0 */
#include "bodies.h"

#include <inttypes.h>
#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "draw.h"
#include "model/daemon_report.h"
#include "model/fabric.h"

#define ONE_OF(list) ((list)[draw_below(ARRAY_LEN(list))])
#define TIME "2026-01-01T00:00:00Z"
#define SOME_UID "aaaaaaaa-0000-4000-8000-000000000001"
#define MICRO_TIME "2026-01-01T00:00:00.000000Z"

static int number(unsigned n) {
        return (int)draw_below(n);
}

/* ---- metadata ---- */

static const char *const keys[] = BODY_LABELS, *const values[] = BODY_VALUES;

static void labels(bool patch, struct buf *out) {
        buf_adds(out, "'labels':{");
        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
                if (draw_chance(50))
                        continue;
                if (patch && draw_chance(30))
                        buf_addf(out, "'%s':null,", keys[i]);
                else
                        buf_addf(out, "'%s':'%s',", keys[i], draw_chance(2) ? "not a value" : ONE_OF(values));
        }
        buf_adds(out, "},");
}

static void annotations(bool patch, struct buf *out) {
        buf_adds(out, "'annotations':{");
        for (int i = 0; i < 2; i++) {
                if (patch && draw_chance(30))
                        buf_addf(out, "'example.com/%d':null,", i);
                else if (draw_chance(60))
                        buf_addf(out, "'example.com/%d':'%d',", i, number(3));
        }
        buf_adds(out, "},");
}

/* A report as a daemon renders it, in a JSON string. */
static void daemon_report(struct buf *out) {
        static const int64_t left[] = { 3, 7 };
        const struct daemon_report r = { .claim = SOME_UID,
                                         .boot_id = SOME_UID,
                                         .fabric = draw_chance(80) ? SOME_UID : "",
                                         .has_assignment = draw_chance(50),
                                         .assignment = { "c.1", SOME_UID, number(4), 1 + number(9) },
                                         .ready = draw_chance(50),
                                         .left = left,
                                         .n_left = (size_t)number(3),
                                         .seen = number(9),
                                         .recount = number(2),
                                         .waits_for = "",
                                         .imex_version = "" };
        struct buf text = BUF_INIT(4096);
        daemon_report_render(&r, &text);
        for (const char *p = buf_str(&text); *p; p++)
                buf_adds(out, *p == '"' ? "\\'" : (char[]){ *p, '\0' });
        buf_done(&text);
}

/* The reports of daemons and kubelet plugins on their own Pods. */
static void reports(bool patch, struct buf *out) {
        buf_adds(out, "'annotations':{");
        if (patch && draw_chance(20)) {
                buf_adds(out, "'" IMEX_ANNOTATION_REPORT "':null,");
        } else if (draw_chance(70)) {
                buf_adds(out, "'" IMEX_ANNOTATION_REPORT "':'");
                daemon_report(out);
                buf_adds(out, "',");
        }
        if (draw_chance(40))
                buf_addf(out, "'" IMEX_ANNOTATION_UNPREPARED "':'c%d',", number(3));
        buf_adds(out, "},");
}

static void finalizers(bool patch, struct buf *out) {
        static const char *const names[] = { CD_FINALIZER, "example.com/hold" };
        if (patch && draw_chance(20)) {
                buf_adds(out, "'finalizers':null,");
                return;
        }
        buf_adds(out, "'finalizers':[");
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (draw_chance(patch ? 25 : 40))
                        buf_addf(out, "'%s',", names[i]);
        buf_adds(out, "],");
}

static void metadata(enum kind k, bool patch, struct buf *out) {
        if (draw_chance(60))
                labels(patch, out);
        if (k == K_POD && draw_chance(50))
                reports(patch, out);
        else if (draw_chance(50))
                annotations(patch, out);
        if (draw_chance(patch ? 40 : 20) && k != K_EVENT && k != K_NAMESPACE)
                finalizers(patch, out);
        if (draw_chance(2) && k != K_SET && k != K_TEMPLATE)
                buf_adds(out, "'nobody':'knows',"); /* an apply with it is answered with 500 */
}

/* ---- the rest of an object ---- */

static void pod(struct buf *out) {
        buf_addf(out, "'spec':{'containers':[{'name':'c','image':'i%d'}],", number(2));
        if (draw_chance(60))
                buf_addf(out, "'nodeName':'n%d',", number(3));
        if (draw_chance(30))
                buf_addf(out, "'terminationGracePeriodSeconds':%d,", 5 * number(3));
        buf_adds(out, "}");
}

static void pod_template(struct buf *out) {
        buf_addf(out,
                 "'template':{'metadata':{'labels':{'app':'imex-daemon',},'annotations':{'example.com/"
                 "hash':'%d',}},'spec':{",
                 number(3));
        buf_adds(out, "'containers':[{'name':'c','image':'i','command':['run','-v'],'env':[");
        for (int i = 0; i < 3; i++)
                if (draw_chance(60))
                        buf_addf(out, "{'name':'E%d','value':'%d'},", i, number(2));
        if (draw_chance(50))
                buf_adds(out, "{'name':'NODE_NAME','valueFrom':{'fieldRef':{'fieldPath':'spec.nodeName'}}},");
        buf_adds(out, "],'volumeMounts':[{'name':'v0','mountPath':'/var/run/nvidia-imex'},");
        buf_adds(out, "],'securityContext':{'runAsUser':0,'readOnlyRootFilesystem':true,'capabilities':{'"
                      "drop':['ALL']}}}],");
        buf_adds(out, "'volumes':[{'name':'v0','emptyDir':{'medium':'Memory','sizeLimit':'16Mi'}},");
        if (draw_chance(50))
                buf_adds(out, "{'name':'v1','emptyDir':{'medium':'Memory'}},");
        buf_addf(out, "],'nodeSelector':{'%s':'true'},", keys[draw_below(2)]);
        buf_adds(out, "'tolerations':[{'effect':'NoSchedule','operator':'Exists'},");
        if (draw_chance(50))
                buf_adds(out, "{'effect':'NoExecute','operator':'Exists'},");
        buf_adds(out, "],");
        if (draw_chance(50))
                buf_adds(out, "'dnsConfig':{'options':[{'name':'ndots','value':'1'}]},");
        if (draw_chance(30))
                buf_adds(out, "'terminationGracePeriodSeconds':10,");
        buf_adds(out, "}}");
}

static void daemonset(const struct version *was, struct buf *out) {
        buf_adds(out, "'spec':{'selector':{'matchLabels':{'app':'imex-daemon',");
        if (was && draw_chance(3))
                buf_adds(out, "'other':'x',");
        buf_adds(out, "}},'updateStrategy':{'type':'OnDelete'},");
        pod_template(out);
        buf_adds(out, "}");
}

static void devices(struct buf *out) {
        buf_addf(out,
                 "{'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':'class-%d.example.com',}}]"
                 ",",
                 number(10) == 0);
        if (draw_chance(30))
                buf_adds(out, "'config':[{'requests':['r'],'opaque':{'driver':'" BODY_DRIVER
                              "','parameters':{'apiVersion':'" CD_API_VERSION "','kind':'K'}}}],");
        buf_adds(out, "}}");
}

static void template(struct buf *out) {
        buf_adds(out, "'spec':{");
        if (draw_chance(50))
                buf_addf(out, "'metadata':{'annotations':{'example.com/of':'%d'}},", number(2));
        buf_adds(out, "'spec':");
        devices(out);
        buf_adds(out, "}");
}

/* A ResourceSlice of a kubelet plugin. Its Node may not exist: the server does not look the owner up. */
static void slice(const struct version *was, struct buf *out) {
        const char *node = was && draw_chance(95) ? str_or(was->node, "n0") : NULL;
        char other[8];
        if (!node) {
                snprintf(other, sizeof other, "n%d", number(3));
                node = other;
        }
        const char *driver = was               ? version_str(was, "/spec/driver")
                             : draw_chance(80) ? BODY_DRIVER
                                               : GPU_DRIVER;
        buf_addf(out,
                 "'spec':{'driver':'%s','nodeName':'%s','pool':{'name':'%s','generation':%d,'"
                 "resourceSliceCount':1},'devices':[",
                 driver, node, node, 1 + number(3));
        for (int i = 0, n = number(3); i < n; i++)
                buf_addf(out,
                         "{'name':'channel-%d','attributes':{'id':{'int':%d},'type':{'string':'channel'},'v':"
                         "{'version':'1.2.3'}}},",
                         i, i);
        buf_adds(out, "]}");
}

static void lease(struct buf *out) {
        static const char *const holders[] = { "one", "two" };
        buf_addf(out,
                 "'spec':{'holderIdentity':'%s','leaseDurationSeconds':%d,'acquireTime':'" MICRO_TIME
                 "','renewTime':'" MICRO_TIME "','leaseTransitions':%d}",
                 ONE_OF(holders), 1 + number(15), number(3));
}

static void event(const char *ns, struct buf *out) {
        buf_addf(out,
                 "'involvedObject':{'apiVersion':'" CD_API_VERSION "','kind':'" CD_KIND
                 "','namespace':'%s','name':'d','uid':'e'},'type':'Normal','reason':'R','message':'m',"
                 "'source':{'component':'c','host':'h'},'reportingComponent':'c','reportingInstance':'h',"
                 "'firstTimestamp':'" TIME "','lastTimestamp':'" TIME "','count':%d",
                 ns, 1 + number(3));
}

static void domain(const struct version *was, struct buf *out) {
        static const char *const names[] = { "t0", "t1", "Not-A-Name", "" };
        const char *is = was ? version_str(was, "/spec/channel/resourceClaimTemplate/name") : NULL;
        buf_adds(out, "'spec':{");
        if (draw_chance(60))
                buf_addf(out, "'numNodes':%d,", number(20) == 0 ? -1 : number(4));
        buf_addf(out, "'channel':{'resourceClaimTemplate':{'name':'%s'},",
                 is && draw_chance(85) ? is : names[draw_below(draw_chance(90) ? 2 : 4)]);
        if (draw_chance(10))
                buf_addf(out, "'allocationMode':'%s',", draw_chance(80) ? "All" : "None");
        if (draw_chance(10))
                buf_adds(out, "'unknown':{'a':1},");
        buf_adds(out, "}}");
        if (draw_chance(10))
                buf_adds(out, ",'status':{'status':'Ready'}");
        if (draw_chance(5))
                buf_adds(out, ",'unknown':[1]");
}

static void daemons(struct buf *out) {
        buf_adds(out, "'daemons':[");
        for (int i = 0, n = number(4); i < n; i++) {
                buf_addf(out, "{'nodeName':'n%d','ipAddress':'10.0.0.%d','cliqueID':'c.1','index':%d,",
                         number(20) == 0 ? 0 : i, number(3), i);
                if (draw_chance(70))
                        buf_addf(out, "'status':'%s',",
                                 draw_chance(3)    ? "Odd"
                                 : draw_chance(50) ? "Ready"
                                                   : "NotReady");
                if (draw_chance(20))
                        buf_adds(out, "'bootID':'b',");
                if (draw_chance(5))
                        buf_adds(out, "'unknown':1,");
                buf_adds(out, "},");
        }
        buf_adds(out, "]");
}

static void conditions(struct buf *out) {
        static const char *const types[] = { "Ready", "PeersConnected" };
        buf_adds(out, "'conditions':[");
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                if (draw_chance(60))
                        buf_addf(out,
                                 "{'type':'%s','status':'%s','reason':'%s','message':'m','lastTransitionTime'"
                                 ":'%s'},",
                                 types[draw_chance(3) ? 0 : i], draw_chance(50) ? "True" : "False",
                                 draw_chance(3) ? "" : "R", draw_chance(3) ? "yesterday" : TIME);
        buf_adds(out, "]");
}

/* An assignment is active, has one of the states, or an invalid one. */
static void assignment(struct buf *out) {
        static const char *const states[] = { "Reserved", "Leaving", "Ending" };
        buf_addf(out, "{'node':'n%d','index':%d,'epoch':%d,", number(3), number(20) == 0 ? -1 : number(4),
                 number(9));
        if (draw_chance(50))
                buf_addf(out, "'state':'%s',", draw_chance(3) ? "Odd" : ONE_OF(states));
        if (draw_chance(70))
                buf_addf(out, "'claimUID':'c%d','bootID':'b','ip':'10.0.0.1',", number(2));
        if (draw_chance(5))
                buf_adds(out, "'unknown':1,");
        buf_adds(out, "},");
}

static void imex_domain(int i, struct buf *out) {
        buf_addf(out, "{'owner':{'uid':'u%d','name':'d'},'infix':'i%d','slots':18,'port':%d,'assignments':[",
                 i, i, number(20) == 0 ? -1 : 28000);
        for (int k = 0, n = number(3); k < n; k++)
                assignment(out);
        buf_adds(out, "],");
        if (draw_chance(40))
                buf_addf(out, "'freed':'%d',", number(4));
        buf_adds(out, "},");
}

static void fabric(struct buf *out) {
        buf_addf(out, "'nodes':%d,'members':['n0','n1'],'domainCount':%d,'next':%d,", number(3), number(3),
                 number(30) == 0 ? -1 : number(9));
        if (draw_chance(50))
                buf_addf(out, "'rack':'r%d',", number(2));
        if (draw_chance(60)) {
                buf_adds(out, "'domains':[");
                for (int i = 0, n = number(3); i < n; i++)
                        imex_domain(i, out);
                buf_addf(out, "],'epoch':%d,", number(9));
        }
        if (draw_chance(20))
                buf_addf(out, "'tableOf':'t%d','recount':%d,", number(2), number(9));
        if (draw_chance(20))
                buf_adds(out, draw_chance(5) ? "'removals':[{'node':'n0'}],"
                                             : "'removals':[{'node':'n0','podUID':'p'}],");
        if (draw_chance(40))
                buf_addf(out, "'channels':[{'id':%d,'owner':{'uid':'u'},'releasing':'" TIME "'}],",
                         number(20) == 0 ? 1 << 20 : number(9));
        conditions(out);
}

static void content(enum kind k, const char *ns, const struct version *was, struct buf *out) {
        switch (k) {
        case K_NODE:
                buf_adds(out, draw_chance(20) ? "'spec':{'unschedulable':true}" : "'spec':{}");
                break;
        case K_POD:
                pod(out);
                break;
        case K_EVENT:
                event(ns, out);
                break;
        case K_LEASE:
                lease(out);
                break;
        case K_SET:
                daemonset(was, out);
                break;
        case K_CLAIM:
                buf_adds(out, "'spec':");
                devices(out);
                break;
        case K_TEMPLATE:
                template(out);
                break;
        case K_SLICE:
                slice(was, out);
                break;
        case K_DOMAIN:
                domain(was, out);
                break;
        case K_CLIQUE:
                daemons(out);
                break;
        case K_FABRIC:
                fabric(out);
                break;
        case K_NAMESPACE:
        case K_POD_GROUP:
        case K_COUNT:
                buf_adds(out, "'spec':{}");
                break;
        }
}

void bodies_object(enum kind k, const char *ns, const char *name, bool generate, const struct version *was,
                   const char *meta, struct buf *out) {
        buf_addf(out, "{'apiVersion':'%s','kind':'%s','metadata':{%s",
                 draw_chance(1) ? "v0" : kind_api_version(k),
                 draw_chance(1) && !kinds[k].custom ? "Other" : kinds[k].kind, meta);
        if (generate)
                buf_addf(out, "'generateName':'%s-',", name);
        else if (!draw_chance(1))
                buf_addf(out, "'name':'%s',", name);
        if (kinds[k].namespaced && draw_chance(70))
                buf_addf(out, "'namespace':'%s',", draw_chance(2) ? "b" : ns);
        if (k == K_SLICE)
                buf_adds(out, "'ownerReferences':[{'apiVersion':'v1','kind':'Node','name':'n0','uid':'u','"
                              "controller':true}],");
        metadata(k, false, out);
        buf_adds(out, "},");
        content(k, ns, was, out);
        buf_adds(out, "}");
}

/* ---- patches ---- */

static void patched(enum kind k, struct buf *out) {
        if (k == K_EVENT) {
                buf_addf(out, ",'count':%d,'lastTimestamp':'" TIME "'", 1 + number(5));
        } else if (k == K_NODE && draw_chance(30)) {
                buf_addf(out, ",'spec':{'unschedulable':%s}", draw_chance(50) ? "true" : "null");
        } else if (k == K_DOMAIN && draw_chance(40)) {
                static const char *const specs[] = { "'numNodes':1",
                                                     "'numNodes':2",
                                                     "'numNodes':null",
                                                     "'numNodes':-1",
                                                     "'channel':{'allocationMode':'All'}",
                                                     "'channel':null",
                                                     "'channel':{'resourceClaimTemplate':{'name':'t1'}}",
                                                     "'unknown':1" };
                buf_addf(out, ",'spec':{%s}", ONE_OF(specs));
        } else if (k == K_DOMAIN && draw_chance(10)) {
                buf_adds(out, ",'status':{'status':'Ready'}");
        } else if (k == K_CLIQUE && draw_chance(70)) {
                buf_adds(out, ",");
                daemons(out);
        } else if (k == K_FABRIC && draw_chance(70)) {
                buf_adds(out, ",");
                fabric(out);
        } else if (k == K_TEMPLATE && draw_chance(5)) {
                buf_adds(out, ",");
                template(out);
        }
}

void bodies_patch(enum kind k, const struct version *was, const char *meta, struct buf *out) {
        buf_addf(out, "{'metadata':{%s", meta);
        if (!draw_chance(5))
                metadata(k, true, out);
        buf_adds(out, "}");
        patched(k, out);
        buf_adds(out, "}");
}

static void domain_status(struct buf *out) {
        buf_adds(out, "'status':{");
        if (draw_chance(85))
                buf_addf(out, "'status':'%s',",
                         draw_chance(3)    ? "Odd"
                         : draw_chance(50) ? "Ready"
                                           : "NotReady");
        if (draw_chance(50))
                buf_addf(out, "'nodesReady':%d,'nodesWanted':2,'cliques':%s,", number(3),
                         draw_chance(3) ? "'x'" : "1");
        if (draw_chance(20)) {
                buf_adds(out, "'nodes':null,");
        } else if (draw_chance(60)) {
                buf_adds(out, "'nodes':[");
                for (int i = 0, n = number(3); i < n; i++) {
                        buf_addf(out, "{'name':'n%d','ipAddress':'10.0.0.%d','cliqueID':'','index':%d,", i, i,
                                 i - 1);
                        buf_adds(out, draw_chance(50) ? "'status':'Ready'}," : "},");
                }
                buf_adds(out, "],");
        }
        if (draw_chance(5))
                buf_adds(out, "'unknown':1,");
        conditions(out);
        buf_adds(out, "}");
}

/* An allocation as the scheduler writes it. It is written once, because it is immutable. */
static void claim_status(const struct version *was, struct buf *out) {
        if (was && (version_deleted(was) || version_str(was, "/status/allocation/devices/results/0/pool"))) {
                buf_adds(out, draw_chance(50) ? "'status':{'allocation':null,'reservedFor':null}"
                                              : "'status':{'reservedFor':null}");
                return;
        }
        buf_addf(out,
                 "'status':{'allocation':{'devices':{'results':[{'request':'r','driver':'" BODY_DRIVER
                 "','pool':'n%d','device':'channel-0'}]}},'reservedFor':[{'resource':'pods','name':'p','uid':"
                 "'u'}]}",
                 number(3));
}

void bodies_status(enum kind k, const struct version *was, const char *meta, struct buf *out) {
        static const char *const phases[] = { "Pending", "Running", "Running", "Succeeded", "Failed" };
        buf_addf(out, "{'metadata':{%s},", meta);
        if (k == K_DOMAIN)
                domain_status(out);
        else if (k == K_CLAIM)
                claim_status(was, out);
        else if (k == K_POD)
                buf_addf(out, "'status':{'phase':'%s','conditions':[{'type':'Ready','status':'%s'}]}",
                         ONE_OF(phases), draw_chance(50) ? "True" : "False");
        else
                buf_addf(out,
                         "'status':{'nodeInfo':{'bootID':'b%d'},'conditions':[{'type':'Ready','status':'%s'}]"
                         "}",
                         number(2), draw_chance(50) ? "True" : "Unknown");
        buf_adds(out, "}");
}
