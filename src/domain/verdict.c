#include "domain/verdict.h"

#include "domain/names.h"

enum { NAMED_AT_MOST = 5 };

static const struct cd_node *node_at(const struct cd_node *list, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i].name, name))
                        return &list[i];
        return NULL;
}

static const struct cd_condition *condition_at(const struct compute_domain *cd, const char *type) {
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (streq(cd->conditions[i].type, type))
                        return &cd->conditions[i];
        return NULL;
}

/* "node-1: why; node-2: why; and 3 more" of all members that are in the state `why`. */
static const char *name_them(const struct formation *f, enum formation_why why, struct arena *a) {
        struct buf b = BUF_INIT(8192);
        size_t n = 0;
        for (size_t i = 0; i < f->n_members; i++) {
                const struct formation_member *m = &f->members[i];
                if (m->why != why || n++ >= NAMED_AT_MOST)
                        continue;
                buf_addf(&b, "%s%s: %s", b.n ? "; " : "", m->node, m->message);
        }
        if (n > NAMED_AT_MOST)
                buf_addf(&b, "; and %zu more", n - NAMED_AT_MOST);
        const char *s = arena_strdup(a, buf_str(&b));
        buf_done(&b);
        return s;
}

static bool any(const struct formation *f, enum formation_why why) {
        for (size_t i = 0; i < f->n_members; i++)
                if (f->members[i].why == why)
                        return true;
        return false;
}

static size_t count_staying(const struct formation *f) {
        size_t n = 0;
        for (size_t i = 0; i < f->n_members; i++)
                n += f->members[i].why != FORMATION_LEAVING;
        return n;
}

/* A node that is lost often is why another one fails, and neither hides the other. */
static const char *name_lost(const struct formation *f, struct arena *a) {
        const char *lost = name_them(f, FORMATION_LOST, a);
        return any(f, FORMATION_FAILING)
                       ? formation_text(a, "%s; %s", lost, name_them(f, FORMATION_FAILING, a))
                       : lost;
}

static void condition_ready(const struct compute_domain *cd, const struct formation *f,
                            const struct verdict_problem *problem, struct arena *a, struct verdict *v) {
        static const struct {
                enum formation_why why;
                const char *reason;
        } bad[] = { { FORMATION_FULL, "DomainFull" },
                    { FORMATION_HELD, "NodeHeld" },
                    { FORMATION_LOST, "NodeLost" },
                    { FORMATION_FAILING, "NodeFailing" } };
        struct cd_condition *c = &v->conditions[0];
        *c = (struct cd_condition){ .type = "Ready", .status = "False" };
        if (problem->reason) {
                c->reason = problem->reason;
                c->message = problem->message;
                v->warns = true;
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                if (any(f, bad[i].why)) {
                        c->reason = bad[i].reason;
                        c->message =
                                bad[i].why == FORMATION_LOST ? name_lost(f, a) : name_them(f, bad[i].why, a);
                        v->warns = true;
                        return;
                }
        if (any(f, FORMATION_STARTING)) {
                c->reason = "NodesNotReady";
                c->message = formation_text(a, "%lld of %zu nodes are ready. %s", (long long)v->nodes_ready,
                                            count_staying(f), name_them(f, FORMATION_STARTING, a));
        } else if ((int64_t)v->n_nodes < cd->num_nodes) {
                c->reason = "NodesMissing";
                c->message = formation_text(a, "%zu nodes have joined, spec.numNodes asks for %lld",
                                            v->n_nodes, (long long)cd->num_nodes);
        } else if (!v->n_nodes) {
                c->status = "True";
                c->reason = "NoNodes";
                c->message = "No pod uses this domain yet";
        } else {
                c->status = "True";
                c->reason = "AllNodesReady";
                c->message = v->n_nodes == 1 ? "The only node is ready"
                                             : formation_text(a, "All %zu nodes are ready", v->n_nodes);
        }
}

static int64_t clique_size(const struct formation *f, const char *clique) {
        for (size_t i = 0; i < f->n_cliques; i++)
                if (streq(f->cliques[i].clique_id, clique))
                        return (int64_t)f->cliques[i].n_listed;
        return 0;
}

static void condition_peers(const struct formation *f, struct arena *a, struct verdict *v) {
        struct cd_condition *c = &v->conditions[1];
        struct buf missing = BUF_INIT(8192);
        size_t n = 0, n_bad = 0;
        for (size_t i = 0; i < f->n_members; i++) {
                const struct formation_member *m = &f->members[i];
                if (!m->listed || !*m->clique)
                        continue;
                int64_t want = clique_size(f, m->clique) - 1;
                n++;
                if (m->why == FORMATION_READY && (m->peers_connected >= want || !want))
                        continue;
                if (n_bad++ >= NAMED_AT_MOST)
                        continue;
                if (m->why == FORMATION_READY && m->peers_connected >= 0)
                        buf_addf(&missing, "%s%s: connected to %lld of %lld peers", missing.n ? "; " : "",
                                 m->node, (long long)m->peers_connected, (long long)want);
                else
                        buf_addf(&missing, "%s%s: not known", missing.n ? "; " : "", m->node);
        }
        if (n_bad > NAMED_AT_MOST)
                buf_addf(&missing, "; and %zu more", n_bad - NAMED_AT_MOST);
        *c = (struct cd_condition){ .type = "PeersConnected" };
        if (!n) {
                c->status = "Unknown";
                c->reason = "NoFabricNodes";
                c->message = "No node with a fabric has joined";
        } else {
                c->status = n_bad ? "False" : "True";
                c->reason = n_bad ? "PeersMissing" : "AllConnected";
                c->message =
                        n_bad ? arena_strdup(a, buf_str(&missing)) : "All IMEX daemons have found each other";
        }
        buf_done(&missing);
}

static int64_t count_cliques(const struct formation *f) {
        int64_t n = 0;
        for (size_t i = 0; i < f->n_cliques; i++)
                n += f->cliques[i].n_daemons > 0;
        return n;
}

static bool same_nodes(const struct compute_domain *cd, const struct verdict *v) {
        if (!v->has_nodes)
                return true;
        if (cd->n_nodes != v->n_nodes)
                return false;
        for (size_t i = 0; i < v->n_nodes; i++) {
                const struct cd_node *now = &v->nodes[i],
                                     *was = streq(cd->nodes[i].name, now->name)
                                                    ? &cd->nodes[i]
                                                    : node_at(cd->nodes, cd->n_nodes, now->name);
                if (!was || !streq(str_or(was->ip, ""), now->ip) ||
                    !streq(str_or(was->clique_id, ""), now->clique_id) || !streq(was->status, now->status) ||
                    was->index != now->index)
                        return false;
        }
        return true;
}

static bool same_conditions(const struct compute_domain *cd, const struct verdict *v) {
        for (size_t i = 0; i < v->n_conditions; i++) {
                const struct cd_condition *now = &v->conditions[i], *was = condition_at(cd, now->type);
                if (!was || !streq(was->status, now->status) || !streq(was->reason, now->reason) ||
                    !streq(was->message, now->message) ||
                    was->observed_generation != now->observed_generation)
                        return false;
        }
        if (!v->has_nodes)
                return true;
        return cd->nodes_ready == v->nodes_ready && cd->nodes_wanted == v->nodes_wanted &&
               cd->cliques == v->cliques;
}

/* What follows from the conditions and from what the object says. */
static void conclude(const struct compute_domain *cd, bool conditions, int64_t now, struct verdict *v) {
        v->status = streq(v->conditions[0].status, "True") ? "Ready" : "NotReady";
        for (size_t i = 0; i < v->n_conditions; i++) {
                struct cd_condition *c = &v->conditions[i];
                const struct cd_condition *was = condition_at(cd, c->type);
                c->observed_generation = cd->o.meta.generation;
                c->last_transition = was && streq(was->status, c->status) && was->last_transition
                                             ? was->last_transition
                                             : now;
        }
        v->changed = !streq(cd->status, v->status) || !same_nodes(cd, v) ||
                     (conditions && !same_conditions(cd, v));
}

void verdict_make(const struct compute_domain *cd, const struct formation *f,
                  const struct verdict_problem *problem, bool conditions, int64_t now, struct arena *a,
                  struct verdict *ret) {
        *ret = (struct verdict){ .nodes = arena_alloc(a, (f->n_members + 1) * sizeof *ret->nodes),
                                 .cliques = count_cliques(f),
                                 .has_nodes = true,
                                 .n_conditions = 2 };
        for (size_t i = 0; i < f->n_members; i++) {
                const struct formation_member *m = &f->members[i];
                bool ready = m->why == FORMATION_READY;
                ret->nodes_wanted += m->wanted;
                if (!m->listed)
                        continue;
                ret->nodes[ret->n_nodes++] = (struct cd_node){ m->node, m->ip, m->clique,
                                                               ready ? "Ready" : "NotReady", m->written };
                ret->nodes_ready += ready;
        }
        if (cd->num_nodes > 0)
                ret->nodes_wanted = cd->num_nodes;
        condition_ready(cd, f, problem, a, ret);
        condition_peers(f, a, ret);
        conclude(cd, conditions, now, ret);
}

void verdict_make_host(const struct compute_domain *cd, const struct host *hosts, size_t n_hosts,
                       const struct verdict_problem *problem, bool conditions, int64_t now, struct arena *a,
                       struct verdict *ret) {
        *ret = (struct verdict){ .n_conditions = 2, .warns = problem->reason != NULL };
        ret->conditions[0] = (struct cd_condition){
                "Ready", problem->reason ? "False" : "True", .reason = "Admitted",
                .message = "Admitted, and the claim template for its pods exists. This says nothing "
                           "about the IMEX of the hosts"
        };
        if (problem->reason) {
                ret->conditions[0].reason = problem->reason;
                ret->conditions[0].message = problem->message;
        }
        host_health(hosts, n_hosts, a, &ret->conditions[1]);
        conclude(cd, conditions, now, ret);
}

void verdict_make_other(const struct compute_domain *cd, const struct imex_mode *mode, bool conditions,
                        int64_t now, struct arena *a, struct verdict *ret) {
        *ret = (struct verdict){ .n_conditions = 1, .warns = true };
        ret->conditions[0] = (struct cd_condition){
                "Ready",
                "False",
                "OtherMode",
                formation_text(a,
                               "Formed in IMEX mode %s; the driver runs in %s now (%s) and does nothing more "
                               "for this ComputeDomain but "
                               "delete it: delete it when its pods are gone and create it anew",
                               mode_other_name(mode), mode->name, mode->chosen_by),
        };
        conclude(cd, conditions, now, ret);
}

static void add(struct verdict_event *list, size_t *n, bool warning, const char *reason,
                const char *message) {
        list[(*n)++] = (struct verdict_event){ warning, reason, message };
}

static const struct formation_member *member_at(const struct formation *f, const char *node) {
        for (size_t i = 0; i < f->n_members; i++)
                if (streq(f->members[i].node, node))
                        return &f->members[i];
        return NULL;
}

/* What happened to many nodes in one step is one Event, or a domain of a thousand nodes would tell two
 * thousand while it forms. */
struct news {
        const char *reason, *one, *many; /* "Node %s <one>", "%zu nodes <many>: ..." */
        struct buf names;
        const char *only; /* the text about the first */
        size_t n;
};

enum { NAMED_IN_NEWS = 18 };

static void gather_news(struct news *w, struct arena *a, const char *node, const char *short_detail,
                        const char *long_detail) {
        if (w->n++ == 0)
                w->only = formation_text(a, "Node %s %s%s", node, w->one, long_detail);
        if (w->n <= NAMED_IN_NEWS)
                buf_addf(&w->names, "%s%s%s", w->n > 1 ? ", " : "", node, short_detail);
}

static void tell_news(struct news *w, struct arena *a, struct verdict_event *list, size_t *n) {
        if (w->n > NAMED_IN_NEWS)
                buf_addf(&w->names, " and %zu more", w->n - NAMED_IN_NEWS);
        if (w->n)
                add(list, n, false, w->reason,
                    w->n == 1 ? w->only
                              : formation_text(a, "%zu nodes %s: %s", w->n, w->many, buf_str(&w->names)));
        buf_done(&w->names);
}

static void joined(struct news *w, struct arena *a, const struct cd_node *now) {
        if (*now->clique_id)
                gather_news(w, a, now->name, formation_text(a, " (index %lld)", (long long)now->index),
                            formation_text(a, " clique %s with index %lld", now->clique_id,
                                           (long long)now->index));
        else
                gather_news(w, a, now->name, " (no fabric)",
                            "; it has no fabric, so its pods get no channel");
}

static void node_warning(const struct cd_node *was, const struct cd_node *now,
                         const struct formation_member *m, struct arena *a, struct verdict_event *list,
                         size_t *n) {
        if (was->index != now->index || !streq(was->clique_id, now->clique_id))
                add(list, n, true, "NodeMoved",
                    formation_text(a, "Node %s has moved from clique %s, index %lld to clique %s, index %lld",
                                   now->name, str_or(was->clique_id, "none"), (long long)was->index,
                                   str_or(now->clique_id, "none"), (long long)now->index));
        if (streq(now->status, "Ready") || !streq(was->status, "Ready"))
                return;
        if (m->why == FORMATION_LOST)
                add(list, n, true, "NodeLost",
                    formation_text(a, "Node %s is lost: %s", now->name, m->message));
        else
                add(list, n, true, "NodeNotReady",
                    formation_text(a, "Node %s is not ready any more: %s", now->name, m->message));
}

static size_t node_events(const struct compute_domain *cd, const struct formation *f, const struct verdict *v,
                          struct arena *a, struct verdict_event *list) {
        struct news in = { "NodeJoined", "has joined", "have joined", BUF_INIT(8192), NULL, 0 };
        struct news ready = { "NodeReady", "is ready", "are ready", BUF_INIT(8192), NULL, 0 };
        struct news left = { "NodeLeft", "has left", "have left", BUF_INIT(8192), NULL, 0 };
        size_t n = 0;
        for (size_t i = 0; i < v->n_nodes; i++) {
                const struct cd_node *now = &v->nodes[i], *was = node_at(cd->nodes, cd->n_nodes, now->name);
                if (was)
                        node_warning(was, now, member_at(f, now->name), a, list, &n);
                else
                        joined(&in, a, now);
                if (streq(now->status, "Ready") && !(was && streq(was->status, "Ready")))
                        gather_news(&ready, a, now->name, "", "");
        }
        for (size_t i = 0; i < cd->n_nodes; i++)
                if (!node_at(v->nodes, v->n_nodes, cd->nodes[i].name))
                        gather_news(&left, a, cd->nodes[i].name, "", "");
        tell_news(&in, a, list, &n);
        tell_news(&ready, a, list, &n);
        tell_news(&left, a, list, &n);
        return n;
}

/* That the hosts' IMEX fails a domain in use, or does so no more, also when nobody knew for a while in
 * between. */
static void host_event(const struct compute_domain *cd, const struct verdict *v, struct verdict_event *list,
                       size_t *n) {
        for (size_t i = 0; i < v->n_conditions; i++) {
                const struct cd_condition *now = &v->conditions[i], *was = condition_at(cd, now->type);
                bool bad = streq(now->status, "False"), good = streq(now->status, "True");
                bool changed = !was || !streq(was->status, now->status),
                     used = was && !streq(was->reason, HOST_HEALTH_UNUSED);
                if (streq(now->type, "HostIMEXHealthy") && changed && (bad || (good && used)))
                        add(list, n, bad, now->reason, now->message);
        }
}

static bool has_reason(const struct verdict_event *list, size_t n, const char *reason) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i].reason, reason))
                        return true;
        return false;
}

size_t verdict_events(const struct compute_domain *cd, const struct formation *f, const struct verdict *v,
                      struct arena *a, struct verdict_event **ret) {
        struct verdict_event *list =
                arena_alloc(a, (2 * v->n_nodes + 3 + v->n_conditions + 2) * sizeof *list);
        size_t n = v->has_nodes ? node_events(cd, f, v, a, list) : 0;
        const struct cd_condition *now = &v->conditions[0], *was = condition_at(cd, now->type);
        if (v->warns && !has_reason(list, n, now->reason) &&
            (!was || !streq(was->reason, now->reason) || !streq(was->message, now->message)))
                add(list, &n, true, now->reason, now->message);
        /* A domain that nobody uses yet is called Ready, which is nothing to tell anybody. */
        if (streq(v->status, "Ready") && !streq(cd->status, "Ready") && v->n_nodes)
                add(list, &n, false, "Ready", now->message);
        else if (streq(v->status, "NotReady") && streq(cd->status, "Ready") && cd->n_nodes && !v->warns)
                add(list, &n, false, "NotReady", now->message);
        host_event(cd, v, list, &n);
        *ret = list;
        return n;
}
