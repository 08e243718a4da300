/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/stderr.h"
#include "rules/message.h"
#include "rules/start_gate.h"

enum { NAMED_AT_MOST = 5 };

static bool verdict_is_true(const struct cd_condition *c) {
        return condition_status_decode(c->status) == STATUS_TRUE;
}

static bool verdict_node_ready(const struct domain_node *n) {
        return domain_status_decode(n->status) == DOMAIN_READY;
}

/* The nodes that the object lists, sorted by name, because ComputeDomains may have thousands of nodes. */
struct listed {
        const struct domain_node **list;
        size_t n;
};

static int verdict_by_name(const void *x, const void *y) {
        return strcmp((*(const struct domain_node *const *)x)->node,
                      (*(const struct domain_node *const *)y)->node);
}

static struct listed sort_listed(const struct domain_node *nodes, size_t n, struct arena *a) {
        struct listed l = { arena_alloc(a, n * sizeof *l.list), n };
        for (size_t i = 0; i < n; i++)
                l.list[i] = &nodes[i];
        qsort(l.list, n, sizeof(const struct domain_node *), verdict_by_name);
        return l;
}

static const struct domain_node *node_at(const struct listed *l, const char *name) {
        const struct domain_node wanted = { .node = name }, *key = &wanted;
        const struct domain_node *const *found =
                bsearch(&key, l->list, l->n, sizeof(const struct domain_node *), verdict_by_name);
        return found ? *found : NULL;
}

/* The same for names in sorted order: *at is where the search continues. */
static const struct domain_node *next_node_at(const struct listed *l, const char *name, size_t *at) {
        int order = -1;
        while (*at < l->n && (order = strcmp(l->list[*at]->node, name)) < 0)
                ++*at;
        return order ? NULL : l->list[*at];
}

static const struct cd_condition *condition_at(const struct compute_domain *cd, const char *type) {
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (streq(cd->conditions[i].type, type))
                        return &cd->conditions[i];
        return NULL;
}

/* Nodes with the same problem: "node-1: why; node-2: why; and 3 more". */
struct names {
        struct buf text;
        size_t n;
};

static void verdict_add_name(struct names *w, const char *node, const char *what) {
        if (w->n++ < NAMED_AT_MOST)
                buf_addf(&w->text, "%s%s: %s", w->text.n ? "; " : "", node, what);
}

static const char *end_names(struct names *w, struct arena *a) {
        if (w->n > NAMED_AT_MOST)
                buf_addf(&w->text, "; and %zu more", w->n - NAMED_AT_MOST);
        const char *s = arena_strdup(a, buf_str(&w->text));
        buf_done(&w->text);
        return s;
}

/* All members in the state `why`. */
static const char *name_them(const struct membership *all, enum member_why why, struct arena *a) {
        struct names w = { BUF_INIT(8192), 0 };
        for (size_t i = 0; i < all->n_members; i++) {
                const struct member *m = &all->members[i];
                if (m->why == why)
                        verdict_add_name(&w, m->entry.node, m->message);
        }
        return end_names(&w, a);
}

static bool any(const struct membership *all, enum member_why why) {
        for (size_t i = 0; i < all->n_members; i++)
                if (all->members[i].why == why)
                        return true;
        return false;
}

static size_t count_staying(const struct membership *all) {
        size_t n = 0;
        for (size_t i = 0; i < all->n_members; i++)
                n += all->members[i].why != MEMBER_LEAVING;
        return n;
}

/* A lost node is often the reason why another one fails or gets no index, so both are named. */
static const char *name_lost(const struct membership *all, struct arena *a) {
        const char *lost = name_them(all, MEMBER_LOST, a);
        return any(all, MEMBER_FAILING) ? message_of(a, "%s; %s", lost, name_them(all, MEMBER_FAILING, a))
                                        : lost;
}

static void condition_ready(const struct compute_domain *cd, const struct membership *all,
                            const struct verdict_problem *problem, struct arena *a, struct verdict *v) {
        static const struct {
                enum member_why why;
                const char *reason;
        } bad[] = { { MEMBER_FULL, REASON_DOMAIN_FULL },
                    { MEMBER_OCCUPIED, REASON_NODE_OCCUPIED },
                    { MEMBER_LOST, REASON_NODE_LOST },
                    { MEMBER_FAILING, REASON_NODE_FAILING } };
        struct cd_condition *c = &v->conditions[0];
        *c = (struct cd_condition){ .type = CONDITION_READY, .status = condition_status_name(STATUS_FALSE) };
        if (problem->reason) {
                c->reason = problem->reason;
                c->message = problem->message;
                v->warns = true;
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                if (any(all, bad[i].why)) {
                        c->reason = bad[i].reason;
                        c->message = bad[i].why == MEMBER_LOST ? name_lost(all, a)
                                     : any(all, MEMBER_LOST)
                                             ? message_of(a, "%s; %s", name_them(all, bad[i].why, a),
                                                          name_lost(all, a))
                                             : name_them(all, bad[i].why, a);
                        v->warns = true;
                        return;
                }
        if (any(all, MEMBER_STARTING)) {
                c->reason = REASON_NODES_NOT_READY;
                c->message = message_of(
                        a, "%lld of %zu nodes are ready. %s%s", (long long)v->nodes_ready, count_staying(all),
                        name_them(all, MEMBER_STARTING, a),
                        all->no_daemon ? ". If no daemon Pod is created: kubectl describe daemonset -A "
                                         "-l " CD_LABEL_COMPONENT "=" CD_DAEMON_OBJECT
                                       : "");
        } else if ((int64_t)v->n_joined < cd->num_nodes) {
                c->reason = REASON_NODES_MISSING;
                c->message =
                        message_of(a, "%zu %s joined, but spec.numNodes is %lld", v->n_joined,
                                   v->n_joined == 1 ? "node has" : "nodes have", (long long)cd->num_nodes);
        } else if (!v->n_joined) {
                c->status = condition_status_name(STATUS_TRUE);
                c->reason = REASON_NO_NODES;
                c->message = "No pod uses this ComputeDomain yet";
        } else {
                c->status = condition_status_name(STATUS_TRUE);
                c->reason = REASON_ALL_NODES_READY;
                c->message = v->n_joined == 1 ? "The only node is ready"
                                              : message_of(a, "All %zu nodes are ready", v->n_joined);
        }
}

/* The Go driver's daemons serve the ComputeDomain and decide which nodes join. */
static void add_go(const struct membership *all, struct arena *a, struct verdict *v) {
        struct cd_condition *c = &v->conditions[0];
        c->message = message_of(a, "%s. %s", c->message, all->go);
        c->reason = REASON_FORMED_BY_GO_DRIVER;
}

/* The number of connected peers is in the annotation of the daemon's Pod. In the status, each peer that
 * connects would cause a write. */
static void condition_peers(const struct membership *all, struct arena *a, struct verdict *v) {
        struct cd_condition *c = &v->conditions[1];
        struct names missing = { BUF_INIT(8192), 0 };
        size_t n = 0;
        for (size_t i = 0; i < all->n_members; i++) {
                const struct member *m = &all->members[i];
                if (!m->listed || !*m->entry.clique_id)
                        continue;
                const struct member_clique *clique = membership_clique(all, m->entry.clique_id);
                int64_t want = clique ? (int64_t)clique->n_listed - 1 : -1;
                n++;
                if (membership_connected(all, m))
                        continue;
                if (m->why == MEMBER_READY && m->peers_connected >= 0)
                        verdict_add_name(&missing, m->entry.node,
                                         want == 1 ? "not connected to its only peer"
                                                   : message_of(a, "not connected to all of its %lld peers",
                                                                (long long)want));
                else
                        verdict_add_name(&missing, m->entry.node, "not known");
        }
        *c = (struct cd_condition){ .type = CONDITION_PEERS_CONNECTED,
                                    .status = condition_status_name(STATUS_UNKNOWN) };
        v->peers_missing = missing.n;
        const char *missing_text = end_names(&missing, a);
        if (!n) {
                c->reason = REASON_NO_FABRIC_NODES;
                c->message = "No node with an NVLink partition has joined";
        } else if (missing.n) {
                c->status = condition_status_name(STATUS_FALSE);
                c->reason = REASON_PEERS_MISSING;
                c->message = missing_text;
        } else {
                c->status = condition_status_name(STATUS_TRUE);
                c->reason = REASON_ALL_CONNECTED;
                c->message = "All IMEX peers are connected";
        }
}

static bool same_nodes(const struct compute_domain *cd, const struct listed *l, const struct verdict *v) {
        if (!v->has_nodes)
                return true;
        if (cd->n_nodes != v->n_nodes)
                return false;
        for (size_t i = 0, at = 0; i < v->n_nodes; i++) {
                const struct domain_node *now = &v->nodes[i], *was = next_node_at(l, now->node, &at);
                if (!was || !jd_equal(cd_node_fields, was, now))
                        return false;
        }
        return true;
}

static bool verdict_has_condition(const struct verdict *v, const char *type) {
        for (size_t i = 0; i < v->n_conditions; i++)
                if (streq(v->conditions[i].type, type))
                        return true;
        return false;
}

static bool verdict_same_conditions(const struct compute_domain *cd, const struct verdict *v) {
        /* These conditions end by their absence. */
        static const char *const passing[] = { CONDITION_CHANNEL_AVAILABLE, CONDITION_SHARED_CLAIM_AVAILABLE,
                                               CONDITION_START_GATE_OPEN };
        for (size_t i = 0; i < ARRAY_LEN(passing); i++)
                if (condition_at(cd, passing[i]) && !verdict_has_condition(v, passing[i]))
                        return false;
        for (size_t i = 0; i < v->n_conditions; i++) {
                const struct cd_condition *now = &v->conditions[i], *was = condition_at(cd, now->type);
                if (!was || !jd_equal(cd_condition_fields, was, now))
                        return false;
        }
        if (!v->has_nodes)
                return true;
        return cd->nodes_ready == v->nodes_ready && cd->nodes_wanted == v->nodes_wanted &&
               cd->cliques == v->cliques;
}

/* Derives the rest of the verdict from the conditions and the object. */
static void conclude(const struct verdict_input *in, const struct listed *l, struct arena *a,
                     struct verdict *v) {
        BUG_ON(!in->cd || in->now <= 0 || !v->n_conditions || v->n_conditions > ARRAY_LEN(v->conditions));
        const struct compute_domain *cd = in->cd;
        v->status = domain_status_name(verdict_is_true(&v->conditions[0]) ? DOMAIN_READY : DOMAIN_NOT_READY);
        for (size_t i = 0; i < v->n_conditions; i++) {
                struct cd_condition *c = &v->conditions[i];
                const struct cd_condition *was = condition_at(cd, c->type);
                c->message = c->message ? message_of(a, "%s", c->message) : NULL;
                c->observed_generation = cd->o.meta.generation;
                c->last_transition = was && streq(was->status, c->status) && was->last_transition
                                             ? was->last_transition
                                             : in->now;
        }
        v->changed = !streq(cd->status, v->status) || !same_nodes(cd, l, v) ||
                     (in->conditions && !verdict_same_conditions(cd, v));
}

/* Limits the nodes to those that a status may list. Nodes that are already listed stay, so when a node
 * leaves, only its place changes. */
static void cut(const struct listed *l, struct verdict *v) {
        size_t old = 0, room = VERDICT_NODES, kept = 0;
        for (size_t i = 0, at = 0; i < v->n_joined; i++)
                old += next_node_at(l, v->nodes[i].node, &at) != NULL;
        room -= old < room ? old : room;
        for (size_t i = 0, at = 0; i < v->n_joined && kept < VERDICT_NODES; i++) {
                bool was = next_node_at(l, v->nodes[i].node, &at);
                if (!was && !room)
                        continue;
                room -= !was;
                v->nodes[kept++] = v->nodes[i];
        }
        v->n_nodes = kept;
}

/* Replaces the condition by the one in the object, if it has one. */
static void keep_condition(const struct compute_domain *cd, struct cd_condition *c) {
        const struct cd_condition *was = condition_at(cd, c->type);
        if (was && was->status && was->reason && was->message)
                *c = *was;
}

/* Call it after the other conditions. */
static void add_shortage(const struct verdict_input *in, struct verdict *v) {
        BUG_ON(v->n_conditions >= ARRAY_LEN(v->conditions));
        if (in->shortage)
                v->conditions[v->n_conditions++] = *in->shortage;
}

static void add_shared_claim(const struct verdict_input *in, struct verdict *v) {
        BUG_ON(v->n_conditions >= ARRAY_LEN(v->conditions));
        if (in->shared_claim)
                v->conditions[v->n_conditions++] = *in->shared_claim;
}

static void add_gate(const struct compute_domain *cd, const struct membership *all,
                     const struct verdict_hosts *hosts, struct arena *a, struct verdict *v) {
        struct start_gate_nodes nodes;
        if (!domain_is_gated(cd->start_gate))
                return;
        if (all)
                start_gate_of_members(all, a, &nodes);
        else
                start_gate_of_hosts(hosts->list, hosts->n, a, &nodes);
        nodes.used = nodes.used || (hosts && hosts->unknown);
        BUG_ON(v->n_conditions >= ARRAY_LEN(v->conditions));
        start_gate(cd, &nodes, a, &v->conditions[v->n_conditions++]);
}

static const char *admitted(const struct compute_domain *cd, bool of_daemons) {
        if (cd->channel && !cd->channel->template_name)
                return of_daemons ? "Admitted. The condition SharedClaimAvailable shows whether pods can use "
                                    "it. "
                                    "This does not include the state of IMEX, which the daemons run for all "
                                    "ComputeDomains"
                                  : "Admitted. The condition SharedClaimAvailable shows whether pods can use "
                                    "it. "
                                    "This does not include the state of IMEX on the hosts";
        return of_daemons ? "Admitted, and the claim template for its pods exists. This does not "
                            "include the state of IMEX, which the daemons run for all ComputeDomains"
                          : "Admitted, and the claim template for its pods exists. This does not "
                            "include the state of IMEX on the hosts";
}

void verdict_make(const struct verdict_input *in, const struct membership *all, struct arena *a,
                  struct verdict *ret) {
        const struct compute_domain *cd = in->cd;
        struct listed l = sort_listed(cd->nodes, cd->n_nodes, a);
        *ret = (struct verdict){ .nodes = arena_alloc(a, (all->n_members + 1) * sizeof *ret->nodes),
                                 .has_nodes = !all->go || all->n_cliques,
                                 .n_conditions = all->go ? 1 : 2 };
        for (size_t i = 0; i < all->n_members; i++) {
                const struct member *m = &all->members[i];
                bool ready = m->why == MEMBER_READY;
                ret->nodes_wanted += m->wanted;
                if (!m->listed)
                        continue;
                ret->nodes[ret->n_joined++] = m->entry;
                ret->nodes_ready += ready;
        }
        cut(&l, ret);
        ret->cliques = (int64_t)all->n_cliques;
        if (cd->num_nodes > 0)
                ret->nodes_wanted = cd->num_nodes;
        if (ret->nodes_wanted < ret->nodes_ready)
                ret->nodes_wanted = ret->nodes_ready;
        condition_ready(cd, all, &in->problem, a, ret);
        if (!all->go)
                condition_peers(all, a, ret);
        else if (!in->problem.reason)
                add_go(all, a, ret);
        add_shortage(in, ret);
        add_shared_claim(in, ret);
        add_gate(cd, all, NULL, a, ret);
        conclude(in, &l, a, ret);
}

void verdict_make_host(const struct verdict_input *in, const struct verdict_hosts *hosts, struct arena *a,
                       struct verdict *ret) {
        const struct verdict_problem *problem = &in->problem;
        *ret = (struct verdict){ .n_conditions = 2, .warns = problem->reason != NULL };
        ret->conditions[0] = (struct cd_condition){
                CONDITION_READY, condition_status_name(problem->reason ? STATUS_FALSE : STATUS_TRUE),
                .reason = REASON_ADMITTED, .message = admitted(in->cd, hosts->of_daemons)
        };
        if (problem->reason) {
                ret->conditions[0].reason = problem->reason;
                ret->conditions[0].message = problem->message;
        }
        host_health(hosts->list, hosts->n, hosts->of_daemons, a, &ret->conditions[1]);
        if (hosts->channels)
                channel_condition(hosts->channels, hosts->n_channels, a,
                                  &ret->conditions[ret->n_conditions++]);
        for (size_t i = 1; i < ret->n_conditions && hosts->unknown; i++)
                keep_condition(in->cd, &ret->conditions[i]);
        add_shortage(in, ret);
        add_shared_claim(in, ret);
        add_gate(in->cd, NULL, hosts, a, ret);
        conclude(in, NULL, a, ret);
}

void verdict_make_other(const struct verdict_input *in, const struct imex_mode *mode, const char *formed_in,
                        struct arena *a, struct verdict *ret) {
        *ret = (struct verdict){ .n_conditions = 1, .warns = true };
        ret->conditions[0] = (struct cd_condition){
                CONDITION_READY,
                condition_status_name(STATUS_FALSE),
                REASON_OTHER_MODE,
                message_of(a,
                           "Formed in IMEX mode %s, but the driver runs in %s now (%s) and can only delete "
                           "this ComputeDomain. Delete it when its pods have ended, and create it again",
                           formed_in, mode->name, mode->chosen_by),
        };
        conclude(in, NULL, a, ret);
}

void verdict_make_wrong(const struct verdict_input *in, const char *why, struct arena *a,
                        struct verdict *ret) {
        *ret = (struct verdict){ .n_conditions = 1, .warns = true };
        ret->conditions[0] =
                (struct cd_condition){ CONDITION_READY, condition_status_name(STATUS_FALSE),
                                       REASON_DECISION_WRONG,
                                       message_of(a,
                                                  "The controller does not write the status that it "
                                                  "computed, because it is inconsistent: %s",
                                                  why) };
        conclude(in, NULL, a, ret);
}

static void verdict_add(struct verdict_event *list, size_t *n, bool warning, const char *reason,
                        const char *message) {
        list[(*n)++] = (struct verdict_event){ warning, reason, message };
}

/* An Event about all nodes that changed in the same way in one step. Otherwise a ComputeDomain of a thousand
 * nodes would cause two thousand Events while it forms. */
struct status_event {
        const char *reason, *one, *many; /* texts: "Node %s <one>", "%zu nodes <many>: ..." */
        struct buf names;
        const char *only; /* the message if there is only one node */
        size_t n;
};

enum { NAMED_IN_NEWS = 18 };

static void add_node_event(struct status_event *w, struct arena *a, const char *node,
                           const char *short_detail, const char *long_detail) {
        if (w->n++ == 0)
                w->only = message_of(a, "Node %s %s%s", node, w->one, long_detail);
        if (w->n <= NAMED_IN_NEWS)
                buf_addf(&w->names, "%s%s%s", w->n > 1 ? ", " : "", node, short_detail);
}

static void add_status_event(struct status_event *w, struct arena *a, struct verdict_event *list, size_t *n) {
        if (w->n > NAMED_IN_NEWS)
                buf_addf(&w->names, " and %zu more", w->n - NAMED_IN_NEWS);
        if (w->n)
                verdict_add(list, n, false, w->reason,
                            w->n == 1 ? w->only
                                      : message_of(a, "%zu nodes %s: %s", w->n, w->many, buf_str(&w->names)));
        buf_done(&w->names);
}

static void joined(struct status_event *w, struct arena *a, const struct domain_node *now) {
        if (*now->clique_id)
                add_node_event(w, a, now->node, message_of(a, " (index %lld)", (long long)now->index),
                               message_of(a, " partition %s with index %lld", now->clique_id,
                                          (long long)now->index));
        else
                add_node_event(w, a, now->node, " (no NVLink partition)",
                               "; it has no NVLink partition, so its pods get no channel");
}

static void node_warning(const struct domain_node *was, const struct domain_node *now, const struct member *m,
                         struct arena *a, struct verdict_event *list, size_t *n) {
        if (was->index != now->index || !streq(was->clique_id, now->clique_id))
                verdict_add(
                        list, n, true, REASON_NODE_MOVED,
                        message_of(
                                a,
                                "Node %s has moved from partition %s, index %lld to partition %s, index %lld",
                                now->node, str_or(was->clique_id, "none"), (long long)was->index,
                                str_or(now->clique_id, "none"), (long long)now->index));
        if (verdict_node_ready(now) || !verdict_node_ready(was))
                return;
        if (m->why == MEMBER_LOST)
                verdict_add(list, n, true, REASON_NODE_LOST,
                            message_of(a, "Node %s is lost: %s", now->node, m->message));
        else
                verdict_add(list, n, true, REASON_NODE_NOT_READY,
                            message_of(a, "Node %s is not ready any more: %s", now->node, m->message));
}

static size_t node_events(const struct compute_domain *cd, const struct membership *all,
                          const struct verdict *v, struct arena *a, struct verdict_event *list) {
        struct status_event in = { REASON_NODE_JOINED, "has joined", "have joined", BUF_INIT(8192), NULL, 0 };
        struct status_event ready = { REASON_NODE_READY, "is ready", "are ready", BUF_INIT(8192), NULL, 0 };
        struct status_event left = { REASON_NODE_LEFT, "has left", "have left", BUF_INIT(8192), NULL, 0 };
        struct listed were = sort_listed(cd->nodes, cd->n_nodes, a),
                      are = sort_listed(v->nodes, v->n_nodes, a);
        const struct member *m = all->members;
        size_t n = 0;
        /* A node that takes the place of another one in a full list has not joined just now. */
        bool full = v->n_joined > v->n_nodes || cd->n_nodes >= VERDICT_NODES;
        for (size_t i = 0; i < v->n_nodes; i++) {
                const struct domain_node *now = &v->nodes[i], *was = node_at(&were, now->node);
                while (!streq(m->entry.node,
                              now->node)) { /* both are sorted by name, and each has a member */
                        m++;
                        BUG_ON(m == all->members + all->n_members);
                }
                if (was)
                        node_warning(was, now, m, a, list, &n);
                else if (full)
                        continue;
                else
                        joined(&in, a, now);
                if (verdict_node_ready(now) && !(was && verdict_node_ready(was)))
                        add_node_event(&ready, a, now->node, "", "");
        }
        for (size_t i = 0; i < cd->n_nodes && !full; i++)
                if (!node_at(&are, cd->nodes[i].node))
                        add_node_event(&left, a, cd->nodes[i].node, "", "");
        add_status_event(&in, a, list, &n);
        add_status_event(&ready, a, list, &n);
        add_status_event(&left, a, list, &n);
        return n;
}

/* Adds an Event when a shared IMEX fails a ComputeDomain in use, and when it works again, even if its state
 * was unknown in between. */
static void host_event(const struct compute_domain *cd, const struct verdict *v, struct verdict_event *list,
                       size_t *n) {
        for (size_t i = 0; i < v->n_conditions; i++) {
                const struct cd_condition *now = &v->conditions[i], *was = condition_at(cd, now->type);
                bool bad = condition_status_decode(now->status) == STATUS_FALSE, good = verdict_is_true(now);
                bool changed = !was || !streq(was->status, now->status),
                     used = was && !streq(was->reason, REASON_NO_NODES);
                bool of_imex = streq(now->type, CONDITION_HOST_IMEX_HEALTHY) ||
                               streq(now->type, CONDITION_IMEX_HEALTHY);
                if (of_imex && changed && (bad || (good && used)))
                        verdict_add(list, n, bad, now->reason, now->message);
        }
}

/* Adds an Event when the pods of a shared claim cannot use it, and when they can. A claim that is being
 * created needs none, unless pods could use it before. */
static void shared_claim_event(const struct compute_domain *cd, const struct verdict *v,
                               struct verdict_event *list, size_t *n) {
        for (size_t i = 0; i < v->n_conditions; i++) {
                const struct cd_condition *now = &v->conditions[i], *was = condition_at(cd, now->type);
                bool begins =
                        streq(now->reason, REASON_SHARED_CLAIM_PENDING) && !(was && verdict_is_true(was));
                if (streq(now->type, CONDITION_SHARED_CLAIM_AVAILABLE) && !begins &&
                    (!was || !streq(was->reason, now->reason)))
                        verdict_add(list, n, !verdict_is_true(now), now->reason, now->message);
        }
}

/* Adds an Event when the pods may start, and when the gate cannot work. */
static void gate_event(const struct compute_domain *cd, const struct verdict *v, struct verdict_event *list,
                       size_t *n) {
        for (size_t i = 0; i < v->n_conditions; i++) {
                const struct cd_condition *now = &v->conditions[i], *was = condition_at(cd, now->type);
                bool invalid = streq(now->reason, REASON_START_GATE_INVALID);
                if (streq(now->type, CONDITION_START_GATE_OPEN) && (invalid || verdict_is_true(now)) &&
                    (!was || !streq(was->reason, now->reason)))
                        verdict_add(list, n, invalid, now->reason, now->message);
        }
}

static bool has_reason(const struct verdict_event *list, size_t n, const char *reason) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i].reason, reason))
                        return true;
        return false;
}

size_t verdict_events(const struct compute_domain *cd, const struct membership *all, const struct verdict *v,
                      struct arena *a, struct verdict_event **ret) {
        BUG_ON(!v->n_conditions);
        struct verdict_event *list =
                arena_alloc(a, (2 * v->n_nodes + 3 + 3 * v->n_conditions + 2) * sizeof *list);
        size_t n = v->has_nodes && all->n_members + cd->n_nodes ? node_events(cd, all, v, a, list) : 0;
        const struct cd_condition *now = &v->conditions[0], *was = condition_at(cd, now->type);
        if (v->warns && !has_reason(list, n, now->reason) &&
            (!was || !streq(was->reason, now->reason) || !streq(was->message, now->message)))
                verdict_add(list, &n, true, now->reason, now->message);
        /* An unused ComputeDomain is Ready, which needs no Event. */
        bool was_ready = domain_status_decode(cd->status) == DOMAIN_READY,
             is_ready = domain_status_decode(v->status) == DOMAIN_READY;
        if (is_ready && !was_ready && v->n_nodes)
                verdict_add(list, &n, false, CONDITION_READY, now->message);
        else if (!is_ready && was_ready && cd->n_nodes && !v->warns)
                verdict_add(list, &n, false, REASON_NOT_READY, now->message);
        host_event(cd, v, list, &n);
        shared_claim_event(cd, v, list, &n);
        gate_event(cd, v, list, &n);
        *ret = list;
        return n;
}

const char *verdict_check(const struct verdict *v, struct arena *a) {
        const struct listed l = sort_listed(v->nodes, v->n_nodes, a);
        bool ready = v->n_conditions && verdict_is_true(&v->conditions[0]);

        if (ready != (domain_status_decode(v->status) == DOMAIN_READY))
                return arena_printf(a, "status %s with condition Ready %s", v->status,
                                    condition_status_name(ready ? STATUS_TRUE : STATUS_FALSE));
        if (v->n_nodes > VERDICT_NODES)
                return arena_printf(a, "%zu nodes are listed", v->n_nodes);
        for (size_t i = 1; i < l.n; i++)
                if (streq(l.list[i - 1]->node, l.list[i]->node))
                        return arena_printf(a, "node %s is listed twice", l.list[i]->node);
        if (v->has_nodes && v->nodes_ready > v->nodes_wanted)
                return arena_printf(a, "%lld of %lld nodes are ready", (long long)v->nodes_ready,
                                    (long long)v->nodes_wanted);
        return NULL;
}
