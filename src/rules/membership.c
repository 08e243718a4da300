/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/membership.h"

#include <stdlib.h>
#include <string.h>

#include "api/states.h"
#include "base/stderr.h"
#include "rules/message.h"
#include "rules/sorted.h"

static void set_why(struct member *m, enum member_why why, const char *message) {
        m->why = why;
        m->message = message;
        m->entry.status = domain_status_name(why == MEMBER_READY ? DOMAIN_READY : DOMAIN_NOT_READY);
}

static const char *with_reason(struct arena *a, const char *what, const char *reason) {
        return reason && *reason ? message_of(a, "%s: %.300s", what, reason) : what;
}

/* Why a container does not run, or NULL. */
static const char *container_down(const struct pod *p, struct arena *a) {
        for (size_t i = 0; i < p->n_containers; i++) {
                const struct pod_container_why *w = pod_container_down(&p->containers[i]);
                if (!w)
                        continue;
                /* Its message contains the present back-off, which changes. */
                if (streq(w->reason, "CrashLoopBackOff"))
                        return message_of(a,
                                          "daemon Pod %s: CrashLoopBackOff; kubectl -n %s logs --previous %s "
                                          "shows why it exits",
                                          p->o.meta.name, p->o.meta.ns, p->o.meta.name);
                return with_reason(a,
                                   message_of(a, "daemon Pod %s: %s", p->o.meta.name,
                                              str_or(w->reason, "container is down")),
                                   w->message);
        }
        return NULL;
}

/* Judges a daemon that has joined. A daemon that terminates keeps serving while claims are prepared. */
static void judge_joined(struct member *m, const struct member_facts *f, struct arena *a) {
        const struct pod *p = f->pod;
        const struct condition *ready = condition_find(p->conditions, p->n_conditions, "Ready");
        const char *down = container_down(p, a);
        if (ready && condition_status_decode(ready->status) == STATUS_FALSE &&
            streq(ready->reason, "NodeNotReady"))
                set_why(m, MEMBER_LOST, message_of(a, "daemon Pod %s is not reachable", p->o.meta.name));
        else if (down)
                set_why(m, MEMBER_FAILING, down);
        else if (p->clique_id && *p->clique_id && f->clique && !streq(p->clique_id, f->clique))
                set_why(m, MEMBER_FAILING,
                        message_of(
                                a,
                                "daemon Pod %s reports clique ID %.63s, but the node's ResourceSlice has %s",
                                p->o.meta.name, p->clique_id, *f->clique ? f->clique : "none"));
        else if (!pod_imex_ready(p))
                set_why(m,
                        imex_status_decode(p->state) == IMEX_STATE_BACKOFF || p->awaited ? MEMBER_FAILING
                                                                                         : MEMBER_STARTING,
                        with_reason(a, message_of(a, "IMEX daemon is %.40s", str_or(p->state, "not ready")),
                                    p->reason));
        else if (!*m->entry.ip)
                set_why(m, MEMBER_STARTING, message_of(a, "daemon Pod %s is starting", p->o.meta.name));
        else
                set_why(m, MEMBER_READY, "");
}

/* Judges a member whose daemon has not joined: what the daemon waits for or does. */
static void judge_absent(struct member *m, const struct member_facts *f, struct membership *all,
                         struct arena *a) {
        const struct pod *p = f->pod;
        const char *down = p ? container_down(p, a) : NULL;
        if (f->full && !f->assignment)
                set_why(m, MEMBER_FULL, "no index is free in its NVLink partition");
        else if (f->occupied)
                set_why(m, MEMBER_OCCUPIED,
                        "the daemon of another ComputeDomain uses the node until the last pod of that "
                        "ComputeDomain there has ended");
        else if (!p) {
                set_why(m, MEMBER_STARTING, "no daemon Pod on the node yet");
                all->no_daemon = true;
        } else if (down)
                set_why(m, MEMBER_FAILING, down);
        else if (f->busy)
                set_why(m, MEMBER_STARTING,
                        message_of(a, "daemon Pod %s must leave another ComputeDomain first",
                                   p->o.meta.name));
        else /* a report from before the daemon saw the assignment concerns something else */
                set_why(m, MEMBER_STARTING,
                        with_reason(a, message_of(a, "daemon Pod %s has not joined yet", p->o.meta.name),
                                    f->seen ? p->reason : NULL));
}

/* Judges a member whose daemon reports an earlier boot. This is normal for a moment after each boot. */
static void judge_rebooted(struct member *m, const struct member_facts *f, struct arena *a) {
        const char *down = container_down(f->pod, a);
        if (down)
                set_why(m, MEMBER_FAILING, down);
        else
                set_why(m, MEMBER_STARTING,
                        message_of(a,
                                   "daemon Pod %s has not reported since the Node booted (it reports boot ID "
                                   "%.36s, and the Node %.36s). If this persists, delete the Pod. If the "
                                   "next Pod reports the same, its container does not see the host's "
                                   "/proc/sys/kernel/random/boot_id",
                                   f->pod->o.meta.name, f->other_boot, node_boot_id(f->node)));
}

/* Only its daemon's report brings the node here, so it is no member for others (rules/assignment.h). */
static bool is_reported_only(const struct member_facts *f) {
        return f->assignment && !f->wanted && fabric_is_active(f->assignment) &&
               !*str_or(f->assignment->ip, "");
}

static void membership_evaluate(struct member *m, const struct member_facts *f, struct membership *all,
                                struct arena *a) {
        const char *clique = m->entry.clique_id;
        m->listed = clique && (!*clique || m->entry.index >= 0);
        if (!f->node)
                set_why(m, MEMBER_LOST,
                        "its Node object does not exist; its index is kept for a minute, in case its daemon "
                        "still runs");
        else if (!node_ready(f->node))
                set_why(m, MEMBER_LOST, "the Node is not ready");
        else if (!clique)
                set_why(m, MEMBER_STARTING, "its ResourceSlice does not state a clique ID yet");
        else if (!*clique)
                set_why(m, MEMBER_READY, ""); /* without an NVLink partition there is nothing to run */
        else if (f->other_boot && f->pod)
                judge_rebooted(m, f, a);
        else if (f->joined && f->pod)
                judge_joined(m, f, a);
        else
                judge_absent(m, f, all, a);
        if (f->assignment && fabric_is_leaving(f->assignment) && !f->wanted)
                set_why(m, MEMBER_LEAVING, "its daemon is leaving");
        else if (is_reported_only(f))
                set_why(m, MEMBER_LEAVING, "its daemon reports an assignment here, and no claim needs it");
        m->listed = m->listed && m->why != MEMBER_OCCUPIED && m->why != MEMBER_LEAVING;
}

static int64_t read_peers(const struct pod *p) {
        struct str rest = str_from(p ? p->peers : NULL), connected = { 0 };
        int64_t n, known;
        if (!str_next_field(&rest, '/', &connected) || !rest.p || !str_to_i64(connected, &n) ||
            !str_to_i64(rest, &known))
                return -1;
        return n;
}

static int cliques_by_id(const void *x, const void *y) {
        return strcmp(((const struct member_clique *)x)->id, ((const struct member_clique *)y)->id);
}

const struct member_clique *membership_clique(const struct membership *m, const char *id) {
        const struct member_clique key = { .id = id };
        return id && m->n_cliques ? bsearch(&key, m->cliques, m->n_cliques, sizeof key, cliques_by_id) : NULL;
}

bool membership_connected(const struct membership *all, const struct member *m) {
        if (!m->listed || m->why != MEMBER_READY)
                return false;
        if (!m->entry.clique_id || !*m->entry.clique_id)
                return true;
        const struct member_clique *clique = membership_clique(all, m->entry.clique_id);
        return clique && (clique->n_listed == 1 || m->peers_connected >= (int64_t)clique->n_listed - 1);
}

/* Makes an entry for each member, sorts them, and merges those of the same partition. */
static void membership_count(struct membership *all) {
        struct member_clique *list = all->cliques;
        size_t n = 0, kept = 0;
        for (size_t i = 0; i < all->n_members; i++) {
                const struct member *m = &all->members[i];
                const char *id = m->entry.clique_id;
                if (id && *id && m->entry.index >= 0)
                        list[n++] = (struct member_clique){ id, m->listed };
        }
        if (n)
                qsort(list, n, sizeof *list, cliques_by_id);
        for (size_t i = 0; i < n; i++)
                if (kept && streq(list[kept - 1].id, list[i].id))
                        list[kept - 1].n_listed += list[i].n_listed;
                else
                        list[kept++] = list[i];
        all->n_cliques = kept;
}

void membership_make(const struct member_facts *list, size_t n, struct arena *a, struct membership *ret) {
        BUG_ON_UNSORTED(list, n, name);
        *ret = (struct membership){ .members = arena_alloc(a, (n + 1) * sizeof *ret->members),
                                    .cliques = arena_alloc(a, (n + 1) * sizeof *ret->cliques) };
        for (size_t i = 0; i < n; i++) {
                const struct member_facts *f = &list[i];
                const struct pod *p = f->joined || f->assignment ? f->pod : NULL;
                struct member *m = &ret->members[ret->n_members++];
                *m = (struct member){ .entry = { .node = f->name,
                                                 .ip = p && p->n_ips ? str_or(p->ips[0].ip, "") : "",
                                                 .clique_id = f->fabric ? f->fabric : f->clique,
                                                 .index = f->assignment ? f->assignment->index : -1 },
                                      .wanted = f->wanted,
                                      .peers_connected = f->joined ? read_peers(f->pod) : -1 };
                membership_evaluate(m, f, ret, a);
        }
        membership_count(ret);
}

/* ---- a ComputeDomain that the Go driver formed ---- */

static const char *explain_go(const struct go_facts *f, struct arena *a) {
        struct message_list names = { 0 };
        for (size_t i = 0; i < f->n_pods; i++)
                message_add(&names, "%s", str_or(f->pods[i]->node, "no node yet"));
        return message_of(
                a,
                "Formed by the Go driver, whose daemons run on: %s. Other nodes join after the last "
                "pod of this ComputeDomain has ended",
                f->n_pods ? message_end(&names, a) : "no node");
}

static void add_go_nodes(const struct domain_node *nodes, size_t n, struct membership *ret) {
        for (size_t i = 0; i < n; i++) {
                bool ready = domain_status_decode(nodes[i].status) == DOMAIN_READY;
                struct member *m = &ret->members[ret->n_members++];
                *m = (struct member){
                        .entry = nodes[i], .listed = true, .wanted = true, .peers_connected = -1
                };
                m->entry.ip = str_or(m->entry.ip, "");
                m->entry.clique_id = str_or(m->entry.clique_id, "");
                set_why(m, ready ? MEMBER_READY : MEMBER_STARTING,
                        ready ? "" : "the daemon of the Go driver on it is not ready");
        }
}

static int membership_by_name(const void *x, const void *y) {
        return strcmp(((const struct member *)x)->entry.node, ((const struct member *)y)->entry.node);
}

void membership_make_go(const struct go_facts *f, struct arena *a, struct membership *ret) {
        BUG_ON(!f->cd);
        size_t n = f->n_cliques ? 0 : f->cd->n_nodes, kept = 0;
        for (size_t i = 0; i < f->n_cliques; i++)
                n += f->cliques[i]->n_nodes;
        *ret = (struct membership){ .members = arena_alloc(a, (n + 1) * sizeof *ret->members),
                                    .n_cliques = f->n_cliques,
                                    .go = explain_go(f, a) };
        if (!f->n_cliques)
                add_go_nodes(f->cd->nodes, f->cd->n_nodes, ret);
        for (size_t i = 0; i < f->n_cliques; i++)
                add_go_nodes(f->cliques[i]->nodes, f->cliques[i]->n_nodes, ret);
        qsort(ret->members, ret->n_members, sizeof *ret->members, membership_by_name);
        for (size_t i = 0; i < ret->n_members; i++)
                if (!kept || !streq(ret->members[kept - 1].entry.node, ret->members[i].entry.node))
                        ret->members[kept++] = ret->members[i];
        ret->n_members = kept;
}
