/* SPDX-License-Identifier: Apache-2.0 */
#include "sharers.h"

#include <stdio.h>
#include <string.h>

#include "api/claim.h"
#include "api/names.h"
#include "base/mem.h"
#include "channels.h"
#include "claim_info.h"
#include "workloads.h"

#define PROTECTION "resource.kubernetes.io/delete-protection"
#define GROUP_PROTECTION "scheduling.k8s.io/podgroup-protection"
/* STUCK_MS: until users notice a pod that cannot start. */
enum { SANDBOX_MS = 3000, STUCK_MS = 20000 };

static const struct version *shared_claim(const struct domain *d) {
        const struct version *c = *d->uid ? store_get(K_CLAIM, USER_NS, d->claim) : NULL;
        return c && strstr(c->json, d->uid) ? c : NULL;
}

static bool reserves(const struct version *c, const char *uid) {
        yyjson_val *x;
        size_t i, n;
        yyjson_arr_foreach (yyjson_ptr_get(c->root, "/status/reservedFor"), i, n, x)
                if (yyjson_equals_str(yyjson_obj_get(x, "uid"), uid))
                        return true;
        return false;
}

/* ---- PodGroups ---- */

/* The number of the pod's PodGroup, from 1; 0: it has none. */
static unsigned group_of(const struct domain *d, const struct user_pod *p) {
        return (unsigned)(p - d->pods) % (d->n_groups + 1);
}

static const char *group_name(const struct domain *d, unsigned group) {
        static char name[64];
        snprintf(name, sizeof name, "g-%s-%u", d->name, group);
        return name;
}

static const struct version *group_object(const struct domain *d, unsigned group) {
        return store_get(K_POD_GROUP, USER_NS, group_name(d, group));
}

bool sharers_have_group(const struct domain *d) {
        for (unsigned g = 1; g <= d->n_groups; g++)
                if (group_object(d, g))
                        return true;
        return false;
}

static bool is_bound(const struct user_pod *p) {
        return p->node && p->shares;
}

static bool has_bound_pod(const struct domain *d, unsigned group) {
        for (unsigned i = 0; i < d->n_pods; i++)
                if (group_of(d, &d->pods[i]) == group && is_bound(&d->pods[i]))
                        return true;
        return false;
}

/* ---- the claim ---- */

static bool is_protected(const struct version *c) {
        yyjson_val *f;
        size_t i, n;
        yyjson_arr_foreach (yyjson_obj_get(c->meta, "finalizers"), i, n, f)
                if (yyjson_equals_str(f, PROTECTION))
                        return true;
        return false;
}

/* Adds or removes the finalizer of Kubernetes, and keeps the others. */
static void protect(const struct version *c, bool is) {
        struct buf b = BUF_INIT(1024);
        yyjson_val *f;
        size_t i, n;
        yyjson_arr_foreach (yyjson_obj_get(c->meta, "finalizers"), i, n, f)
                if (!yyjson_equals_str(f, PROTECTION))
                        buf_addf(&b, "%s'%s'", b.n ? "," : "", yyjson_get_str(f));
        if (is)
                buf_addf(&b, "%s'" PROTECTION "'", b.n ? "," : "");
        world_patch(K_CLAIM, c, false, "{'metadata':{'finalizers':[%s]}}", buf_str(&b));
        buf_done(&b);
}

static void deallocate(const struct domain *d) {
        world_patch(K_CLAIM, shared_claim(d), true, "{'status':{'allocation':null,'reservedFor':null}}");
        const struct version *c = shared_claim(d);
        if (c && is_protected(c))
                protect(c, false);
}

/* The entries of pods without a group, and of groups: those with bound pods, and those that the claim names
 * already, until they no longer exist. `without`: a group that the scheduler removes, or 0. */
static void list_consumers(const struct domain *d, const struct version *c, unsigned without, struct buf *b) {
        for (unsigned i = 0; i < d->n_pods; i++) {
                const struct user_pod *p = &d->pods[i];
                if (is_bound(p) && !p->unreserved && !group_of(d, p))
                        buf_addf(b, "%s{'resource':'pods','name':'%s','uid':'%s'}", b->n ? "," : "", p->name,
                                 p->name);
        }
        for (unsigned g = 1; g <= d->n_groups; g++) {
                const struct version *v = group_object(d, g);
                if (v && g != without && (has_bound_pod(d, g) || reserves(c, v->uid)))
                        buf_addf(b,
                                 "%s{'apiGroup':'" CLAIM_GROUP_API "','resource':'" CLAIM_GROUP_RESOURCE
                                 "','name':'%s','uid':'%s'}",
                                 b->n ? "," : "", v->name, v->uid);
        }
}

/* The scheduler allocates the claim for the first pod, unless the controller has. After the last pod, the
 * claim controller deallocates a claim that the scheduler has allocated. */
static void reserve_shared(const struct domain *d, unsigned without) {
        const struct version *c = shared_claim(d);
        struct buf b = BUF_INIT(16384);
        if (!c)
                return;
        list_consumers(d, c, without, &b);
        if (b.n && !c->pool) {
                protect(c, true);
                allocate(c->name, USER_NS, CD_POOL_SHARED, CD_DEVICE_SHARED, "ComputeDomainChannelConfig",
                         d->uid, true, "p");
                c = shared_claim(d);
        }
        if (b.n)
                world_patch(K_CLAIM, c, true, "{'status':{'reservedFor':[%s]}}", buf_str(&b));
        else if (c->pool && is_protected(c))
                deallocate(d);
        else if (c->pool)
                world_patch(K_CLAIM, c, true, "{'status':{'reservedFor':null}}");
        buf_done(&b);
}

/* Whether the consumer exists, as far as it is a PodGroup. */
static bool exists(yyjson_val *consumer) {
        const struct version *v =
                store_get(K_POD_GROUP, USER_NS, yyjson_get_str(yyjson_obj_get(consumer, "name")));
        return !yyjson_equals_str(yyjson_obj_get(consumer, "resource"), CLAIM_GROUP_RESOURCE) ||
               (v && yyjson_equals_str(yyjson_obj_get(consumer, "uid"), v->uid));
}

/* Removes the PodGroups that no longer exist. Returns false if there were none. */
static bool collect(const struct version *c) {
        struct buf b = BUF_INIT(16384);
        yyjson_val *x, *all = yyjson_ptr_get(c->root, "/status/reservedFor");
        size_t i, n, left = 0;
        yyjson_arr_foreach (all, i, n, x) {
                _cleanup_(freep) char *json = yyjson_val_write(x, 0, NULL);
                if (exists(x))
                        buf_addf(&b, "%s%s", left++ ? "," : "", json);
        }
        bool any = left < yyjson_arr_size(all);
        if (any && !left && is_protected(c)) {
                world_patch(K_CLAIM, c, true, "{'status':{'allocation':null,'reservedFor':null}}");
                protect(store_get(K_CLAIM, USER_NS, c->name), false);
        } else if (any) {
                world_patch(K_CLAIM, c, true, "{'status':{'reservedFor':[%s]}}", buf_str(&b));
        }
        buf_done(&b);
        return any;
}

void sharers_collect(void) {
        for (size_t i = 0; i < store_count(K_CLAIM); i++) {
                const struct version *c = store_nth(K_CLAIM, i);
                if (streq(c->ns, USER_NS) && streq(c->pool, CD_POOL_SHARED) && soon() && collect(c))
                        i = SIZE_MAX; /* the list has changed */
        }
}

void sharers_unreserve(struct domain *d, struct user_pod *p) {
        p->unreserved = true;
        reserve_shared(d, 0);
}

/* ---- the users and the scheduler ---- */

static bool is_stuck(const struct user_pod *p) {
        return p->state == POD_STARTS && p->starts_ms < sim_now_ms();
}

/* Users who have deleted the pods of a node, because one could not start, create others when these have
 * ended: otherwise the kubelet would keep its entry of the claim. */
static bool has_stuck_pod(const struct domain *d, const struct node *n) {
        for (unsigned i = 0; i < d->n_pods; i++) {
                const struct user_pod *p = &d->pods[i];
                if (p->node == n && (is_stuck(p) || (p->state == POD_ENDS && p->starts_ms)))
                        return true;
        }
        return false;
}

static bool is_open(const struct domain *d, const struct node *n) {
        return n->exists && n->ready && !n->cordoned && !has_stuck_pod(d, n);
}

bool sharers_can_run(const struct domain *d) {
        for (size_t i = 0; i < store_count(K_SLICE); i++) {
                const struct version *s = store_nth(K_SLICE, i);
                if (s->node && s->channels && is_open(d, node_named(s->node)))
                        return true;
        }
        return false;
}

/* The label counts for allocated claims, too. */
static struct node *choose_labelled(const struct domain *d) {
        unsigned from = (unsigned)(sim_chance(50) ? d - w.domains : (int64_t)sim_draw(w.n_nodes));
        for (unsigned i = 0; i < w.n_nodes; i++) {
                struct node *n = &w.nodes[(from + i) % w.n_nodes];
                const struct version *v = store_get(K_NODE, "", n->name);
                if (v && streq(version_label(v, CD_LABEL_SHARED), "true") && is_open(d, n))
                        return n;
        }
        return NULL;
}

static bool can_be_scheduled(const struct domain *d, const struct user_pod *p) {
        const struct version *c = shared_claim(d), *g = NULL;
        unsigned group = group_of(d, p);
        if (group)
                g = group_object(d, group);
        return c && !version_deleted(c) && (!group || (g && !version_deleted(g)));
}

void sharers_schedule(struct domain *d, struct user_pod *p) {
        struct node *n = can_be_scheduled(d, p) ? choose_labelled(d) : NULL;
        const struct version *c = shared_claim(d);
        /* No node fits, so the scheduler deallocates a claim that no pod uses. */
        if (!n && c && c->pool && !strstr(c->json, "\"reservedFor\"") && sim_chance(10))
                deallocate(d);
        if (!n)
                return;
        p->node = n;
        p->shares = p->own = true;
        snprintf(p->claim, sizeof p->claim, "%s", c->name);
        if (!*p->name)
                snprintf(p->name, sizeof p->name, "p-%s-%u", d->name, ++w.serial);
        held_init(&p->held, number_of(n), true, USER_NS, p->claim, c->uid, d->uid, true);
        p->state = POD_ALLOCATED;
        p->since_ms = sim_now_ms();
        reserve_shared(d, 0);
        workloads_bind_pod(p);
}

static void end_group(struct domain *d, unsigned group) {
        world_delete(K_POD_GROUP, group_object(d, group), false);
        for (unsigned i = 0; i < d->n_pods; i++)
                if (group_of(d, &d->pods[i]) == group)
                        end_pod(&d->pods[i]);
}

/* Kubernetes deletes a PodGroup after its last pod. Then the claim controller removes its entry of the claim.
 */
static void step_deleted_group(struct domain *d, unsigned group) {
        const struct version *v = group_object(d, group);
        if (has_bound_pod(d, group))
                return;
        world_patch(K_POD_GROUP, v, false, "{'metadata':{'finalizers':null}}");
        reserve_shared(d, 0);
}

static void step_group(struct domain *d, unsigned group) {
        const struct version *v = group_object(d, group), *c = shared_claim(d);
        bool stays = d->lives && !d->ends && !w.empty;
        if (!v && stays)
                world_create(K_POD_GROUP, USER_NS,
                             "{'metadata':{'name':'%s','finalizers':['" GROUP_PROTECTION "']},"
                             "'spec':{'resourceClaims':[{'name':'channel','resourceClaimName':'%s'}]}}",
                             group_name(d, group), d->claim);
        else if (v && version_deleted(v))
                step_deleted_group(d, group);
        else if (v && (!stays || (!w.calm && !d->steady && !sim_draw(1000))))
                end_group(d, group);
        else if (v && c && !w.calm && !has_bound_pod(d, group) && reserves(c, v->uid) && !sim_draw(200))
                reserve_shared(d, group); /* the group does not fit, so the scheduler ends its reservation */
}

void sharers_step(struct domain *d) {
        for (unsigned g = 1; g <= d->n_groups; g++)
                if (soon())
                        step_group(d, g);
}

/* failure: PodGroups name a shared claim in the simulation -> the claim is reserved for each of them
 * [simulation] */
const char *sharers_unreserved_group(const struct domain *d) {
        const struct version *c = shared_claim(d);
        for (unsigned g = 1; c && c->pool && !version_deleted(c) && g <= d->n_groups; g++) {
                const struct version *v = group_object(d, g);
                if (v && !version_deleted(v) && !reserves(c, v->uid))
                        return v->name;
        }
        return NULL;
}

/* ---- the kubelet ---- */

/* Why the kubelet refuses the pod before it looks for its entry of the claim; NULL: it does not. */
static const char *refusal(const struct domain *d, const struct user_pod *p) {
        const struct version *c = shared_claim(d), *g = NULL;
        unsigned group = group_of(d, p);
        if (!c || !streq(c->uid, p->held.uid))
                return "the claim does not exist";
        if (!c->pool)
                return "the claim is not allocated";
        if (group)
                g = group_object(d, group);
        if (group ? !g || !reserves(c, g->uid) : !reserves(c, p->name))
                return "the claim is not reserved for the pod";
        return plugin_runs(number_of(p->node)) ? NULL : "the plugin is not registered";
}

void sharers_prepare(struct domain *d, struct user_pod *p) {
        if (p->retry)
                held_sync(&p->held);
        p->retry = false;
        if (!claim_info_prepare(p, refusal(d, p)))
                return;
        p->state = POD_STARTS;
        p->starts_ms = sim_now_ms() + sim_between(0, SANDBOX_MS);
}

void sharers_start(struct domain *d, struct user_pod *p) {
        int64_t now = sim_now_ms();
        if (now < p->starts_ms)
                return;
        if (claim_info_start(p)) {
                sim_log("a pod of %s runs on %s", d->name, p->node->name);
                p->state = POD_RUNS;
                p->since_ms = now;
                p->starts_ms = 0;
                return;
        }
        if (now - p->starts_ms < STUCK_MS)
                return;
        sim_log("%s cannot start on %s: its users delete all pods of %s there", p->name, p->node->name,
                d->name);
        for (unsigned i = 0; i < d->n_pods; i++)
                if (d->pods[i].node == p->node)
                        end_pod(&d->pods[i]);
}
