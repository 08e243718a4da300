/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/assignment_facts.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "base/log.h"
#include "base/stderr.h"
#include "model/daemon_report.h"
#include "rules/rules.h"

struct work {
        const struct assignment_source *s;
        struct arena *a;
        struct assignment_facts *out;
        char standing_uid[37]; /* of the standing domain, even if there is none */
        const char *standing;  /* the same; NULL: there is no standing domain */
        struct assignment_node *nodes;
        struct assignment_domain *domains;
        size_t n_domains;
};

static bool assignment_facts_is_set(const char *s) {
        return s && *s;
}

/* ---- the daemons of a node ---- */

struct daemons {
        struct work *w;
        struct assignment_node *n;
        const struct daemon_pod *newest, *reported; /* of all daemons; of those with a report */
        int64_t *left;                              /* left epochs of the other daemons */
        size_t n_left;
};

static bool is_newer(const struct daemon_pod *a, const struct daemon_pod *b) {
        const struct kube_meta *x = &a->pod.o.meta, *y = b ? &b->pod.o.meta : NULL;
        return !y || x->created > y->created || (x->created == y->created && strcmp(x->name, y->name) > 0);
}

static void assignment_facts_add_left(struct daemons *d, const int64_t *left, size_t n) {
        int64_t *all;
        if (!n)
                return;
        all = arena_alloc(d->w->a, (d->n_left + n) * sizeof *all);
        if (d->n_left)
                memcpy(all, d->left, d->n_left * sizeof *all);
        memcpy(all + d->n_left, left, n * sizeof *all);
        d->left = all;
        d->n_left += n;
}

static void take_report(struct daemons *d, const struct daemon_pod *p, const struct daemon_report *r) {
        struct assignment_report *x = &d->n->report;
        bool here = r->has_assignment && streq(r->assignment.clique_id, d->w->s->clique);
        if (d->w->s->stale && d->w->s->fresh_pod_per_domain && !r->served)
                d->w->out->pause = true; /* the present report shows whether the Pod is fresh */
        if (d->reported)
                assignment_facts_add_left(d, x->left, x->n_left);
        d->reported = p;
        *x = (struct assignment_report){ .pod_uid = p->pod.o.meta.uid,
                                         .claim = r->claim,
                                         .boot_id = r->boot_id,
                                         .object = r->fabric,
                                         .left = r->left,
                                         .n_left = r->n_left,
                                         .seen = r->seen,
                                         .recount = r->recount,
                                         .ready = here && r->ready && !pod_ended(&p->pod),
                                         .served = r->served || d->w->s->stale };
        if (here) {
                x->domain = arena_strdup(d->w->a, r->assignment.domain_uid);
                x->index = r->assignment.index;
                x->epoch = r->assignment.epoch;
        }
        /* The daemon must leave another partition first. */
        d->n->ending = r->has_assignment && !here;
        /* After the Pod has ended, another Pod may get its address. */
        d->n->ip = p->pod.n_ips && !pod_ended(&p->pod) ? p->pod.ips[0].ip : "";
}

static void assignment_facts_add_daemon(void *v, const struct daemon_pod *p) {
        struct daemons *d = v;
        struct daemon_report r;
        struct err e;
        d->n->expected = d->n->expected || !pod_ended(&p->pod);
        if (is_newer(p, d->newest))
                d->newest = p;
        if (!p->report)
                return;
        if (daemon_report_decode(str_from(p->report), d->w->a, &r, &e) < 0)
                log_warn("the report of a daemon is not readable, so its node may run any IMEX domain",
                         kv_str("pod", p->pod.o.meta.name), kv_err(&e));
        else if (is_newer(p, d->reported))
                take_report(d, p, &r);
        else
                assignment_facts_add_left(d, r.left, r.n_left);
}

static bool is_member(const struct compute_domain_fabric *f, const char *node) {
        return f && has_string((const char *const *)f->members, f->n_members, node);
}

static bool assignment_facts_is_listed(const struct compute_domain_fabric *f, const char *node) {
        for (size_t i = 0; f && i < f->n_domains; i++)
                for (size_t j = 0; j < f->domains[i].n_assignments; j++)
                        if (streq(f->domains[i].assignments[j].node, node))
                                return true;
        return false;
}

/* How far the daemon's report counts. Any process on the node may have the daemon's token, so the node's
 * ResourceSlice has to confirm the partition. A node that comes into another partition while its pods run
 * keeps its assignment in this partition until they end: then the fabric object confirms it. There is no
 * slice while the plugin does not run, and after a restore of etcd. Then the fabric object confirms the
 * partition, or the annotation that the controller wrote on the Node. */
static enum assignment_trust trust_of(const struct work *w, const char *name, const struct node *node) {
        const char *slice = w->s->slice(w->s->u, name);
        if (slice && streq(slice, w->s->clique))
                return ASSIGNMENT_TRUST_FULL;
        if (assignment_facts_is_listed(w->s->object, name) ||
            (!slice && (is_member(w->s->object, name) || (node && streq(node->clique_id, w->s->clique)))))
                return ASSIGNMENT_TRUST_RESERVE;
        return ASSIGNMENT_TRUST_NONE;
}

/* Its daemon watches the fabric object of another partition. It does this only after it has left this
 * partition. */
static bool has_moved(const struct work *w, const char *name, const struct assignment_report *r) {
        const char *slice = w->s->slice(w->s->u, name);
        return assignment_facts_is_set(slice) && !streq(slice, w->s->clique) && r->pod_uid && !r->domain &&
               assignment_facts_is_set(r->object) && streq(r->object, w->s->fabric(w->s->u, slice));
}

struct plugins {
        const struct plugin_pod *newest;
};

static void add_plugin(void *v, const struct plugin_pod *p) {
        struct plugins *k = v;
        if (p->unprepared && (!k->newest || p->o.meta.created >= k->newest->o.meta.created))
                k->newest = p;
}

/* Epochs and recounts that the daemon has seen in the fabric object of another partition say nothing about
 * this partition. */
static void forget_other_object(const struct work *w, const struct daemon_pod *p,
                                struct assignment_report *r) {
        if (!p || !assignment_facts_is_set(p->pod.clique_id) || streq(p->pod.clique_id, w->s->clique))
                return;
        r->object = NULL;
        r->seen = r->recount = 0;
}

static void collect_daemons(struct work *w, struct assignment_node *n, const struct node *node) {
        struct daemons d = { .w = w, .n = n };
        struct plugins k = { 0 };
        w->s->daemons(w->s->u, n->name, assignment_facts_add_daemon, &d);
        w->s->plugins(w->s->u, n->name, add_plugin, &k);
        n->more_left = d.left;
        n->n_more_left = d.n_left;
        n->trust = trust_of(w, n->name, node);
        n->unprepared = n->trust == ASSIGNMENT_TRUST_FULL && k.newest ? k.newest->unprepared : NULL;
        n->moved = has_moved(w, n->name, &n->report);
        forget_other_object(w, d.reported, &n->report);
        n->remove = w->s->removes(w->s->u, n->name);
        /* A daemon that ends gets no new assignment, because it may end before it has seen it: its Pod is
         * being deleted, or a newer Pod exists, or the DaemonSet no longer selects the node. */
        n->ending = n->ending || (d.reported && (d.reported->pod.o.meta.deleted || d.newest != d.reported)) ||
                    !node || !node->imex_daemon;
        n->expected = n->expected || (node && node->imex_daemon);
}

/* ---- proof that nothing runs ---- */

/* By the cache only. */
static bool seems_dead(const struct work *w, const char *name, const struct node *node) {
        return node ? node_out_of_service(node) : !w->s->stale && w->s->node_missing(w->s->u, name);
}

/* The API server confirms that the node no longer runs that boot, so nothing of it runs. */
static bool is_boot_over(const struct work *w, const char *node, const char *boot_id) {
        return w->s->absent(w->s->u, ASSIGNMENT_ASK_BOOT, node, boot_id);
}

/* The node's boot ID, if the API server confirms that every other boot ID has ended that the object or the
 * report names for this node. Otherwise NULL. */
static const char *confirmed_boot(const struct work *w, const struct assignment_node *n,
                                  const struct node *node) {
        const struct compute_domain_fabric *f = w->s->object;
        const char *now = node ? node_boot_id(node) : "";
        bool all = assignment_facts_is_set(now);
        for (size_t i = 0; f && i < f->n_domains && all; i++)
                for (size_t j = 0; j < f->domains[i].n_assignments && all; j++) {
                        const struct fabric_assignment *x = &f->domains[i].assignments[j];
                        all = !streq(x->node, n->name) || !assignment_facts_is_set(x->boot_id) ||
                              streq(x->boot_id, now) || is_boot_over(w, n->name, x->boot_id);
                }
        /* If etcd was restored, the boot ID of the Node may be an earlier one than that of the report. */
        if (all && n->report.pod_uid && !streq(n->report.boot_id, now))
                all = !w->s->rolled_back && !(f && f->recount) && is_boot_over(w, n->name, n->report.boot_id);
        return all ? now : NULL;
}

/* Its daemon has not reported since the node rebooted, or the cache does not show the reboot yet. */
static bool reports_other_boot(const struct assignment_node *n, const struct node *node) {
        const char *now = node ? node_boot_id(node) : "";
        return !n->boot_id && assignment_facts_is_set(now) && n->report.pod_uid &&
               !streq(n->report.boot_id, now);
}

/* ---- which IMEX domain a node is wanted in ---- */

struct wanting {
        const struct work *w;
        const char *current; /* the IMEX domain that it is in, as far as is known */
        struct allocation *list;
        size_t n;
        bool any; /* the node has a claim, of any ComputeDomain */
};

static void count_allocation(void *v, const struct allocation *x) {
        struct wanting *g = v;
        (void)x;
        g->n++;
}

static void add_allocation(void *v, const struct allocation *x) {
        struct wanting *g = v;
        const struct assignment_source *s = g->w->s;
        const struct compute_domain *cd = s->domain(s->u, x->domain_uid);
        g->any = true;
        /* A claim in another namespace than its ComputeDomain does not count. */
        if (cd && streq(cd->o.meta.ns, x->ns) && s->takes(s->u, cd, g->current))
                g->list[g->n++] = *x;
}

static void find_allocations(struct wanting *g, const char *node) {
        const struct assignment_source *s = g->w->s;
        s->allocations(s->u, node, count_allocation, g);
        g->list = arena_alloc(g->w->a, (g->n + 1) * sizeof *g->list);
        g->n = 0;
        s->allocations(s->u, node, add_allocation, g);
}

/* The owner of the IMEX domain that lists the node. One that the node need not leave comes before one that it
 * must leave. */
static const char *listed_in(const struct work *w, const char *node) {
        const struct compute_domain_fabric *f = w->s->object;
        const char *leaving = NULL;
        for (size_t i = 0; f && i < f->n_domains; i++) {
                const struct fabric_assignment *x = fabric_assignment_of(&f->domains[i], node);
                if (x && !fabric_is_leaving(x))
                        return f->domains[i].owner.uid;
                if (x)
                        leaving = f->domains[i].owner.uid;
        }
        return leaving;
}

/* Does the node belong in the standing domain? It does from its first assignment until it is cordoned, and
 * longer while it has claims with channels. A node without a ResourceSlice stays as it is. */
static bool is_standing(const struct work *w, const char *name, const struct node *node, bool is_in,
                        bool used) {
        const char *slice = w->s->slice(w->s->u, name);
        if (!w->standing || !node || (slice ? !streq(slice, w->s->clique) : !is_in))
                return false;
        return !node->unschedulable || used;
}

/* The API server confirms that no claim for the IMEX domain is on the node. For the standing domain, nobody
 * needs to ask the API server. The controller knows that a node is cordoned, or that there is no standing
 * domain any more, and a later claim brings the node back. */
static bool assignment_facts_is_released(struct work *w, const char *uid, const char *node) {
        const struct assignment_source *s = w->s;
        if (streq(uid, w->standing_uid))
                return s->node(s->u, node) && (!s->is_standing || s->slice(s->u, node));
        if (s->stale) {
                w->out->pause = true;
                return false;
        }
        return s->absent(s->u, ASSIGNMENT_ASK_CLAIM, uid, node);
}

/* The node's slice names another partition, so its claims count there. Assignments that it may still run here
 * are listed as Leaving until there is proof. */
static bool is_of_another_partition(const struct work *w, const char *node) {
        const char *slice = w->s->slice(w->s->u, node);
        return assignment_facts_is_set(slice) && !streq(slice, w->s->clique);
}

static void collect_wanted(struct work *w, struct assignment_node *n, const struct node *node) {
        const char *listed = listed_in(w, n->name);
        if (is_of_another_partition(w, n->name)) {
                n->released = listed != NULL;
                return;
        }
        struct wanting g = { .w = w, .current = listed ? listed : n->report.domain };
        find_allocations(&g, n->name);
        n->wanted = rules_label(g.current, g.list, g.n);
        /* An assignment in the IMEX domain of a ComputeDomain, from before the isolation was changed, ends
         * first. */
        if (!n->wanted && is_standing(w, n->name, node, streq(g.current, w->standing), g.any) &&
            (!listed || streq(listed, w->standing) || assignment_facts_is_released(w, listed, n->name)))
                n->wanted = w->standing;
        n->released = !n->wanted && listed && assignment_facts_is_released(w, listed, n->name);
}

static void collect_node(struct work *w, struct assignment_node *n) {
        const struct node *node = w->s->node(w->s->u, n->name);
        n->ip = "";
        collect_daemons(w, n, node);
        n->boot_id = confirmed_boot(w, n, node);
        bool dead = seems_dead(w, n->name, node);
        n->dead = dead && w->s->absent(w->s->u, ASSIGNMENT_ASK_NODE, n->name, NULL);
        n->doubtful = (dead && !n->dead) || reports_other_boot(n, node);
        collect_wanted(w, n, node);
}

/* ---- the IMEX domains ---- */

static void assignment_facts_add_domain(struct work *w, const char *uid, const struct fabric_domain *old) {
        const struct assignment_source *s = w->s;
        const struct compute_domain *cd = s->domain(s->u, uid);
        struct assignment_domain *d = &w->domains[w->n_domains];
        for (size_t i = 0; i < w->n_domains; i++)
                if (streq(w->domains[i].owner.uid, uid))
                        return;
        *d = (struct assignment_domain){ .owner = { .kind = CD_KIND, .uid = uid }, .imex.slots = s->slots };
        if (streq(uid, w->standing_uid) || (old && fabric_domain_is_standing(old))) {
                d->owner = (struct fabric_owner){ .kind = CD_FABRIC_KIND, .name = s->clique, .uid = uid };
                d->is_standing = true;
        } else if (cd) {
                d->owner.ns = cd->o.meta.ns;
                d->owner.name = cd->o.meta.name;
                d->ending = domain_ends(cd);
        } else {
                if (old)
                        d->owner = old->owner;
                w->out->pause = w->out->pause || s->stale;
                d->gone = !s->stale && s->absent(s->u, ASSIGNMENT_ASK_DOMAIN, uid, NULL);
        }
        d->idle = old && !old->n_assignments && s->idle(s->u, old);
        w->n_domains++;
}

static void find_domains(struct work *w) {
        const struct compute_domain_fabric *f = w->s->object;
        size_t n_old = f ? f->n_domains : 0;
        w->domains = arena_alloc(w->a, (n_old + 2 * w->s->n_names + 1) * sizeof *w->domains);
        for (size_t i = 0; i < n_old; i++)
                assignment_facts_add_domain(w, f->domains[i].owner.uid, &f->domains[i]);
        for (size_t i = 0; i < w->s->n_names; i++) {
                if (w->nodes[i].wanted)
                        assignment_facts_add_domain(w, w->nodes[i].wanted, NULL);
                if (w->nodes[i].report.domain)
                        assignment_facts_add_domain(w, w->nodes[i].report.domain, NULL);
        }
}

/* The entries of a copy of another object do not count. */
static bool is_copy(const struct compute_domain_fabric *f) {
        return f->table_of && !streq(f->table_of, f->o.meta.uid);
}

void assignment_facts_make(const struct assignment_source *s, struct arena *a, struct assignment_facts *ret) {
        BUG_ON(!s->clique || !*s->clique);
        for (size_t i = 1; i < s->n_names; i++)
                BUG_ON(strcmp(s->names[i - 1], s->names[i]) >= 0);
        struct work w = { .s = s, .a = a, .out = ret };
        const struct compute_domain_fabric *f = s->object;
        *ret = (struct assignment_facts){ 0 };
        fabric_standing_uid(s->clique, w.standing_uid);
        w.standing = s->is_standing ? arena_strdup(a, w.standing_uid) : NULL;
        w.nodes = arena_alloc(a, (s->n_names + 1) * sizeof *w.nodes);
        for (size_t i = 0; i < s->n_names; i++) {
                w.nodes[i] = (struct assignment_node){ .name = s->names[i] };
                collect_node(&w, &w.nodes[i]);
        }
        find_domains(&w);
        ret->input = (struct assignment_input){ .nodes = w.nodes,
                                                .n_nodes = s->n_names,
                                                .domains = w.domains,
                                                .n_domains = w.n_domains,
                                                .slots = s->slots,
                                                .fresh_pod_per_domain = s->fresh_pod_per_domain,
                                                .rolled_back = s->rolled_back,
                                                .settling = s->settling,
                                                .vanished = s->vanished };
        if (!f)
                return;
        ret->input.old = f->domains;
        ret->input.n_old = f->n_domains;
        ret->input.removals = f->removals;
        ret->input.n_removals = f->n_removals;
        ret->input.epoch = f->epoch;
        ret->input.recount = f->recount;
        ret->input.object = f->o.meta.uid;
        ret->input.copy = is_copy(f);
}
