/* SPDX-License-Identifier: Apache-2.0 */
/* users: create ComputeDomains and pods that use them, and delete them, in any order. The scheduler is here,
 * too. */
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "channels.h"
#include "claim_info.h"
#include "go_driver.h"
#include "hostile.h"
#include "racks.h"
#include "sharers.h"
#include "sim.h"
#include "workloads.h"
#include "world.h"
#include "world_state.h"

enum { RETRY_MS = 60000 };

/* The first free channel device of the node. */
static const char *free_channel_device(const char *node) {
        static char device[16];
        unsigned i = 0;
        do
                snprintf(device, sizeof device, "channel-%u", i++);
        while (i < channels_pods_max() && is_taken(node, device));
        return device;
}

/* The free channel devices of each node that the ComputeDomain may use. Many pods may wait for a device, so
 * the result is kept until a slice or a claim changes. */
static const unsigned *offers_to(const struct domain *d) {
        static struct {
                uint64_t of_slices, of_claims;
                char domain[sizeof d->name]; /* "": any that is not of a rack */
                unsigned free[MAX_NODES];
        } o;
        const char *domain = d->of_rack ? d->name : "";
        if (o.of_slices == store_changes(K_SLICE) && o.of_claims == store_changes(K_CLAIM) &&
            streq(o.domain, domain))
                return o.free;
        memset(&o, 0, sizeof o);
        o.of_slices = store_changes(K_SLICE);
        o.of_claims = store_changes(K_CLAIM);
        snprintf(o.domain, sizeof o.domain, "%s", domain);
        for (size_t i = 0; i < store_count(K_SLICE); i++) {
                const struct version *s = store_nth(K_SLICE, i);
                if (s->node && (!d->of_rack || racks_may_run(d->name, s)))
                        o.free[number_of(node_named(s->node))] = s->channels;
        }
        for (size_t i = 0; i < store_count(K_CLAIM); i++) {
                const struct version *c = store_nth(K_CLAIM, i);
                if (c->device && str_starts(c->device, "channel-") && !streq(c->pool, CD_POOL_SHARED) &&
                    o.free[number_of(node_named(c->pool))])
                        o.free[number_of(node_named(c->pool))]--;
        }
        return o.free;
}

struct node *choose_node(const struct domain *d) {
        unsigned from = (unsigned)sim_draw(w.n_nodes);
        const unsigned *offers = offers_to(d);
        for (unsigned i = 0; i < w.n_nodes; i++) {
                struct node *n = &w.nodes[(from + i) % w.n_nodes];
                if (n->exists && n->ready && !n->cordoned && !n->excluded && offers[number_of(n)])
                        return n;
        }
        return NULL;
}

/* ---- pods ---- */

/* The claim no longer names the pod: its last container has ended, or its object was force-deleted. */
static void unreserve(struct domain *d, struct user_pod *p) {
        if (p->shares)
                sharers_unreserve(d, p);
        else
                delete_claim(USER_NS, p->claim);
}

static void claim_of_template(struct domain *d, struct user_pod *p) {
        _cleanup_(freep) char *name = xasprintf(d->of_rack ? RACKS_TEMPLATE : "t-%s", d->name);
        const struct version *t = store_get(K_TEMPLATE, USER_NS, name);
        if (!t || version_deleted(t) || !streq(t->domain, d->uid) || w.refuses_claims)
                return;
        bool own = channels_of_template(t);
        _cleanup_(freep) char *claim = xasprintf("claim-%s-%u", d->name, ++w.serial);
        snprintf(p->claim, sizeof p->claim, "%s", claim);
        world_create(K_CLAIM, USER_NS,
                     "{'metadata':{'name':'%s','ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p',"
                     "'uid':'p'}]},'spec':{'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':"
                     "'" CD_CLASS_CHANNEL "'}}],'config':[{'requests':['r'],'opaque':{'driver':'" CD_DRIVER
                     "','parameters':{'apiVersion':'" CD_API_VERSION
                     "','kind':'ComputeDomainChannelConfig','domainID':'%s%s'}}}]}}}",
                     p->claim, d->uid, own ? "','isolation':'Channel" : "");
        p->own = own;
        p->state = POD_CLAIMED;
}

static void pod_gone(struct domain *d, struct user_pod *p) {
        enum state next = p->again ? POD_WAITS : POD_NONE;
        held_forget(&p->held);
        unreserve(d, p);
        workloads_pod_gone(p, false);
        *p = (struct user_pod){ .state = next };
}

void end_pod(struct user_pod *p) {
        if (p->state == POD_NONE || p->state == POD_ENDS)
                return;
        p->ran = p->state == POD_RUNS;
        p->ends_ms = sim_now_ms() + (p->ran ? sim_between(50, 8000) : 0);
        p->state = POD_ENDS;
        workloads_end_pod(p);
}

void end_pods_on(const struct node *n) {
        for (unsigned d = 0; d < w.n_domains; d++)
                for (unsigned i = 0; i < w.domains[d].n_pods; i++)
                        if (w.domains[d].pods[i].node == n)
                                end_pod(&w.domains[d].pods[i]);
}

/* The kubelet syncs a pod as soon as it sees that the pod ends, even during the pause after a failed Prepare.
 */
static void see_end(struct user_pod *p) {
        if (!p->seen)
                held_sync(&p->held);
        p->seen = true;
}

/* A kubelet sees the changes of its pods in their order. So when it gets a pod with a device, it has seen
 * that the earlier pod with this device ends. */
static void see_ends(const struct node *n) {
        for (unsigned d = 0; d < w.n_domains; d++)
                for (unsigned i = 0; i < w.domains[d].n_pods; i++)
                        if (w.domains[d].pods[i].node == n && w.domains[d].pods[i].state == POD_ENDS)
                                see_end(&w.domains[d].pods[i]);
}

static bool unprepare(struct user_pod *p) {
        return p->shares ? claim_info_unprepare(p) : held_unprepare(&p->held);
}

static void step_pod(struct domain *d, struct user_pod *p) {
        struct node *n = p->node;
        int64_t now = sim_now_ms();
        if (n && !n->exists && now - n->gone_ms > POD_GC_MS + 10000 && !p->collected) {
                /* Deleted with its Node; a running kubelet ends it. */
                p->again = p->state != POD_ENDS && !d->ends;
                p->collected = true;
                unreserve(d, p);
                workloads_pod_gone(p, true);
                end_pod(p);
        }
        switch (p->state) {
        case POD_NONE:
                return;
        case POD_WAITS:
                if (d->of_workload && !*p->name)
                        workloads_create_pod(d, p);
                else if (d->shares)
                        sharers_schedule(d, p);
                else
                        claim_of_template(d, p);
                return;
        case POD_CLAIMED:
                p->node = choose_node(d);
                if (!p->node)
                        return;
                allocate(p->claim, USER_NS, p->node->name, free_channel_device(p->node->name),
                         "ComputeDomainChannelConfig", d->uid, p->own, p->claim);
                p->state = POD_ALLOCATED;
                p->since_ms = now;
                return;
        case POD_ALLOCATED:
                if (!n->power || !n->connected || !n->exists)
                        return;
                see_ends(n);
                if (p->shares) {
                        sharers_prepare(d, p);
                        return;
                }
                held_init(&p->held, number_of(n), true, USER_NS, p->claim,
                          store_get(K_CLAIM, USER_NS, p->claim)->uid, d->uid, p->own);
                if (p->retry)
                        held_sync(&p->held);
                p->retry = false;
                if (!held_prepare(&p->held)) {
                        /* Its device may be from the previous isolation, so its owner creates another pod. */
                        if (w.calm && channels_change() && now - p->since_ms > RETRY_MS &&
                            !world_pod_may_wait(n))
                                end_pod(p);
                        return;
                }
                sim_log("a pod of %s runs on %s", d->name, n->name);
                p->state = POD_RUNS;
                p->since_ms = now;
                return;
        case POD_STARTS:
                if (n->power)
                        sharers_start(d, p);
                return;
        case POD_RUNS:
                return;
        case POD_ENDS:
                /* A kubelet without network ends the pods whose end it has seen, but cannot report it. */
                p->seen = p->seen && n && n->power;
                if (n && n->power && n->connected)
                        see_end(p);
                if (!n || (p->seen && now >= p->ends_ms && unprepare(p) && n->connected))
                        pod_gone(d, p);
                return;
        }
}

bool users_patch_pod(const char *ns, const char *name, const char *body) {
        for (unsigned d = 0; d < w.n_domains && streq(ns, USER_NS); d++) {
                for (unsigned i = 0; i < w.domains[d].n_pods; i++) {
                        struct user_pod *p = &w.domains[d].pods[i];
                        if (!p->node || !streq(p->shares ? p->name : p->claim, name))
                                continue;
                        p->retry = p->retry || strstr(body, CD_ANNOTATION_RETRY);
                        return true;
                }
        }
        return false;
}

const struct version *object_of(const struct domain *d) {
        const struct version *v = store_get(K_DOMAIN, USER_NS, d->cd);
        return v && streq(v->uid, d->uid) ? v : NULL;
}

static bool has_pods(const struct domain *d) {
        for (unsigned i = 0; i < d->n_pods; i++)
                if (d->pods[i].state != POD_NONE)
                        return true;
        return false;
}

static void make_object(struct domain *d) {
        snprintf(d->cd, sizeof d->cd, "%s", d->name);
        snprintf(d->claim, sizeof d->claim, "s-%s", d->name);
        _cleanup_(freep) char *claim =
                channels_shared() ? xasprintf(",'resourceClaim':{'name':'%s'}", d->claim) : xstrdup("");
        d->of_workload = false;
        if (!d->of_rack)
                world_create(K_DOMAIN, USER_NS,
                             "{'apiVersion':'" CD_API_VERSION
                             "','metadata':{'name':'%s'},'spec':{'numNodes':0,'channel':{"
                             "'resourceClaimTemplate':{'name':'t-%s'}%s}}}",
                             d->name, d->name, claim);
        snprintf(d->uid, sizeof d->uid, "%s", store_get(K_DOMAIN, USER_NS, d->name)->uid);
}

static void make_domain(struct domain *d) {
        d->shares = channels_shared() && sim_chance(70);
        if (d->shares && workloads_used() && sim_chance(80))
                workloads_begin(d);
        else
                make_object(d);
        d->lives = true;
        d->ends = false;
        d->steady = sim_chance(10);
        d->n_groups = d->shares && !d->of_workload && channels_pod_groups()
                              ? (unsigned)sim_draw(MAX_GROUPS + 1)
                              : 0;
        d->n_pods = d->steady || hostile_greedy() ? 1
                    : d->shares                   ? (unsigned)sim_between(1, 2 * w.n_nodes)
                                                  : (unsigned)sim_between(1, w.n_nodes);
        d->next_ms = sim_now_ms() + (d->steady ? sim_between(600000, 2400000) : sim_between(5000, 150000));
        for (unsigned i = 0; i < d->n_pods; i++)
                d->pods[i] = (struct user_pod){ .state = POD_WAITS };
}

static void make_go_domain(struct domain *d) {
        unsigned from = (unsigned)sim_draw(w.n_nodes);
        char template[32];
        make_domain(d);
        snprintf(template, sizeof template, "t-%s", d->name);
        go_driver_form(d->uid, d->name, template);
        for (unsigned i = 0; i < d->n_pods; i++) {
                struct node *n = &w.nodes[(from + i) % w.n_nodes];
                struct user_pod *p = &d->pods[i];
                if (!go_driver_label(n, d->uid))
                        continue;
                snprintf(p->claim, sizeof p->claim, "claim-go-%u", ++w.serial);
                world_create(K_CLAIM, USER_NS, "{'metadata':{'name':'%s'}}", p->claim);
                allocate(p->claim, USER_NS, n->name, free_channel_device(n->name), "ComputeDomainChannelConfig", d->uid,
                         false, p->claim);
                p->node = n;
                p->state = POD_ALLOCATED;
                p->since_ms = sim_now_ms();
        }
}

void users_migrate(void) {
        for (unsigned i = 0; i < w.n_domains; i++)
                if (!w.domains[i].of_rack && sim_chance(60))
                        make_go_domain(&w.domains[i]);
}

/* Deletes the ComputeDomain first, its pods first, or all at once. */
static void end_domain(struct domain *d) {
        const struct version *v = object_of(d);
        unsigned order = (unsigned)sim_draw(3);
        d->ends = true;
        if (order != 1)
                d->owned = false;
        if (order != 1 && !d->of_workload && !d->of_rack && v && !version_deleted(v))
                world_delete(K_DOMAIN, v, false);
        for (unsigned i = 0; (order != 2 || d->of_rack) && i < d->n_pods; i++)
                end_pod(&d->pods[i]);
        d->next_ms = sim_now_ms() + sim_between(0, 20000);
}

void force_end(struct domain *d) {
        if (!d->lives || d->ends)
                return;
        end_domain(d);
        for (unsigned i = 0; i < d->n_pods; i++) {
                end_pod(&d->pods[i]);
                unreserve(d, &d->pods[i]);
                workloads_pod_gone(&d->pods[i], true);
        }
}

/* The ComputeDomain of a rack exists already; others of that name no longer exist. */
static bool may_begin(const struct domain *d) {
        const struct version *v = store_get(K_DOMAIN, USER_NS, d->name);
        return d->of_rack ? v && !version_deleted(v) : !v;
}

void step_domain(struct domain *d) {
        if (d->of_workload && d->lives)
                workloads_step(d);
        const struct version *v = object_of(d);
        int64_t now = sim_now_ms();
        for (unsigned i = 0; i < d->n_pods; i++)
                if (soon())
                        step_pod(d, &d->pods[i]);
        if (d->shares)
                sharers_step(d);
        if (!d->lives) {
                if (now >= d->next_ms && !w.empty && may_begin(d))
                        make_domain(d);
        } else if (d->of_rack && !d->ends && (!v || version_deleted(v))) {
                end_domain(d); /* somebody has deleted it, or its namespace no longer requests it */
        } else if (!d->ends && v && channels_other_mode(v) && (w.calm || sim_chance(1))) {
                end_domain(d); /* it can no longer be used */
        } else if (!d->ends && v && w.calm && go_driver_has(d->uid)) {
                end_domain(d); /* no node can join it, and its pods may wait for another node */
        } else if (!d->ends) {
                unsigned i = (unsigned)sim_draw(d->n_pods);
                if (!w.calm && !d->steady && sim_chance(1))
                        end_pod(&d->pods[i]);
                if (d->pods[i].state == POD_NONE && !w.empty)
                        d->pods[i].state = POD_WAITS;
                if (w.empty || (!w.calm && now >= d->next_ms))
                        end_domain(d);
        } else if (now >= d->next_ms) {
                for (unsigned i = 0; i < d->n_pods; i++)
                        end_pod(&d->pods[i]);
                d->owned = false;
                if (v && !version_deleted(v) && !d->of_rack && !d->of_workload)
                        world_delete(K_DOMAIN, v, false);
                if ((!v || d->of_rack) && !has_pods(d) && !sharers_have_group(d)) {
                        d->lives = false;
                        d->next_ms = now + (w.calm ? 0 : sim_between(0, 20000));
                }
        }
}
