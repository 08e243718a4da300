/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/seated.h"

#include <string.h>

#include "rules/judge.h"
#include "rules/message.h"

static void say(struct formed_seat *m, enum formation_why why, const char *message) {
        m->why = why;
        m->message = message;
        m->seat.status = why == FORMATION_READY ? "Ready" : "NotReady";
}

/* What its agent waits for, or does instead. */
static void judge_absent(struct formed_seat *m, const struct seated_facts *s, struct judging *j) {
        const struct pod *agent = s->node.pod;
        /* What it said before it knew of the place is beside the point. */
        const char *why = agent && s->told ? agent->reason : NULL;
        if (s->full && !s->seat)
                say(m, FORMATION_FULL, "no index is left in its clique");
        else if (!agent && s->node.held_by)
                say(m, FORMATION_HELD,
                    message_of(j->a, "the node is held by %.300s until its last pod there is gone",
                               s->node.held_by));
        else if (!agent) {
                say(m, FORMATION_STARTING, "no IMEX agent on the node yet");
                j->no_pod = true;
        } else if (s->busy)
                say(m, FORMATION_STARTING,
                    message_of(j->a, "IMEX agent Pod %s leaves another ComputeDomain first",
                               agent->o.meta.name));
        else
                say(m, FORMATION_STARTING,
                    message_of(j->a, "IMEX agent Pod %s has not joined yet%s%.300s", agent->o.meta.name,
                               why ? ": " : "", str_or(why, "")));
}

static void judge(struct formed_seat *m, const struct seated_facts *s, struct judging *j) {
        struct seat_facts facts = s->node;
        if (!s->joined)
                facts.pod = NULL;
        /* Who is gone or not ready is judged there, and how IMEX is. */
        judge_member(m, &facts, j);
        if (m->seat.clique_id && !*m->seat.clique_id && m->why != FORMATION_LOST) {
                say(m, FORMATION_READY, ""); /* without a fabric there is nothing to run */
                return;
        }
        if (m->why != FORMATION_LOST && !s->joined && m->seat.clique_id) {
                if (s->node.pod && s->seat)
                        m->seat.ip = judge_ip(&s->node);
                judge_absent(m, s, j);
        }
        if (s->leaving && !s->node.wanted) {
                say(m, FORMATION_LEAVING, "its IMEX agent is leaving");
                m->listed = false;
        }
        m->listed = m->listed && m->why != FORMATION_HELD;
}

static size_t find_imex(const struct formation *f, const char *clique) {
        for (size_t i = 0; i < f->n_imex; i++)
                if (streq(f->imex[i].imex.clique_id, clique))
                        return i;
        return FORMATION_NO_IMEX;
}

static void count(struct formation *f, struct formed_seat *m) {
        if (!m->seat.clique_id || !*m->seat.clique_id || m->seat.index < 0)
                return;
        m->of_imex = find_imex(f, m->seat.clique_id);
        if (m->of_imex == FORMATION_NO_IMEX) {
                m->of_imex = f->n_imex++;
                f->imex[m->of_imex] = (struct formed_imex){ .imex.clique_id = m->seat.clique_id };
        }
        f->imex[m->of_imex].imex.n_seats++;
        f->imex[m->of_imex].n_listed += m->listed;
}

void seated_make(const struct seated_facts *list, size_t n, const char *daemonset, int64_t now,
                 struct arena *a, struct formation *ret) {
        struct judging j = { .a = a, .now = now };
        *ret = (struct formation){ .members = arena_alloc(a, (n + 1) * sizeof *ret->members),
                                   .imex = arena_alloc(a, (n + 1) * sizeof *ret->imex) };
        for (size_t i = 0; i < n; i++) {
                const struct seated_facts *s = &list[i];
                struct formed_seat *m = &ret->members[ret->n_members++];
                int64_t index = s->seat ? s->seat->index : -1;
                *m = (struct formed_seat){ .seat = { .node = s->node.name,
                                                     .clique_id = s->fabric ? s->fabric : s->node.clique,
                                                     .index = index,
                                                     .boot_id =
                                                             s->node.node ? node_boot_id(s->node.node) : "" },
                                           .written = index,
                                           .wanted = s->node.wanted,
                                           .of_imex = FORMATION_NO_IMEX };
                judge(m, s, &j);
                count(ret, m);
        }
        ret->recheck_s = j.recheck_s;
        ret->hint = j.no_pod ? daemonset : NULL;
}
