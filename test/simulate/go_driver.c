/* SPDX-License-Identifier: Apache-2.0 */
#include "go_driver.h"

#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "imex.h"
#include "world_state.h"

/* RACE_MS: the controller reads the claims of the ComputeDomain on the node, and then removes the label. It
 * may not have seen a pod that runs for less than this. */
enum { BODY_MAX = 8192, RACE_MS = 15000 };
#define GO_SET "computedomain-daemon-%s"
#define FINALIZERS "'finalizers':['" CD_FINALIZER "']"

/* The daemon of a node, as its kubelet knows it. */
struct go_run {
        bool used, up, ready, ending;
        char pod[128], uid[48], domain[48], clique[16], ip[16];
        struct held held;
        int64_t starts_ms, ready_ms, ends_ms;
        int64_t unlabelled_ms; /* when its Node lost the label; 0: it has the label */
};
static struct go_run runs[MAX_NODES];
static bool used;

void go_driver_use(void) {
        used = true;
}

bool go_driver_used(void) {
        return used;
}

/* ---- its objects ---- */

void go_driver_form(const char *uid, const char *name, const char *template) {
        world_create(K_TEMPLATE, DRIVER_NS,
                     "{'metadata':{'name':'" GO_SET "','labels':{'" CD_LABEL "':'%s','" CD_LABEL_TARGET
                     "':'" CD_TARGET_DAEMON "'}," FINALIZERS "}}",
                     uid, uid);
        world_create(K_SET, DRIVER_NS,
                     "{'metadata':{'name':'" GO_SET "','labels':{'" CD_LABEL "':'%s'}," FINALIZERS
                     "},'spec':{"
                     "'template':{'spec':{'nodeSelector':{'" CD_LABEL "':'%s'}}}}}",
                     uid, uid, uid);
        world_create(
                K_TEMPLATE, USER_NS,
                "{'metadata':{'name':'%s','labels':{'" CD_LABEL "':'%s','" CD_LABEL_TARGET
                "':'" CD_TARGET_WORKLOAD "'}," FINALIZERS
                "},'spec':{'spec':{'devices':{'requests':[{'name':'channel','exactly':{"
                "'deviceClassName':'compute-domain-default-channel.nvidia.com'}}],'config':[{'requests':["
                "'channel'],'opaque':{'driver':'" CD_DRIVER "','parameters':{'apiVersion':'" CD_API_VERSION
                "','kind':'ComputeDomainChannelConfig','domainID':'%s','allocationMode':'Single'}}}]}}}}",
                template, uid, uid);
        sim_log("the Go driver has formed %s", name);
}

bool go_driver_label(const struct node *n, const char *uid) {
        const struct version *v = store_get(K_NODE, "", n->name);
        if (!v || v->domain)
                return false;
        world_patch(K_NODE, v, false, "{'metadata':{'labels':{'" CD_LABEL "':'%s'}}}", uid);
        return true;
}

static const struct version *set_of(const char *uid) {
        char name[128];
        snprintf(name, sizeof name, GO_SET, uid);
        return store_get(K_SET, DRIVER_NS, name);
}

bool go_driver_has(const char *uid) {
        char name[128];
        snprintf(name, sizeof name, GO_SET, uid);
        return used && (store_get(K_SET, DRIVER_NS, name) || store_get(K_TEMPLATE, DRIVER_NS, name));
}

/* failure: any faults meet after a migration -> no node with a running pod loses its daemon of the Go driver
 * [simulation] */
static void look_at_label(const char *node, const char *uid) {
        for (size_t i = 0; i < store_count(K_DOMAIN); i++)
                if (streq(store_nth(K_DOMAIN, i)->uid, uid) && !version_deleted(store_nth(K_DOMAIN, i)) &&
                    world_runs_ms(node, uid) > RACE_MS)
                        sim_broken("%s loses the Go driver's daemon of %s while a pod uses it", node, uid);
}

void go_driver_look(const struct change *c) {
        const char *uid = used && c->was && !c->gone ? c->was->domain : NULL;
        const struct node *n = used && !c->gone ? node_named(c->now->name) : NULL;
        struct go_run *r = n ? &runs[number_of(n)] : NULL;
        if (r && r->used && streq(c->now->domain, r->domain))
                r->unlabelled_ms = 0;
        else if (r && r->used && !r->unlabelled_ms)
                r->unlabelled_ms = sim_now_ms();
        if (uid && !streq(c->now->domain, uid) && go_driver_has(uid))
                look_at_label(c->now->name, uid);
}

/* failure: any faults meet after a migration -> no pod gets a channel from a daemon of the Go driver that
 * ends [simulation] */
void go_driver_prepared(unsigned node, const char *uid, int64_t began_ms) {
        const struct go_run *r = &runs[node];
        if (used && r->used && r->unlabelled_ms && began_ms > r->unlabelled_ms && streq(uid, r->domain))
                sim_broken("a pod on node-%u uses the Go driver's daemon of %s, which ends", node, uid);
}

bool go_driver_owns(const struct version *v) {
        return used && v->domain && !v->target && streq(v->ns, DRIVER_NS);
}

bool go_driver_runs(const char *uid) {
        for (size_t i = 0; i < store_count(K_POD); i++)
                if (go_driver_owns(store_nth(K_POD, i)) && streq(store_nth(K_POD, i)->domain, uid))
                        return true;
        return false;
}

/* ---- the DaemonSet controller and the claim controllers ---- */

static const struct version *pod_on(const char *node, const char *uid) {
        for (size_t i = 0; i < store_count(K_POD); i++) {
                const struct version *p = store_nth(K_POD, i);
                if (go_driver_owns(p) && streq(p->node, node) && streq(p->domain, uid))
                        return p;
        }
        return NULL;
}

static bool selects(const struct version *pod) {
        const struct version *n = store_get(K_NODE, "", pod->node), *s = set_of(pod->domain);
        return s && !version_deleted(s) && n && streq(n->domain, pod->domain);
}

static void step_set(const struct version *s) {
        for (unsigned i = 0; i < w.n_nodes && !version_deleted(s); i++) {
                const struct version *n = store_get(K_NODE, "", w.nodes[i].name);
                if (n && streq(n->domain, s->domain) && !pod_on(n->name, s->domain) && soon())
                        world_create(K_POD, DRIVER_NS,
                                     "{'metadata':{'name':'go-%s-%u','labels':{'" CD_LABEL
                                     "':'%s'}},'spec':{'nodeName':'%s'},'status':{'phase':'Pending'}}",
                                     n->name, ++w.serial, s->domain, n->name);
        }
}

static void end_pods(void) {
        for (size_t i = 0; i < store_count(K_POD); i++) {
                const struct version *p = store_nth(K_POD, i);
                const struct node *n = go_driver_owns(p) ? node_named(p->node) : NULL;
                bool lost = n && !n->exists && sim_now_ms() - n->gone_ms > POD_GC_MS;
                if (!n || !soon() || (!lost && (version_deleted(p) || selects(p))))
                        continue;
                world_delete(K_POD, p, lost);
                return;
        }
}

static void step_claim(const struct version *p) {
        const struct version *c = store_get(K_CLAIM, DRIVER_NS, p->name);
        char name[128];
        if (version_deleted(p) || !soon())
                return;
        snprintf(name, sizeof name, "%s", p->name);
        if (!c)
                world_create(K_CLAIM, DRIVER_NS, "{'metadata':{'name':'%s'}}", name);
        else if (!c->pool && store_get(K_NODE, "", p->node) && !is_taken(p->node, CD_DEVICE_DAEMON))
                allocate(name, DRIVER_NS, p->node, CD_DEVICE_DAEMON, "ComputeDomainDaemonConfig", p->domain,
                         false, p->uid);
}

void go_driver_step_cluster(void) {
        if (!used)
                return;
        for (size_t i = 0; i < store_count(K_SET); i++)
                if (go_driver_owns(store_nth(K_SET, i)))
                        step_set(store_nth(K_SET, i));
        end_pods();
        for (size_t i = 0; i < store_count(K_POD); i++)
                if (go_driver_owns(store_nth(K_POD, i)))
                        step_claim(store_nth(K_POD, i));
}

/* ---- the daemon ---- */

/* Writes the entries of all daemons that run in this clique. */
static void report(const struct go_run *about) {
        _cleanup_(buf_done) struct buf list = BUF_INIT(BODY_MAX);
        char name[128], domain[48];
        unsigned n = 0;
        snprintf(domain, sizeof domain, "%s", about->domain);
        snprintf(name, sizeof name, "%s.%s", domain, about->clique);
        for (unsigned i = 0; i < w.n_nodes; i++) {
                const struct go_run *r = &runs[i];
                if (!r->used || !*r->ip || !streq(r->domain, domain) || !streq(r->clique, about->clique))
                        continue;
                buf_addf(&list,
                         "%s{'nodeName':'%s','ipAddress':'%s','cliqueID':'%s','index':%u,'status':'%s'}",
                         n++ ? "," : "", w.nodes[i].name, r->ip, r->clique, i % NODES_OF_CLIQUE,
                         r->ready && !r->ending ? "Ready" : "NotReady");
        }
        const struct version *v = store_get(K_CLIQUE, DRIVER_NS, name);
        if (v)
                world_patch(K_CLIQUE, v, false, "{'daemons':[%s]}", buf_str(&list));
        else
                world_create(K_CLIQUE, DRIVER_NS,
                             "{'apiVersion':'" CD_API_VERSION "','metadata':{'name':'%s','labels':{'" CD_LABEL
                             "':'%s','" CD_LABEL_CLIQUE "':'%s'}},'daemons':[%s]}",
                             name, domain, about->clique, buf_str(&list));
}

static void start(struct node *n, struct go_run *r) {
        struct err e;
        char path[256];
        _cleanup_(freep) char *text = NULL;
        r->up = true;
        snprintf(r->ip, sizeof r->ip, "10.1.%u.%u", number_of(n), ++n->addresses % 250 + 1);
        snprintf(path, sizeof path, "node-%u/plugin/domains/%s/imexd.cfg", number_of(n), r->domain);
        text = xasprintf("IMEX_CMD_BIND_INTERFACE_IP=%s\n", r->ip);
        BUG_ON(file_replace_volatile(path, text, strlen(text), 0644, &e) < 0);
        imex_go_starts(number_of(n), r->domain, number_of(n) % NODES_OF_CLIQUE);
        r->ready_ms = sim_now_ms() + sim_between(200, 5000);
        report(r);
}

static void end(struct node *n, struct go_run *r, const char *fault) {
        if (r->up)
                imex_go_ends(number_of(n), r->domain, fault);
        r->up = r->ready = false;
        *r->ip = '\0';
}

static void take(struct node *n, const struct version *p) {
        struct go_run *r = &runs[number_of(n)];
        const struct version *c = store_get(K_CLAIM, DRIVER_NS, p->name);
        if (r->used || version_deleted(p) || !c || !c->pool)
                return;
        *r = (struct go_run){ .used = true };
        snprintf(r->pod, sizeof r->pod, "%s", p->name);
        snprintf(r->uid, sizeof r->uid, "%s", p->uid);
        snprintf(r->domain, sizeof r->domain, "%s", p->domain);
        snprintf(r->clique, sizeof r->clique, "%s", n->clique);
        held_init(&r->held, number_of(n), false, DRIVER_NS, c->name, c->uid, p->domain, false);
}

static void step_run(struct node *n, struct go_run *r) {
        const struct version *p = store_get(K_POD, DRIVER_NS, r->pod);
        bool there = p && streq(p->uid, r->uid);
        int64_t now = sim_now_ms();
        if (n->connected && !r->ending && (!there || version_deleted(p))) {
                r->ending = true;
                r->ends_ms = now + sim_between(10, 1000);
                if (*r->ip)
                        report(r);
        }
        if (r->ending) {
                if (now < r->ends_ms)
                        return;
                end(n, r, "the Go driver's daemon ends");
                if (!held_unprepare(&r->held) || !n->connected)
                        return;
                held_forget(&r->held);
                r->used = false;
                if (there)
                        world_delete(K_POD, p, true);
                return;
        }
        if (!r->up && held_prepare(&r->held) && !r->starts_ms)
                r->starts_ms = now + sim_between(200, 4000);
        if (!r->up && r->starts_ms && now >= r->starts_ms && n->connected)
                start(n, r);
        if (r->up && !r->ready && now >= r->ready_ms && n->connected) {
                r->ready = true;
                report(r);
        }
}

/* A Pod whose container has never started ends at once. */
static void forget_unknown(const struct node *n, const struct version *p) {
        const struct go_run *r = &runs[number_of(n)];
        if (version_deleted(p) && !(r->used && streq(r->uid, p->uid)))
                world_delete(K_POD, p, true);
}

void go_driver_step(struct node *n) {
        struct go_run *r = &runs[number_of(n)];
        const struct version *p = NULL;
        if (!used || !n->power)
                return;
        for (size_t i = 0; n->connected && n->exists && i < store_count(K_POD); i++) {
                p = store_nth(K_POD, i);
                if (go_driver_owns(p) && streq(p->node, n->name)) {
                        take(n, p);
                        forget_unknown(n, p);
                        break;
                }
        }
        if (r->used)
                step_run(n, r);
}

void go_driver_lose_power(struct node *n) {
        struct go_run *r = &runs[number_of(n)];
        if (!r->used)
                return;
        end(n, r, "power");
        held_forget(&r->held);
        *r = (struct go_run){ 0 };
}
