/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/judge.h"

#include <stdlib.h>
#include <string.h>

#include "rules/message.h"

const char *judge_ip(const struct seat_facts *n) {
        return n->pod && n->pod->n_ips ? str_or(n->pod->ips[0].ip, "") : "";
}

int64_t judge_gone_left_s(int64_t now, const struct seat_facts *n) {
        return n->gone_since ? n->gone_since + FORMATION_NODE_GONE_S - now : FORMATION_NODE_GONE_S;
}

void judge_look_again(struct judging *j, int64_t left_s) {
        if (left_s > 0 && (!j->recheck_s || left_s < j->recheck_s))
                j->recheck_s = left_s;
}

static const char *with_message(struct arena *a, const char *what, const char *message) {
        return message && *message ? message_of(a, "%s: %.300s", what, message) : what;
}

/* Why a container does not run, or NULL. ContainerCreating and PodInitializing are the way up, not down. */
static const char *container_down(const struct pod *p, struct arena *a) {
        for (size_t i = 0; i < p->n_containers; i++) {
                const struct pod_container *c = &p->containers[i];
                const struct pod_container_why *w = c->terminated ? c->terminated : c->waiting;
                if (!w || streq(w->reason, "ContainerCreating") || streq(w->reason, "PodInitializing"))
                        continue;
                /* Its message is how long the pause is now. */
                if (streq(w->reason, "CrashLoopBackOff"))
                        return message_of(a,
                                          "daemon Pod %s: CrashLoopBackOff; kubectl -n %s logs --previous %s "
                                          "says why it ends",
                                          p->o.meta.name, p->o.meta.ns, p->o.meta.name);
                return with_message(a,
                                    message_of(a, "daemon Pod %s: %s", p->o.meta.name,
                                               str_or(w->reason, "container is down")),
                                    w->message);
        }
        return NULL;
}

static int by_text(const void *x, const void *y) {
        return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The scheduler's reasons without what moves at each of its attempts: how many nodes there are and how many
 * each reason is about, which also decides the order. A daemon pod fits one node only, so that all the others
 * do not match says nothing; nor does what follows the reasons, why nothing can be pushed aside for it. "0/3
 * nodes are available: 1 cannot allocate all claims, 2 node(s) didn't match Pod's node affinity/selector.
 * ..." */
static const char *scheduler_says(const char *message, struct arena *a) {
        enum { REASONS = 16 };
        static const char head[] = " nodes are available: ", tail[] = ". ", noise[] = "node(s) didn't match";
        const char *from = message ? strstr(message, head) : NULL, *list[REASONS];
        size_t n = 0;
        if (!from)
                return message;
        from += sizeof head - 1;
        const char *to = strstr(from, tail);
        struct str rest = { from, to ? (size_t)(to - from) : strlen(from) }, part;
        while (n < REASONS && str_next_field(&rest, ',', &part)) {
                part = str_trim(part);
                while (part.n && ((*part.p >= '0' && *part.p <= '9') || *part.p == ' ')) {
                        part.p++;
                        part.n--;
                }
                if (part.n && part.p[part.n - 1] == '.')
                        part.n--;
                if (part.n && strncmp(part.p, noise, sizeof noise - 1) != 0)
                        list[n++] = arena_strndup(a, part.p, part.n);
        }
        qsort(list, n, sizeof *list, by_text);
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        for (size_t i = 0; i < n; i++)
                buf_addf(&b, "%s%s", i ? ", " : "", list[i]);
        return n ? arena_strdup(a, buf_str(&b)) : "no node matches";
}

static void say(struct formed_seat *m, enum formation_why why, const char *message) {
        m->why = why;
        m->message = message;
        m->seat.status = why == FORMATION_READY ? "Ready" : "NotReady";
}

/* For a moment nothing fits any pod: its claim is being made, or the daemon before it is leaving. */
static void judge_pending(struct formed_seat *m, const struct pod *p, struct judging *j) {
        const struct condition *c = condition_find(p->conditions, p->n_conditions, "PodScheduled");
        if (!c || !streq(c->status, "False")) {
                say(m, FORMATION_STARTING, message_of(j->a, "daemon Pod %s is starting", p->o.meta.name));
                return;
        }
        int64_t left_s = c->since + FORMATION_SCHEDULED_S - j->now;
        say(m, left_s > 0 ? FORMATION_STARTING : FORMATION_FAILING,
            with_message(j->a, message_of(j->a, "daemon Pod %s cannot be scheduled", p->o.meta.name),
                         scheduler_says(c->message, j->a)));
        judge_look_again(j, left_s);
}

/* The Go driver's daemons do not report; their probe says the same. */
static void judge_foreign(struct formed_seat *m, const struct pod *p, struct arena *a) {
        if (condition_true(p->conditions, p->n_conditions, "Ready"))
                say(m, FORMATION_READY, "");
        else
                say(m, FORMATION_STARTING, message_of(a, "daemon Pod %s is not ready", p->o.meta.name));
}

static void judge_daemon(struct formed_seat *m, const struct seat_facts *n, struct judging *j) {
        struct arena *a = j->a;
        const struct pod *p = n->pod;
        const struct condition *ready = condition_find(p->conditions, p->n_conditions, "Ready");
        const char *down;
        int64_t index;
        if (ready && streq(ready->status, "False") && streq(ready->reason, "NodeNotReady"))
                say(m, FORMATION_LOST, message_of(a, "daemon Pod %s is out of reach", p->o.meta.name));
        else if (p->o.meta.deleted)
                say(m, FORMATION_STARTING, message_of(a, "daemon Pod %s is being deleted", p->o.meta.name));
        else if ((down = container_down(p, a)))
                say(m, FORMATION_FAILING, down);
        else if (!p->template_hash)
                judge_foreign(m, p, a);
        else if (!p->ready)
                judge_pending(m, p, j);
        else if (p->clique_id && *p->clique_id && n->clique && !streq(p->clique_id, n->clique))
                say(m, FORMATION_FAILING,
                    message_of(a, "daemon Pod %s claims clique %.63s, but the node's ResourceSlice states %s",
                               p->o.meta.name, p->clique_id, *n->clique ? n->clique : "none"));
        else if (!streq(p->ready, "true"))
                say(m, streq(p->state, "BACKOFF") || p->awaited ? FORMATION_FAILING : FORMATION_STARTING,
                    with_message(a, message_of(a, "IMEX daemon is %.40s", str_or(p->state, "not ready")),
                                 p->reason));
        else if (!*m->seat.ip || !p->clique_id ||
                 (m->seat.clique_id && *m->seat.clique_id && !str_to_i64(str_from(p->index), &index)))
                judge_pending(m, p, j);
        else if (m->seat.clique_id && *m->seat.clique_id && index != m->seat.index)
                say(m, FORMATION_STARTING,
                    message_of(a, "IMEX daemon changes from index %lld to %lld", (long long)index,
                               (long long)m->seat.index));
        else
                say(m, FORMATION_READY, "");
}

static void read_peers(struct formed_seat *m, const struct pod *p) {
        struct str rest = str_from(p ? p->peers : NULL), connected = { 0 };
        m->peers_connected = m->peers_known = -1;
        if (!str_next_field(&rest, '/', &connected) || !rest.p ||
            !str_to_i64(connected, &m->peers_connected) || !str_to_i64(rest, &m->peers_known))
                m->peers_connected = m->peers_known = -1;
}

static void judge_gone(struct formed_seat *m, const struct seat_facts *n, struct judging *j) {
        int64_t left_s = judge_gone_left_s(j->now, n);
        say(m, FORMATION_LOST,
            "its Node object is gone; its index is kept for a minute, in case its daemon lives");
        judge_look_again(j, left_s);
}

void judge_member(struct formed_seat *m, const struct seat_facts *n, struct judging *j) {
        struct arena *a = j->a;
        m->seat.ip = judge_ip(n);
        m->foreign = n->pod && !n->pod->template_hash;
        read_peers(m, n->pod);
        m->unconfirmed = !n->wanted && !n->pod && !j->stale;
        /* What is not written yet may come out differently when more nodes come before it is: nobody is told
         * of it. */
        m->listed = m->seat.clique_id && (!*m->seat.clique_id || m->written >= 0);
        if (!n->wanted && n->pod && n->pod->o.meta.deleted)
                say(m, FORMATION_LEAVING, "its daemon is ending");
        else if (m->unconfirmed)
                say(m, FORMATION_LEAVING, "its daemon has ended");
        else if (!n->pod && n->held_by)
                say(m, FORMATION_HELD,
                    message_of(a, "the node is held by %.300s until its last pod there is gone", n->held_by));
        else if (!n->node)
                judge_gone(m, n, j);
        else if (!node_ready(n->node))
                say(m, FORMATION_LOST, "the Node is not ready");
        else if (m->seat.clique_id && *m->seat.clique_id && m->seat.index < 0 && !m->address_first)
                say(m, FORMATION_FULL, "no index is left in its clique");
        else if (n->pod)
                judge_daemon(m, n, j);
        else if (!m->seat.clique_id)
                say(m, FORMATION_STARTING, "its ResourceSlice does not state a clique yet");
        else {
                say(m, FORMATION_STARTING, "no daemon Pod yet");
                j->no_pod = true;
        }
        /* A node that another domain holds has no place here until that one is gone; one that leaves has been
         * told of. */
        if (m->why == FORMATION_HELD || m->why == FORMATION_LEAVING)
                m->listed = false;
}
