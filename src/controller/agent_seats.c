/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/agent_seats.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/clock.h"
#include "base/log.h"
#include "imex/imex_files.h"
#include "model/agent_seat.h"
#include "rules/message.h"
#include "rules/rules.h"

enum {
        INFIX_SIZE = 11,
        LOOK_AGAIN_S = 1,
};

struct work {
        struct controller *c;
        const struct compute_domain_fabric *old;
        const char *clique, *key;
        struct arena *a;
        struct agent_seats *out;
        int64_t now;
        const char **names; /* of the nodes, not from the arena */
        size_t n_names, cap;
        struct rosters_node *nodes;
        size_t n_nodes;
        struct rosters_domain *domains;
        size_t n_domains;
        const char *standing;       /* UID of the domain that stands there, if one does */
        struct message_list silent; /* nodes whose agents have not said that they see this object */
        bool signs;                 /* that the object may not know all places */
};

bool agent_seats_list(const struct compute_domain_fabric *f, const char *node) {
        bool leaving;
        for (size_t i = 0; node && i < f->n_domains; i++)
                if (fabric_seat_of(&f->domains[i], node, &leaving))
                        return true;
        return false;
}

bool agent_seats_list_at(const struct controller *c, const char *clique, const char *node) {
        const struct compute_domain_fabric *f = records_fabric(c, clique);
        return f && agent_seats_list(f, node);
}

static void note_use(void *u, const struct grant *x) {
        *(bool *)u = true;
}

bool agent_seats_in_use(const struct controller *c, const struct agent_pod *p) {
        const char *node = p->pod.node;
        bool claimed = false;
        if (!p->seen && (streq(p->pod.phase, "Pending") || rules_is_down(&p->pod)))
                return false;
        if (!p->seen && node)
                placements_on_node(c->placements, node, note_use, &claimed);
        return p->seat || p->held || claimed || agent_seats_list_at(c, p->pod.clique_id, node);
}

/* ---- which nodes ---- */

static void add_name(struct work *w, const char *name) {
        if (!name || !*name)
                return;
        GROW(w->names, w->n_names, w->cap);
        w->names[w->n_names++] = name;
}

static bool add_stating(void *u, const struct kube_object *o) {
        add_name(u, ((const struct slice *)o)->node);
        return true;
}

/* Which fabric it is in an agent states itself, and its token may be in the hands of anybody on its node. So
 * it counts only where its node's slice confirms that; while there is no slice, where the object does, or the
 * label of the Node, which is ours. (What the object lists is looked at anyway.) */
static bool add_reporting(void *u, const struct kube_object *o) {
        struct work *w = u;
        const char *name = ((const struct agent_pod *)o)->pod.node;
        const struct compute_domain_fabric *f = w->old;
        const struct node *n = name ? records_node(w->c, name) : NULL;
        if (!n || records_node_clique(w->c, name))
                return true;
        if ((f && has_string((const char *const *)f->members, f->n_members, name)) ||
            (n->gpu_clique_ours && streq(n->gpu_clique, w->clique)))
                add_name(w, name);
        return true;
}

static int by_text(const void *x, const void *y) {
        return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void find_nodes(struct work *w) {
        const struct compute_domain_fabric *f = w->old;
        size_t n = 0;
        kube_informer_each_at(w->c->slices, CONTROLLER_SLICES_BY_CLIQUE, w->clique, add_stating, w);
        kube_informer_each_at(w->c->agents, CONTROLLER_AGENTS_BY_CLIQUE, w->clique, add_reporting, w);
        for (size_t i = 0; f && i < f->n_domains; i++) {
                for (size_t k = 0; k < f->domains[i].n_seats; k++)
                        add_name(w, f->domains[i].seats[k].node);
                for (size_t k = 0; k < f->domains[i].n_leaving; k++)
                        add_name(w, f->domains[i].leaving[k].node);
        }
        if (w->n_names)
                qsort(w->names, w->n_names, sizeof *w->names, by_text);
        for (size_t i = 0; i < w->n_names; i++)
                if (!n || !streq(w->names[n - 1], w->names[i]))
                        w->names[n++] = w->names[i];
        w->n_names = n;
}

/* ---- one node ---- */

/* The server itself says that no agent's Pod is there. Where the node has no place nobody needs to know. */
static bool has_no_agent(struct work *w, const char *node) {
        return !w->old || !agent_seats_list(w->old, node) ||
               confirm_absent(w->c->confirm, CONFIRM_AGENT, w->c->config->ns, node, w->key);
}

/* Nothing of ours runs there. What a cache does not show may be there all the same. */
static bool is_quiet(struct work *w, const char *name, const struct agent_pod *agent) {
        const struct node *node = records_node(w->c, name);
        if (node)
                return node_out_of_service(node) || (!agent && !w->out->stale && has_no_agent(w, name));
        return gone_for(w->c->gone, name, FORMATION_NODE_GONE_S, w->now, &w->out->recheck_s) &&
               !w->out->stale;
}

/* Its agent serves another fabric, whose object it sees, and has no place in this one: it began there after
 * its IMEX here had ended, and says nothing about this object any more. */
static bool is_elsewhere(const struct work *w, const struct agent_pod *agent) {
        const struct compute_domain_fabric *other = records_fabric(w->c, agent->pod.clique_id);
        struct agent_seat s;
        if (streq(agent->pod.clique_id, w->clique) || !other || !streq(agent->fabric, other->o.meta.uid))
                return false;
        return !agent->seat || !*agent->seat ||
               (agent_seat_parse(agent->seat, &s) && !streq(s.clique_id, w->clique));
}

static void read_report(struct work *w, const struct agent_pod *p, struct rosters_report *ret) {
        struct agent_seat s;
        int64_t *left;
        if (p->seat && agent_seat_parse(p->seat, &s) && streq(s.clique_id, w->clique)) {
                ret->domain = arena_strdup(w->a, s.domain_uid);
                ret->infix = p->seat_infix;
                ret->index = s.index;
                ret->epoch = s.epoch;
        } else if (p->seat && !agent_seat_parse(p->seat, &s)) {
                log_warn("what an IMEX agent reports of its place cannot be read",
                         kv_str("pod", p->pod.o.meta.name));
        }
        ret->n_left = agent_epochs_parse(p->left, w->a, &left);
        ret->left = left;
        if (!str_to_i64(str_from(str_or(p->seen, "")), &ret->seen))
                ret->seen = 0;
}

/* The claims that bring a node into domains with agents. */
struct wanting {
        const struct work *w;
        const char *current; /* the domain that it is in, as far as anybody knows */
        struct grant *list;
        size_t n, cap;
};

static void add_wanting(void *u, const struct grant *x) {
        struct wanting *g = u;
        const struct controller *c = g->w->c;
        const struct compute_domain *cd = records_domain(c, x->domain_uid);
        if (!cd || !domain_takes(cd, g->current) || !streq(cd->o.meta.ns, x->ns) ||
            !records_has_agents(c, cd))
                return;
        /* One that was formed in another mode than ours gets no new nodes. */
        if (records_other_mode(c, cd) && !streq(g->current, x->domain_uid))
                return;
        GROW(g->list, g->n, g->cap);
        g->list[g->n++] = *x;
}

static const char *listed_in(const struct work *w, const char *node) {
        bool leaving;
        for (size_t i = 0; w->old && i < w->old->n_domains; i++)
                if (fabric_seat_of(&w->old->domains[i], node, &leaving) && !leaving)
                        return w->old->domains[i].owner.uid;
        return NULL;
}

/* Is the node to be in the domain that stands: from its join to its cordon, and longer while claims of
 * channels are there. Which fabric a node is in that says nothing of it is as it was. */
static bool is_standing(const struct work *w, const char *name, const struct node *node, bool is_in) {
        const char *clique = records_node_clique(w->c, name);
        bool used = false;
        if (!mode_is_standing(w->c->mode) || !node || (clique ? !streq(clique, w->clique) : !is_in))
                return false;
        if (node->unschedulable)
                placements_on_node(w->c->placements, name, note_use, &used);
        return !node->unschedulable || used;
}

/* The server itself says that no claim of the domain is on the node. Of the domain that stands nobody needs
 * to ask: that a node is cordoned, is of another fabric, or is to be in none, is said and not merely not
 * seen; and a claim that comes meanwhile brings it back, or a new place, while the node ends no IMEX that it
 * uses. */
static bool is_released(struct work *w, const char *uid, const char *node) {
        const struct compute_domain *cd = records_domain(w->c, uid);
        _cleanup_(buf_done) struct buf claim = BUF_INIT(1024);
        bool stands = streq(uid, w->standing);
        if (!stands && !cd) /* that it is gone is asked for the whole domain */
                return false;
        if (w->out->stale) {
                w->out->hold = true;
                return false;
        }
        if (stands)
                return records_node(w->c, node) &&
                       (records_node_clique(w->c, node) || !mode_is_standing(w->c->mode));
        confirm_on_node(uid, node, &claim);
        return confirm_absent(w->c->confirm, CONFIRM_CLAIM, cd->o.meta.ns, buf_str(&claim), w->key);
}

static void note_report(struct work *w, const char *node, const struct agent_pod *p) {
        const char *uid = w->old ? w->old->o.meta.uid : NULL;
        if (streq(p->fabric, uid))
                return;
        w->signs = w->signs || (uid && p->fabric && *p->fabric);
        message_add(&w->silent, "%s", node);
}

/* It would take a place with it that it has not taken yet: its Pod is being deleted, or its Node has not the
 * label for which it is there, so that the DaemonSet's controller deletes it. */
static bool is_ending(struct work *w, const struct agent_pod *p, const struct node *n) {
        const struct kube_meta *m = &p->pod.o.meta;
        _cleanup_(buf_done) struct buf key = BUF_INIT(512);
        if (m->deleted || !n || !n->imex_agent)
                return true;
        buf_addf(&key, "n/%s", n->o.meta.name);
        if (!writes_sending(w->c->writes, RECORDS_AGENTS, &kube_pods, m->ns, m->name) &&
            !writes_sending(w->c->writes, buf_str(&key), &kube_nodes, NULL, n->o.meta.name))
                return false;
        if (!w->out->recheck_s || LOOK_AGAIN_S < w->out->recheck_s)
                w->out->recheck_s = LOOK_AGAIN_S;
        return true;
}

static void look_at_node(struct work *w, const char *name) {
        const struct agent_pod *agent = records_agent(w->c, name);
        const struct node *node = records_node(w->c, name);
        const char *listed = listed_in(w, name);
        struct rosters_node *n = &w->nodes[w->n_nodes++];
        struct wanting g = { .w = w };
        *n = (struct rosters_node){ .name = name, .ip = "", .boot_id = node ? node_boot_id(node) : "" };
        n->quiet = is_quiet(w, name, agent) || (agent && is_elsewhere(w, agent));
        if (agent && agent->pod.n_ips)
                n->ip = agent->pod.ips[0].ip;
        if (agent)
                read_report(w, agent, &n->report);
        g.current = listed ? listed : n->report.domain;
        placements_on_node(w->c->placements, name, add_wanting, &g);
        n->wanted = rules_label(g.current, g.list, g.n);
        free(g.list);
        /* A place in a ComputeDomain's own, of before the mode changed, goes first. */
        if (!n->wanted && is_standing(w, name, node, streq(g.current, w->standing)) &&
            (!listed || streq(listed, w->standing) || is_released(w, listed, name)))
                n->wanted = w->standing;
        n->released = !n->wanted && listed && is_released(w, listed, name);
        n->ending = agent && is_ending(w, agent, node);
        /* Of an agent that has not said anything yet nobody knows what it holds. */
        if (n->wanted && !streq(n->wanted, g.current) && (!agent || !agent->seen || n->ending))
                n->wanted = NULL;
        if (agent && !n->quiet)
                note_report(w, name, agent);
}

/* ---- the domains ---- */

static int by_uid(const void *x, const void *y) {
        return strcmp(((const struct rosters_domain *)x)->owner.uid,
                      ((const struct rosters_domain *)y)->owner.uid);
}

static const char *infix_of(const struct work *w, const char *uid) {
        char *infix = arena_alloc(w->a, INFIX_SIZE);
        imex_infix(uid, infix);
        return infix;
}

static void key_of(const char *clique, const char *uid, struct buf *ret) {
        buf_addf(ret, "%s/%s", clique, uid);
}

void agent_seats_forget(struct controller *c, const char *clique, const char *uid) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(512);
        key_of(clique, uid, &key);
        gone_is_back(c->empty, buf_str(&key));
}

static bool is_idle(struct work *w, const struct fabric_domain *d) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(512);
        if (d->n_seats || d->n_leaving) {
                agent_seats_forget(w->c, w->clique, d->owner.uid);
                return false;
        }
        key_of(w->clique, d->owner.uid, &key);
        return gone_for(w->c->empty, buf_str(&key), ROSTERS_IDLE_S, w->now, &w->out->recheck_s) &&
               !w->out->stale;
}

static void add_domain(struct work *w, const char *uid, const struct fabric_domain *old) {
        const struct compute_domain *cd = records_domain(w->c, uid);
        struct rosters_domain *d = &w->domains[w->n_domains];
        for (size_t i = 0; i < w->n_domains; i++)
                if (streq(w->domains[i].owner.uid, uid))
                        return;
        *d = (struct rosters_domain){ .owner = { .kind = CD_KIND, .uid = uid }, .infix = infix_of(w, uid) };
        if (streq(uid, w->standing)) {
                d->owner = (struct fabric_owner){ .kind = CD_FABRIC_KIND, .name = w->clique, .uid = uid };
                d->stands = true;
        } else if (cd) {
                d->owner.ns = cd->o.meta.ns;
                d->owner.name = cd->o.meta.name;
                d->ending = domain_ends(cd);
        } else {
                if (old)
                        d->owner = old->owner;
                if (w->out->stale)
                        w->out->hold = true;
                else
                        d->gone = confirm_absent(w->c->confirm, CONFIRM_DOMAIN, NULL, uid, w->key);
        }
        d->idle = old && is_idle(w, old);
        w->n_domains++;
}

static void find_domains(struct work *w) {
        size_t n_old = w->old ? w->old->n_domains : 0;
        w->domains = arena_alloc(w->a, (n_old + 2 * w->n_nodes + 1) * sizeof *w->domains);
        for (size_t i = 0; i < n_old; i++)
                add_domain(w, w->old->domains[i].owner.uid, &w->old->domains[i]);
        for (size_t i = 0; i < w->n_nodes; i++) {
                if (w->nodes[i].wanted)
                        add_domain(w, w->nodes[i].wanted, NULL);
                if (w->nodes[i].report.domain && !w->nodes[i].quiet)
                        add_domain(w, w->nodes[i].report.domain, NULL);
        }
        if (w->n_domains)
                qsort(w->domains, w->n_domains, sizeof *w->domains, by_uid);
}

/* ---- an object that may not know all places ---- */

/* It is a copy of another one; an agent sees another one, or has seen a later epoch than it has; or it is new
 * and there has been one, because an agent has a place already. Then who has not reported may have any. */
static bool is_lost(struct work *w) {
        const struct compute_domain_fabric *f = w->old;
        bool copy = f && f->table_of && !streq(f->table_of, f->o.meta.uid);
        w->signs =
                w->signs || copy || (f && condition_true(f->conditions, f->n_conditions, FABRIC_TABLE_LOST));
        for (size_t i = 0; i < w->n_nodes; i++) {
                const struct rosters_report *r = &w->nodes[i].report;
                bool begins = (!f || !f->table_of) && r->domain && !w->nodes[i].quiet;
                bool ahead = f && (r->seen > f->epoch || (r->domain && r->epoch > f->epoch));
                w->signs = w->signs || begins || ahead;
        }
        const char *silent = message_end(&w->silent, w->a);
        if (!w->signs || (!*silent && !w->out->untold_s))
                return false;
        if (w->out->untold_s && (!w->out->recheck_s || w->out->untold_s < w->out->recheck_s))
                w->out->recheck_s = w->out->untold_s;
        w->out->lost =
                message_of(w->a,
                           "The object may have been lost or restored, so no node gets a new place in "
                           "an IMEX domain until the IMEX agent of each Node has reported which it "
                           "has. Still to report: %s. See to the agent's Pod there; delete a Node "
                           "that is off for good, or taint it node.kubernetes.io/out-of-service",
                           *silent ? silent : "what may still run of Nodes that are gone, for a minute");
        return true;
}

/* ---- the domain that stands ---- */

static const char *tell_full(const struct work *w, const struct rosters *r) {
        struct message_list names = { 0 };
        if (!r->n_full)
                return NULL;
        for (size_t i = 0; i < r->n_full; i++)
                message_add(&names, "%s", r->full[i]);
        return message_of(
                w->a,
                "The IMEX domain of this fabric has room for %lld nodes, which was written with its "
                "first node and holds until the last one has left it, and these get no place: %s. "
                "Set imex.maxNodesPerDomain to the number of nodes, then cordon all of them, wait "
                "until their pods with channels have ended, and uncordon them",
                (long long)r->slots, message_end(&names, w->a));
}

void agent_seats_make(struct controller *c, const struct compute_domain_fabric *old, const char *clique,
                      const char *key, struct arena *a, struct agent_seats *ret) {
        struct work w = {
                .c = c, .old = old, .clique = clique, .key = key, .a = a, .out = ret, .now = clock_wall_s()
        };
        char standing[37];
        fabric_standing_uid(clique, standing);
        w.standing = arena_strdup(a, standing);
        find_nodes(&w);
        w.nodes = arena_alloc(a, (w.n_names + 1) * sizeof *w.nodes);
        for (size_t i = 0; i < w.n_names; i++)
                look_at_node(&w, w.names[i]);
        find_domains(&w);
        bool lost = is_lost(&w);
        rosters_make(&(struct rosters_input){ .old = old ? old->domains : NULL,
                                              .n_old = old ? old->n_domains : 0,
                                              .epoch = old ? old->epoch : 0,
                                              .nodes = w.nodes,
                                              .n_nodes = w.n_nodes,
                                              .domains = w.domains,
                                              .n_domains = w.n_domains,
                                              .slots = c->config->max_nodes,
                                              /* The object comes first. */
                                              .lost = lost || !old },
                     a, &ret->rosters);
        ret->full = tell_full(&w, &ret->rosters);
        free(w.names);
}
