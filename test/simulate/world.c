/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/err.h"
#include "base/mem.h"
#include "channels.h"
#include "claim_info.h"
#include "clocks.h"
#include "crashing.h"
#include "daemon.h"
#include "faults.h"
#include "go_driver.h"
#include "hostile.h"
#include "imex.h"
#include "looks.h"
#include "lying.h"
#include "plugin.h"
#include "racks.h"
#include "replica.h"
#include "server.h"
#include "sharers.h"
#include "sim.h"
#include "workloads.h"
#include "world_state.h"

struct world_state w;

/* ---- nodes ---- */

/* A kubelet registers its Node when it starts, and then kills containers without a Pod. */
static void kill_orphans(struct node *n) {
        for (unsigned k = 0; k < MAX_RUNS; k++) {
                struct run *r = &n->runs[k];
                const struct version *p = r->used ? store_get(K_POD, DRIVER_NS, r->pod) : NULL;
                if (!r->used || (p && streq(p->uid, r->uid)))
                        continue;
                r->ending = r->lost = r->forced = true;
                r->ends_ms = sim_now_ms();
        }
}

static void make_node(struct node *n) {
        kill_orphans(n);
        if (world_is_given_up(number_of(n)))
                held_given_up(number_of(n));
        n->exists = n->ready = true;
        n->tainted = false;
        n->exists_ms = n->gone_ms = 0;
        n->heard_ms = sim_now_ms();
        world_create(K_NODE, "",
                     "{'apiVersion':'v1','metadata':{'name':'%s','labels':{'nvidia.com/"
                     "gpu.present':'true'}},'status':{'nodeInfo':"
                     "{'bootID':'" BOOT_ID "'},'conditions':[{'type':'Ready','status':'"
                     "True'}]}}",
                     n->name, n->boots);
        n->shown_boots = n->boots;
}

/* The Lease of the node's kubelet. */
static int64_t clock_of(const struct node *n) {
        return clocks_ahead_s(REPLICAS + number_of(n));
}

/* The names of nodes are "node-<number>". */
struct node *node_named(const char *name) {
        return &w.nodes[strtoul(name + strlen("node-"), NULL, 10)];
}

static void start_plugin(const struct node *n) {
        char boot_id[48];
        snprintf(boot_id, sizeof boot_id, BOOT_ID, n->boots);
        int64_t before = sim_clock_set(clock_of(n));
        plugin_start(number_of(n), n->clique, boot_id);
        sim_clock_set(before);
}

/* The Node object; NULL: it does not exist. */
static const struct version *object_of_node(const struct node *n) {
        static const struct version *objects[MAX_NODES];
        static uint64_t at;
        if (at != store_changes(K_NODE)) {
                at = store_changes(K_NODE);
                for (unsigned i = 0; i < w.n_nodes; i++)
                        objects[i] = store_get(K_NODE, "", w.nodes[i].name);
        }
        return objects[number_of(n)];
}

static const struct version *slice_of(const struct node *n) {
        for (size_t i = 0; i < store_count(K_SLICE); i++)
                if (streq(store_nth(K_SLICE, i)->node, n->name))
                        return store_nth(K_SLICE, i);
        return NULL;
}

/* Its containers have ended for good. Kubernetes replaces the Pod, and deallocates its claim, before the Pod
 * is deleted. */
static bool is_over(const struct version *p) {
        return streq(p->phase, "Succeeded");
}

/* A daemon's Pod; `more`: members of the status, with a comma behind each. */
static void say_pod(const struct version *p, bool ready, const char *more) {
        world_patch(K_POD, p, true, "{'status':{%s'conditions':[{'type':'Ready','status':'%s'}]}}", more,
                    ready ? "True" : "False");
}

static struct run *run_of(struct node *n, const char *uid) {
        for (unsigned k = 0; k < MAX_RUNS; k++)
                if (n->runs[k].used && streq(n->runs[k].uid, uid))
                        return &n->runs[k];
        return NULL;
}

/* Sets the condition of the Node and of its Pods. */
static void say_ready(struct node *n, bool is) {
        const char *status = is ? "True" : "Unknown";
        n->ready = is;
        world_patch(K_NODE, store_get(K_NODE, "", n->name), true,
                    "{'status':{'nodeInfo':{'bootID':'" BOOT_ID "'},'conditions':[{'type':"
                    "'Ready','status':'%s'}]}}",
                    n->boots, status);
        n->shown_boots = n->boots;
        for (size_t i = 0; i < store_count(K_POD); i++) {
                const struct version *p = store_nth(K_POD, i);
                if (!streq(p->node, n->name) || !p->target || is_over(p))
                        continue;
                const struct run *r = run_of(n, p->uid);
                say_pod(p, is && r && r->up, "");
        }
}

/* The controller manager taints a Node that is not ready, shortly after it or the kubelet has set the
 * condition. */
static void taint(struct node *n) {
        n->tainted = !n->ready;
        world_patch(K_NODE, store_get(K_NODE, "", n->name), false, "{'spec':{'taints':%s}}",
                    n->tainted ? "[{'key':'node.kubernetes.io/unreachable','effect':'NoExecute'}]" : "null");
}

/* A kubelet that starts deletes the ResourceSlices of plugins that were registered before. */
static void wipe_slices(struct node *n) {
        const struct version *s;
        while ((s = slice_of(n)))
                world_delete(K_SLICE, s, false);
        n->wipes = false;
}

/* The API server hears the kubelet, or does not. Then after a while the Node and its Pods are not ready. */
static void node_lifecycle(struct node *n) {
        int64_t now = sim_now_ms();
        if (n->power_ms && now >= n->power_ms) {
                n->power = true;
                n->power_ms = 0;
                n->boots++;
                n->wipes = true;
                sim_log("%s has power again", n->name);
                start_plugin(n);
        }
        if (n->connected_ms && now >= n->connected_ms) {
                n->connected = n->back = true;
                n->connected_ms = 0;
                sim_log("%s is connected again", n->name);
        }
        if (!n->exists && n->exists_ms && now >= n->exists_ms && n->power && n->connected)
                make_node(n);
        if (!n->exists)
                return;
        if (n->power && n->connected)
                n->heard_ms = now;
        if (n->power && n->connected && n->wipes)
                wipe_slices(n);
        if (n->ready == n->tainted) {
                taint(n);
        } else if (n->ready && now - n->heard_ms > NODE_GRACE_MS) {
                say_ready(n, false);
        } else if (!n->ready && n->power && n->connected) {
                say_ready(n, true);
        } else if (n->shown_boots != n->boots && n->power && n->connected && soon()) {
                say_ready(n, true); /* it was off for a shorter time */
        }
}

/* `fault` is static; NULL: the container ends by itself. */
static void end_container(struct run *r, const char *fault) {
        r->up = false;
        r->killed_by = fault;
        daemon_kill(TAKE(r->daemon));
        r->killed_by = NULL;
}

void lose_power(struct node *n, int64_t for_ms) {
        n->power = false;
        n->power_ms = sim_now_ms() + for_ms;
        plugin_kill(number_of(n), false);
        go_driver_lose_power(n);
        for (unsigned k = 0; k < MAX_RUNS; k++) {
                end_container(&n->runs[k], "power");
                held_forget(&n->runs[k].held);
                n->runs[k] = (struct run){ 0 };
        }
        for (unsigned d = 0; d < w.n_domains; d++)
                for (unsigned i = 0; i < w.domains[d].n_pods; i++) {
                        struct user_pod *p = &w.domains[d].pods[i];
                        if (p->node != n)
                                continue;
                        if (p->state == POD_RUNS || p->state == POD_STARTS)
                                p->state = POD_ALLOCATED;
                        p->ran = false;
                        held_reboot(&p->held);
                }
        claim_info_reboot(n);
        sim_log("%s loses power", n->name);
}

static void delete_node(struct node *n) {
        const struct version *v = store_get(K_NODE, "", n->name);
        if (v)
                world_delete(K_NODE, v, false);
        wipe_slices(n); /* their owner no longer exists */
        n->exists = false;
        n->gone_ms = sim_now_ms();
        n->exists_ms = sim_now_ms() + sim_between(60000, 200000);
}

/* ---- claims ---- */

bool is_taken(const char *node, const char *device) {
        for (size_t i = 0; i < store_count(K_CLAIM); i++) {
                const struct version *c = store_nth(K_CLAIM, i);
                if (streq(c->pool, node) && streq(c->device, device))
                        return true;
        }
        return false;
}

void allocate(const char *claim, const char *ns, const char *node, const char *device, const char *config,
              const char *domain, bool own, const char *pod_uid) {
        _cleanup_(freep) char *of = xasprintf("%s%s", domain, own ? "','isolation':'Channel" : "");
        world_patch(K_CLAIM, store_get(K_CLAIM, ns, claim), true,
                    "{'status':{'allocation':{'devices':{'results':[{'request':'r','driver':'" CD_DRIVER
                    "','pool':'%s','device':'%s'}],'config':[{'source':'FromClaim','requests':['r'],'opaque':"
                    "{'driver':'" CD_DRIVER "','parameters':{'apiVersion':'" CD_API_VERSION
                    "','kind':'%s','domainID':'%s'}}}]}},'reservedFor':[{'resource':'pods','name':'%s','"
                    "uid':'%s'}]}}",
                    node, device, config, of, claim, pod_uid);
}

void delete_claim(const char *ns, const char *name) {
        const struct version *c = store_get(K_CLAIM, ns, name);
        if (c)
                world_delete(K_CLAIM, c, false);
}

/* ---- the DaemonSet controller, the claim controller, the garbage collector ---- */

#define IMAGE_OF_SET "/spec/template/spec/containers/0/image"

static bool has_daemon(int node) {
        for (size_t i = 0; i < store_count(K_POD); i++)
                if (store_nth(K_POD, i)->target_no == node && !is_over(store_nth(K_POD, i)))
                        return true;
        return false;
}

static void look_at_set(const struct version *s) {
        if (version_deleted(s) || go_driver_owns(s))
                return;
        _cleanup_(freep) char *image =
                crashing_used() ? xasprintf(",'image':'%s'", str_or(version_str(s, IMAGE_OF_SET), ""))
                                : xstrdup("");
        for (unsigned i = 0; i < w.n_nodes; i++) {
                const struct version *n = object_of_node(&w.nodes[i]);
                if (n && n->for_daemons && !has_daemon(n->node_no) && soon() && !w.refuses_daemons)
                        world_create(K_POD, DRIVER_NS,
                                     "{'metadata':{'name':'imex-%s-%u','labels':{'" CD_LABEL_COMPONENT
                                     "':'" CD_DAEMON_OBJECT "','app':'imex-daemon'},"
                                     "'annotations':{'" CD_ANNOTATION_TEMPLATE
                                     "':'%s'}},'spec':{'target':'%s'%s},"
                                     "'status':{'phase':'Pending'}}",
                                     n->name, ++w.serial,
                                     str_or(version_str(s, "/spec/template/metadata/annotations/"
                                                           "resource.nvidia.com~1template-hash"),
                                            ""),
                                     n->name, image);
        }
}

/* The DaemonSet wants this Pod on its node. The garbage collector deletes the Pods of deleted nodes. */
static bool is_wanted(const struct version *p) {
        const struct version *n = object_of_node(&w.nodes[p->target_no]);
        const struct version *s = store_get(K_SET, DRIVER_NS, CD_DAEMON_OBJECT);
        return s && (version_deleted(s) || !n || n->for_daemons);
}

static void collect_pods(void) {
        for (size_t i = 0; i < store_count(K_POD); i++) {
                const struct version *p = store_nth(K_POD, i);
                if (!p->target)
                        continue; /* the Pod of a plugin */
                const struct node *n = &w.nodes[p->target_no];
                bool lost = !n->exists && sim_now_ms() - n->gone_ms > POD_GC_MS;
                if (!soon() || (!lost && (version_deleted(p) || is_wanted(p))))
                        continue;
                world_delete(K_POD, p, lost);
                i = SIZE_MAX; /* the list has changed: start again */
        }
}

/* The claims of daemons' Pods: created from their template, allocated and bound when the device is free,
 * deleted when their Pod has ended. */
static void look_at_pod(const struct version *p) {
        const char *node = p->target;
        if (!p->target || version_deleted(p) || !soon())
                return;
        const struct version *c = store_get(K_CLAIM, DRIVER_NS, p->name),
                             *t = store_get(K_TEMPLATE, DRIVER_NS, CD_DAEMON_OBJECT);
        if (!c && t && !version_deleted(t)) {
                world_create(K_CLAIM, DRIVER_NS, "{'metadata':{'name':'%s'}}", p->name);
        } else if (c && !c->pool && store_get(K_NODE, "", node) && !is_taken(node, CD_DEVICE_DAEMON)) {
                char name[128];
                snprintf(name, sizeof name, "%s", p->name);
                allocate(name, DRIVER_NS, node, CD_DEVICE_DAEMON, CONFIG_DAEMON, CD_DAEMON_DOMAIN, false,
                         p->uid);
                world_patch(K_POD, p, false, "{'spec':{'nodeName':'%s'}}", node);
        }
}

/* The owner of the claim, which is a ComputeDomain, does not exist any more. */
static bool is_orphan(const struct version *c) {
        const char *kind = version_str(c, "/metadata/ownerReferences/0/kind"),
                   *name = version_str(c, "/metadata/ownerReferences/0/name");
        if (!streq(kind, CD_KIND) || version_deleted(c))
                return false;
        const struct version *d = store_get(K_DOMAIN, c->ns, name);
        return !d || !streq(d->uid, version_str(c, "/metadata/ownerReferences/0/uid"));
}

static void collect_claims(void) {
        for (size_t i = 0; i < store_count(K_CLAIM); i++) {
                const struct version *c = store_nth(K_CLAIM, i), *p;
                if (is_orphan(c) && soon()) {
                        world_delete(K_CLAIM, c, false);
                        i = SIZE_MAX;
                        continue;
                }
                if (!streq(c->ns, DRIVER_NS))
                        continue;
                p = store_get(K_POD, DRIVER_NS, c->name);
                if ((!p || is_over(p)) && soon()) {
                        world_delete(K_CLAIM, c, false);
                        i = SIZE_MAX;
                }
        }
}

/* ---- the kubelet ---- */

static void take_pod(struct node *n, const struct version *p) {
        const struct version *c = store_get(K_CLAIM, DRIVER_NS, p->name);
        for (unsigned k = 0; c && k < MAX_RUNS; k++)
                if (!n->runs[k].used) {
                        struct run *r = &n->runs[k];
                        *r = (struct run){ .used = true };
                        snprintf(r->pod, sizeof r->pod, "%s", p->name);
                        snprintf(r->uid, sizeof r->uid, "%s", p->uid);
                        if (version_str(p, "/status/podIPs/0/ip")) /* it ran before the node lost power */
                                say_pod(p, false, "");
                        held_init(&r->held, number_of(n), false, DRIVER_NS, c->name, c->uid, "", false);
                        return;
                }
}

static void start_daemon(const struct node *n, struct run *r) {
        char boot_id[48];
        snprintf(boot_id, sizeof boot_id, BOOT_ID, n->boots);
        int64_t before = sim_clock_set(clock_of(n));
        r->daemon = daemon_start(w.loop, &(struct daemon_options){ .node = number_of(n),
                                                                   .cdi_file = held_cdi_file(&r->held),
                                                                   .claim_uid = r->held.uid,
                                                                   .pod = r->pod,
                                                                   .pod_uid = r->uid,
                                                                   .ip = r->ip,
                                                                   .boot_id = boot_id });
        sim_clock_set(before);
}

/* A kubelet that sees a force-deletion kills the Pod in a moment. A kubelet that was cut off no longer finds
 * the Pod, and gives it its grace period. But on a node without a Node object that time is short, too,
 * because containers there count for one minute only. */
static void begin_end(const struct node *n, struct run *r, bool there) {
        bool first = !r->ending;
        r->ending = true;
        if (first)
                r->ends_ms = sim_now_ms() + GRACE_MS;
        if (!there && !r->lost) {
                r->lost = true;
                r->forced = !(n->back && n->exists);
                if (r->forced)
                        r->ends_ms = sim_now_ms() + FORCED_MS;
        }
        if (first && r->daemon)
                daemon_stop(r->daemon);
}

static bool has_left(const struct run *r) {
        return r->daemon ? daemon_left(r->daemon) : sim_now_ms() >= r->crashes_ms;
}

static void start_container(const struct node *n, struct run *r, bool crashes) {
        r->up = true;
        if (crashes || w.daemons_crash)
                r->crashes_ms = sim_now_ms() + sim_between(0, 3000);
        else
                start_daemon(n, r);
}

static void see_annotation(struct run *r, const struct version *p) {
        const char *value = str_or(version_annotation(p, CD_ANNOTATION_RETRY), "");
        if (streq(value, r->retry))
                return;
        snprintf(r->retry, sizeof r->retry, "%s", value);
        held_sync(&r->held);
}

static void step_run(struct node *n, struct run *r) {
        const struct version *p = store_get(K_POD, DRIVER_NS, r->pod);
        int64_t now = sim_now_ms();
        bool there = p && streq(p->uid, r->uid);
        if (n->connected && there)
                see_annotation(r, p);
        if (n->connected && (!there || version_deleted(p)))
                begin_end(n, r, there);
        if (r->ending && (!r->up || has_left(r) || now >= r->ends_ms)) {
                end_container(r, r->forced ? "daemon_deleted" : NULL);
                if (!held_unprepare(&r->held) || !n->connected)
                        return;
                if (there && !is_over(p)) {
                        say_pod(p, false, "'phase':'Succeeded',");
                        return;
                }
                if (there && !soon())
                        return;
                held_forget(&r->held);
                r->used = false;
                if (there)
                        world_delete(K_POD, p, true);
                return;
        }
        if (!r->up && !r->ending && held_prepare(&r->held) && !r->starts_ms)
                r->starts_ms = now + sim_between(200, 4000);
        if (!r->up && !r->ending && r->starts_ms && now >= r->starts_ms && n->connected && there) {
                bool crashes = crashing_is_bad(version_str(p, "/spec/image"));
                if (!r->ip[0])
                        snprintf(r->ip, sizeof r->ip, "10.0.%u.%u", number_of(n), ++n->addresses % 250 + 1);
                world_patch(K_POD, p, true,
                            "{'status':{'phase':'Running','podIPs':[{'ip':'%s'}],'conditions':[{'type':'"
                            "Ready','status':'True'}],'containerStatuses':[{'state':{'running':{'startedAt':"
                            "'%s'}}}]}}",
                            r->ip, channels_now_text(clock_of(n)));
                start_container(n, r, crashes);
        }
        if (r->up && !r->ending && has_left(r)) {
                end_container(r, NULL);
                r->starts_ms = now + sim_between(500, 20000);
                if (n->connected && there)
                        say_pod(p, false,
                                "'containerStatuses':[{'state':{'waiting':{'reason':'CrashLoopBackOff'}}}],");
        }
}

static void kubelet(struct node *n) {
        if (!n->power)
                return;
        for (size_t i = 0; n->connected && n->exists && i < store_count(K_POD); i++) {
                const struct version *p = store_nth(K_POD, i);
                if (p->node_no != (int)number_of(n) || !streq(p->ns, DRIVER_NS) || go_driver_owns(p) ||
                    run_of(n, p->uid))
                        continue;
                if (!version_deleted(p)) {
                        take_pod(n, p);
                } else {
                        world_delete(K_POD, p, true);
                        i = SIZE_MAX;
                }
        }
        for (unsigned k = 0; k < MAX_RUNS; k++)
                if (n->runs[k].used)
                        step_run(n, &n->runs[k]);
        go_driver_step(n);
        n->back = n->back && !n->connected;
}

/* ---- the world ---- */

static void step_plugin_pod(struct node *n) {
        unsigned i = number_of(n);
        enum channels_pod what = channels_step(n->name, n->plugin_pod, n->power && n->connected,
                                               plugin_runs(i), n->exists ? 0 : n->gone_ms, clock_of(n));
        if (what != CHANNELS_POD_STAYS)
                plugin_kill(i, false);
        if (what == CHANNELS_POD_COMES && n->power)
                start_plugin(n);
}

static void tick(void *u) {
        for (unsigned i = 0; i < w.n_nodes; i++)
                node_lifecycle(&w.nodes[i]);
        for (size_t i = 0; i < store_count(K_SET); i++)
                look_at_set(store_nth(K_SET, i));
        collect_pods();
        go_driver_step_cluster();
        for (size_t i = 0; i < store_count(K_POD); i++)
                look_at_pod(store_nth(K_POD, i));
        collect_claims();
        if (channels_pod_groups())
                sharers_collect();
        workloads_collect();
        for (unsigned i = 0; i < w.n_nodes; i++) {
                struct node *n = &w.nodes[i];
                step_plugin_pod(n);
                kubelet(n);
        }
        for (unsigned i = 0; i < w.n_domains; i++)
                step_domain(&w.domains[i]);
        hostile_step();
        lying_step();
        held_check_all();
        sim_at(sim_now_ms() + sim_between(10, 200), tick, NULL);
}

static void make_namespaces(void) {
        /* Events of Nodes are in "default". */
        static const char *const names[] = { "default", DRIVER_NS, USER_NS, HOSTILE_NS };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                world_create(K_NAMESPACE, "", "{'metadata':{'name':'%s'}}", names[i]);
}

void world_begin(uv_loop_t *loop, unsigned n_nodes, unsigned n_domains) {
        w.loop = loop;
        w.n_nodes = n_nodes < MAX_NODES ? n_nodes : MAX_NODES;
        w.n_domains = n_domains < MAX_DOMAINS ? n_domains : MAX_DOMAINS;
        make_namespaces();
        server_set_pods(users_patch_pod);
        for (unsigned i = 0; i < w.n_nodes; i++) {
                struct node *n = &w.nodes[i];
                char name[sizeof n->name];
                *n = (struct node){ .power = true, .connected = true };
                snprintf(name, sizeof name, "node-%u", i);
                memcpy(n->name, name, sizeof name);
                snprintf(n->plugin_pod, sizeof n->plugin_pod, CHANNELS_POD, name);
                snprintf(n->clique, sizeof n->clique, CLIQUE, i / NODES_OF_CLIQUE);
                make_node(n);
                start_plugin(n);
        }
        for (unsigned i = 0; i < w.n_domains; i++) {
                struct domain *d = &w.domains[i];
                snprintf(d->name, sizeof d->name, "d%u", i);
                snprintf(d->cd, sizeof d->cd, "d%u", i);
                d->next_ms = sim_between(0, 20000);
                d->of_rack = racks_used() && i % 2 && i / 2 <= (w.n_nodes - 1) / NODES_OF_CLIQUE;
                if (d->of_rack)
                        racks_name(i / 2, d->name, sizeof d->name);
                if (d->of_rack)
                        racks_name(i / 2, d->cd, sizeof d->cd);
        }
        if (racks_used())
                racks_begin();
        if (go_driver_used())
                users_migrate();
        hostile_begin();
        lying_begin();
        crashing_begin();
        channels_begin();
        tick(NULL);
}

unsigned world_nodes(void) {
        return w.n_nodes;
}

unsigned world_number(const char *node) {
        return number_of(node_named(node));
}

/* Ends the plugins for good. */
void world_end(void) {
        for (unsigned i = 0; i < w.n_nodes; i++) {
                w.nodes[i].power_ms = 0;
                lose_power(&w.nodes[i], INT32_MAX);
        }
        plugins_end();
        claim_info_done();
        workloads_done();
}

static void delete_some_object(void) {
        static const enum kind made[] = { K_SET, K_TEMPLATE };
        enum kind k = made[sim_draw(ARRAY_LEN(made))];
        const struct version *v = store_count(k) ? store_nth(k, sim_draw(store_count(k))) : NULL;
        if (v && !go_driver_owns(v))
                world_delete(k, v, false);
}

void world_fault(const char *name) {
        struct node *n = &w.nodes[sim_draw(w.n_nodes)];
        struct run *r = &n->runs[0];
        const struct version *p = r->used ? store_get(K_POD, DRIVER_NS, r->pod) : NULL;
        if (streq(name, "power")) {
                lose_power(n, sim_between(2000, 120000));
        } else if (streq(name, "cut_off")) {
                n->connected = false;
                n->connected_ms = sim_now_ms() + sim_between(2000, channels_used() ? 400000 : 150000);
                faults_cut_off(REPLICAS + number_of(n), n->connected_ms);
                sim_log("%s is cut off", n->name);
        } else if (streq(name, "node_deleted") && n->exists && n->connected) {
                if (sim_chance(60))
                        lose_power(n, sim_between(50000, 150000));
                delete_node(n);
        } else if (streq(name, "daemon_killed") && r->used && r->up) {
                end_container(r, name);
                if (n->connected && p && streq(p->uid, r->uid))
                        say_pod(p, false, "");
                r->starts_ms = sim_now_ms() + sim_between(500, 20000);
        } else if (streq(name, "imex_killed") && r->used) {
                imex_crash(number_of(n), str_or(imex_domain(number_of(n)), ""));
        } else if (streq(name, "daemon_deleted") && p) {
                world_delete(K_POD, p, sim_chance(25));
        } else if (streq(name, "plugin_killed") && n->power) {
                plugin_kill(number_of(n), true);
        } else if (streq(name, "plugin_stopped")) {
                plugin_stop(number_of(n));
        } else if (streq(name, "objects_deleted")) {
                delete_some_object();
        } else if (streq(name, "rack_moved")) {
                /* Moves the node to an existing rack or a new one. Its kernel driver reports it after the
                 * next boot. */
                lose_power(n, sim_between(2000, 120000));
                snprintf(n->clique, sizeof n->clique, CLIQUE,
                         (unsigned)sim_draw(w.n_nodes / NODES_OF_CLIQUE + 2));
        } else if (streq(name, "forced")) {
                force_end(&w.domains[sim_draw(w.n_domains)]);
        } else if (str_starts(name, "fabric_") && !hostile_greedy()) {
                channels_fault(name);
        } else if (str_starts(name, "rack_")) {
                racks_fault(name);
        }
}

void world_leave_one_off(void) {
        w.leaves_one_off = true;
}

void world_calm(void) {
        w.calm = true;
        racks_calm();
        hostile_calm();
        lying_calm();
        crashing_calm();
        channels_calm();
        if (w.leaves_one_off) {
                /* Not the node that lies: it must report the truth in the end. */
                do
                        w.off = &w.nodes[sim_draw(w.n_nodes)];
                while (lying_is(number_of(w.off)) && w.n_nodes > 1);
                lose_power(w.off, 0);
                w.off->power_ms = 0;
        }
        for (unsigned i = 0; i < w.n_nodes; i++) {
                struct node *n = &w.nodes[i];
                if (!n->power && n != w.off)
                        n->power_ms = sim_now_ms() + 1;
                if (!n->connected)
                        n->connected_ms = sim_now_ms() + 1;
                if (!n->exists)
                        n->exists_ms = sim_now_ms() + 1;
        }
        for (unsigned i = 0; i < w.n_domains; i++)
                if (!w.domains[i].lives)
                        w.domains[i].next_ms = 0;
}

void world_empty(void) {
        w.empty = true;
        if (w.off)
                w.off->power_ms = sim_now_ms() + 1;
        w.off = NULL;
        hostile_empty();
}

void world_dismantle(void) {
        for (unsigned i = 0; i < w.n_nodes; i++) {
                struct node *n = &w.nodes[i];
                lose_power(n, 0);
                delete_node(n);
                n->power_ms = n->exists_ms = 0;
        }
}
