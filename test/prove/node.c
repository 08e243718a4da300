/* SPDX-License-Identifier: Apache-2.0 */
/* The events on a node: daemon/decision and cd_plugin/may_prepare, with the state of the world. */
#include <string.h>

#include "base/stderr.h"
#include "base/mem.h"
#include "base/str.h"
#include "cd_plugin/may_prepare.h"
#include "daemon/decision.h"
#include "imex/imex_files.h"
#include "memo.h"
#include "rules/assignment.h"
#include "world.h"

#define CLIQUE "33333333-4444-4555-8666-777777777777.1"

enum { MEMO_MIB = 128 };

static bool is_living(unsigned imex) {
        return imex != DECISION_IMEX_NONE && imex != DECISION_IMEX_ENDED && imex != DECISION_IMEX_KILLED;
}

bool node_has_living_imex(const struct host *h) {
        return h->process && is_living(h->imex);
}

bool node_is_used(const struct host *h, unsigned domain) {
        return domain && ((h->claim.phase == CLAIM_PREPARED && h->claim.domain == domain) ||
                          (h->orphan.phase == CLAIM_PREPARED && h->orphan.domain == domain));
}

/* ---- the part of the object that concerns a node ---- */

/* If IMEX ended uncleanly, it matters to a node whether others are in its domain. */
static void project_others(const struct row *row, const struct object *o, unsigned d, unsigned node,
                           struct object *ret) {
        bool counts = row->crashes || row->unclean;
        for (unsigned n = 0; n < NODES; n++)
                if (n != node)
                        ret->places[d][n] = (struct place){
                                .state = counts && o->places[d][n].state ? PLACE_RESERVED : PLACE_NONE,
                        };
}

void node_project(const struct row *row, const struct object *o, unsigned node, struct object *ret) {
        memset(ret, 0, sizeof *ret);
        ret->uid = o->uid;
        ret->recount = o->recount;
        if (row_recounts(row)) /* otherwise the epochs that a daemon has seen do not matter */
                ret->epoch = o->epoch;
        for (unsigned i = 0; i < o->n_domains; i++) {
                unsigned d = o->domains[i];
                if (!o->places[d][node].state)
                        continue;
                ret->domains[ret->n_domains++] = (uint8_t)d;
                ret->places[d][node] = o->places[d][node];
                ret->places[d][node].ip = 0;
                project_others(row, o, d, node, ret);
        }
}

/* ---- the plugin ---- */

static bool is_ready(const struct run *r, const struct world *w, unsigned node, const struct claim *c) {
        _cleanup_(arena_freep) struct arena *a = arena_new(8192);
        const struct host *h = &w->hosts[node];
        const struct object *o = world_view(w, c->view || r->row->late_plugin ? c->view : VIEW_NEWEST);
        const char *uid = uid_of(UID_DOMAIN, 0, c->domain);
        bool in_domain = h->process && h->memory.domain == c->domain && h->imex != DECISION_IMEX_NONE;
        const struct prepare_question q = { .node = node_name(node),
                                            .boot_id = uid_of(UID_BOOT, node, h->boot),
                                            .clique_id = CLIQUE,
                                            .imex_uid = uid,
                                            .domain_ns = "ns",
                                            .domain_name = "cd",
                                            .domain_uid = uid,
                                            .fabric = o ? control_fabric(o, r->row, a) : NULL };
        struct prepare_daemon d = { .runner = h->go     ? PREPARE_RUNNER_GO
                                              : h->last ? PREPARE_RUNNER_OWN
                                                        : PREPARE_RUNNER_NONE,
                                    .claim_uid = uid_of(UID_CLAIM, node, h->last),
                                    .held = in_domain,
                                    .go_domain = "00000000-0000-4000-8000-0000000000aa",
                                    .go_ns = "driver" };
        char msg[500];
        if (!in_domain) {
                d.unread.kind = ERR_NOT_FOUND;
                return may_prepare(&q, &d, msg, sizeof msg);
        }
        d.state.ready = h->imex == DECISION_IMEX_READY && !h->withdrawn;
        snprintf(d.state.boot_id, sizeof d.state.boot_id, "%s", q.boot_id);
        snprintf(d.state.claim_uid, sizeof d.state.claim_uid, "%s", uid_of(UID_CLAIM, node, h->process));
        snprintf(d.state.assignment, sizeof d.state.assignment, "%s/%s/%u/%u", CLIQUE, uid, h->memory.index,
                 h->memory.epoch);
        return may_prepare(&q, &d, msg, sizeof msg);
}

/* A pod gets its channel. */
static const char *release(const struct world *w, unsigned node, unsigned domain) {
        const struct host *h = &w->hosts[node];
        const struct place *p = &w->versions[0].places[domain - 1][node];
        if (!node_has_living_imex(h) || h->memory.domain != domain)
                return "a pod gets a channel while no IMEX of its domain runs on the node";
        if (!w->snapshot.taken && (!p->state || p->epoch != h->memory.epoch || p->index != h->memory.index))
                return "a pod gets a channel while the fabric object does not list the assignment of the "
                       "node";
        return NULL;
}

/* A Prepare that has begun continues while the node is cut off, with the object as the plugin saw it last. */
bool node_plugin(struct run *r, struct world *w, unsigned node, bool orphan, const char **broken) {
        struct host *h = &w->hosts[node];
        struct claim *c = orphan ? &h->orphan : &h->claim;
        if (c->phase != CLAIM_WAITING || (w->domain_ends >> (c->domain - 1) & 1))
                return false;
        switch ((enum claim_note)c->note) {
        case NOTE_NONE:
                if (h->cut && c->view != VIEW_FROZEN_FOR_PLUGIN)
                        return false;
                if (!c->view && r->row->late_plugin)
                        c->view = VIEW_NEWEST; /* it reads the object from the API server */
                if (r->row->late_notes)
                        c->note = NOTE_GRANTING;
                else if (is_ready(r, w, node, c))
                        c->note = NOTE_JUDGED;
                return true;
        case NOTE_GRANTING:
                c->note = is_ready(r, w, node, c) ? NOTE_JUDGED : NOTE_NONE;
                return true;
        case NOTE_JUDGED:
                *broken = h->hurt ? NULL : release(w, node, c->domain);
                c->phase = CLAIM_PREPARED;
                c->note = NOTE_NONE;
                c->view = VIEW_NONE;
                return true;
        }
        return false;
}

/* ---- the daemon ---- */

struct ask {
        struct object object;
        struct memory memory;
        uint8_t known, current, node, pod, boot, inherited, imex, paused, withdrawn, use, terminating;
};

struct answer {
        struct memory memory, assignment;
        uint8_t step;
};

static void fill_now(const struct memory *m, const struct row *row, char infix[static 11],
                     struct decision_assignment *ret) {
        if (!m->domain)
                return;
        imex_infix(uid_of(UID_DOMAIN, 0, m->domain), infix);
        *ret = (struct decision_assignment){ .domain = uid_of(UID_DOMAIN, 0, m->domain),
                                             .imex.infix = infix,
                                             .index = m->index,
                                             .epoch = m->epoch,
                                             .imex.port = assignment_port(infix),
                                             .imex.slots = row->nodes };
}

static void read_memory(const struct decision_memory *m, struct memory *ret) {
        *ret = (struct memory){ .domain = (uint8_t)uid_number(m->now.domain),
                                .ready = m->ready,
                                .closed = (uint8_t)m->closed,
                                .seen = (uint8_t)m->seen,
                                .recount = (uint8_t)m->recount,
                                .n_left = (uint8_t)m->n_left };
        BUG_ON(m->n_left > LEFT || m->closed > 200);
        if (ret->domain) {
                ret->index = (uint8_t)m->now.index;
                ret->epoch = (uint8_t)m->now.epoch;
        }
        for (size_t i = 0; i < m->n_left; i++)
                ret->left[i] = (uint8_t)m->left[i];
}

static void decide(const struct run *r, const struct ask *k, struct answer *ret) {
        _cleanup_(arena_freep) struct arena *a = arena_new(8192);
        char infix[11];
        int64_t left[LEFT];
        struct decision_memory m = { .ready = k->memory.ready,
                                     .closed = k->memory.closed,
                                     .seen = k->memory.seen,
                                     .recount = k->memory.recount,
                                     .left = left,
                                     .n_left = k->memory.n_left };
        struct decision d;
        fill_now(&k->memory, r->row, infix, &m.now);
        for (unsigned i = 0; i < k->memory.n_left; i++)
                left[i] = k->memory.left[i];
        decision_make(
                &(struct decision_input){ .fabric = k->known ? control_fabric(&k->object, r->row, a) : NULL,
                                          .current = k->current,
                                          .node = node_name(k->node),
                                          .claim = uid_of(UID_CLAIM, k->node, k->pod),
                                          .boot_id = uid_of(UID_BOOT, k->node, k->boot),
                                          .memory = &m,
                                          .inherited = k->inherited,
                                          .imex = k->imex,
                                          .paused = k->paused,
                                          .withdrawn = k->withdrawn,
                                          .use = k->use,
                                          .terminating = k->terminating },
                a, &d);
        memset(ret, 0, sizeof *ret);
        ret->step = (uint8_t)d.step;
        if (d.step == DECISION_FORGET) {
                struct decision_memory after;
                decision_left(&d.memory, a, &after);
                read_memory(&after, &ret->memory);
        } else {
                if (d.step == DECISION_ENTER)
                        d.memory.now = d.assignment;
                read_memory(&d.memory, &ret->memory);
        }
}

/* Decides with the daemon's object, and with that of node_project(). */
static void decide_twice(const struct run *r, struct ask *k, const struct object *o, struct answer *ret) {
        struct answer projected;
        struct ask full = *k;
        decide(r, k, &projected);
        if (o) {
                full.object = *o;
                if (!row_recounts(r->row))
                        full.object.epoch = 0;
        }
        decide(r, &full, ret);
        BUG_ON(memcmp(ret, &projected, sizeof projected) != 0);
}

static const struct answer *ask(struct run *r, const struct world *w, unsigned node, unsigned use,
                                bool withdrawn) {
        const struct host *h = &w->hosts[node];
        const struct object *o = world_view(w, h->view);
        struct ask k;
        struct answer answer;
        memset(&k, 0, sizeof k);
        k.known = o && o->uid;
        if (k.known)
                node_project(r->row, o, node, &k.object);
        k.memory = h->memory;
        k.current = k.known; /* according to the daemon */
        k.node = (uint8_t)node;
        k.pod = h->process;
        k.boot = h->boot;
        k.inherited = h->memory.domain && h->memory.pod != h->process;
        k.memory.pod = k.memory.served = 0;
        k.imex = h->imex;
        k.paused = h->paused;
        k.withdrawn = withdrawn;
        k.use = (uint8_t)use;
        k.terminating = h->terminating;
        const struct answer *known = memo_get(r->decisions, &k);
        if (known)
                return known;
        decide_twice(r, &k, k.known ? o : NULL, &answer);
        memo_put(r->decisions, &k, &answer);
        return memo_get(r->decisions, &k);
}

struct memo *node_memo(void) {
        return memo_new(sizeof(struct ask), sizeof(struct answer), (size_t)MEMO_MIB << 20);
}

/* A claim of the daemon's domain has this note, or a later one. */
static bool has_note(const struct host *h, enum claim_note note) {
        unsigned domain = h->memory.domain;
        return domain && ((h->claim.domain == domain && h->claim.note >= note) ||
                          (h->orphan.domain == domain && h->orphan.note >= note));
}

static enum imex_use look_at_use(const struct host *h) {
        return node_is_used(h, h->memory.domain) ? IMEX_USE_PREPARED
               : has_note(h, NOTE_GRANTING)      ? IMEX_USE_GRANTING
                                                 : IMEX_USE_NONE;
}

/* A claim is prepared, or the plugin has found IMEX READY for it. */
static bool is_relied_on(const struct host *h) {
        return !h->hurt && (node_is_used(h, h->memory.domain) || has_note(h, NOTE_JUDGED));
}

void node_kill(struct host *h) {
        if (node_has_living_imex(h) && is_relied_on(h))
                h->hurt = 1;
        h->process = h->imex = h->withdrawn = h->paused = h->terminating = h->view = 0;
}

void node_start(struct host *h) {
        h->process = h->last = h->pod;
}

static bool ends(const struct world *w, const struct host *h) {
        return h->memory.domain && (w->domain_ends >> (h->memory.domain - 1) & 1);
}

static const char *act(const struct world *w, struct host *h, enum decision_step step) {
        switch (step) {
        case DECISION_STAY:
                h->withdrawn = h->imex == DECISION_IMEX_STOPS;
                break;
        case DECISION_ENTER:
        case DECISION_START:
                if (is_living(h->imex))
                        return "a daemon starts a second IMEX on its node";
                h->imex = DECISION_IMEX_RUNS;
                h->withdrawn = h->paused = 0;
                break;
        case DECISION_WITHDRAW:
                h->withdrawn = 1;
                break;
        case DECISION_LEAVE:
        case DECISION_PAUSE:
                h->imex = DECISION_IMEX_STOPS;
                h->paused = step == DECISION_PAUSE;
                h->withdrawn = 1;
                if (is_relied_on(h) && !ends(w, h))
                        return "a daemon stops IMEX while a claim is prepared";
                break;
        case DECISION_FORGET:
                h->imex = DECISION_IMEX_NONE;
                h->paused = h->withdrawn = 0;
                break;
        case DECISION_EXIT:
                if (is_living(h->imex))
                        return "a daemon ends before its IMEX";
                if (h->terminating && is_relied_on(h) && !ends(w, h))
                        return "a daemon ends while a claim is prepared";
                if (h->terminating)
                        node_kill(h);
                h->imex = h->paused = h->withdrawn = h->view = 0; /* the container restarts */
                break;
        }
        return NULL;
}

bool node_daemon(struct run *r, struct world *w, unsigned node, unsigned plugin_steps, const char **broken) {
        struct host *h = &w->hosts[node];
        const struct host before = *h;
        if (!h->process)
                return false;
        bool withdrawn = h->withdrawn;
        enum imex_use use = look_at_use(h);
        bool orphan = plugin_steps >= PLUGIN_STEPS;
        unsigned n_steps = orphan ? plugin_steps - PLUGIN_STEPS + 1 : plugin_steps;
        for (unsigned i = 0; i < n_steps; i++) {
                struct host was = *h;
                unsigned domain = orphan ? h->orphan.domain : h->claim.domain;
                if (domain != h->memory.domain || !node_plugin(r, w, node, orphan, broken) || *broken ||
                    memcmp(&was, h, sizeof was) == 0)
                        return false;
        }
        struct host between = *h;
        const struct answer *x = ask(r, w, node, use, withdrawn);
        struct memory m = x->memory;
        bool inherited = h->memory.domain && h->memory.pod != h->process;
        m.served = h->memory.served;
        if (!row_recounts(r->row))
                m.seen = 0;
        if (!r->row->drains) /* whether the daemon is used matters only if it may be removed */
                m.served = 0;
        m.pod = !m.domain ? 0 : inherited && x->step != DECISION_ENTER ? h->memory.pod : h->process;
        *broken = act(w, h, x->step);
        h->memory = m;
        /* If the daemon changes nothing after the plugin's steps, the state is the same as without the
         * daemon. */
        return *broken || memcmp(plugin_steps ? &between : &before, h, sizeof between) != 0;
}

/* ---- IMEX ---- */

bool node_imex(struct world *w, unsigned node, bool clean) {
        struct host *h = &w->hosts[node];
        if (h->imex == DECISION_IMEX_RUNS && clean) {
                h->imex = DECISION_IMEX_READY;
                h->memory.ready = 1;
                if (node_is_used(h, h->memory.domain) && !h->withdrawn)
                        h->hurt = 0;
        } else if (h->imex == DECISION_IMEX_STOPS) {
                h->imex = clean ? DECISION_IMEX_ENDED : DECISION_IMEX_KILLED;
        } else {
                return false;
        }
        return true;
}

/* ---- the report ---- */

static struct report report_of(const struct row *row, const struct world *w, unsigned node) {
        const struct host *h = &w->hosts[node];
        const struct object *o = world_view(w, h->view);
        const struct memory *m = &h->memory;
        struct report r = { .pod = h->process,
                            .boot = h->boot,
                            .object = o ? o->uid : 0,
                            .domain = m->domain,
                            .index = m->index,
                            .epoch = m->epoch,
                            .ready = m->ready,
                            .served = m->served == h->process,
                            .seen = m->seen,
                            .recount = m->recount,
                            .n_left = m->n_left };
        memcpy(r.left, m->left, sizeof r.left);
        if (!row->drains)
                r.ready = r.served = 0;
        return r;
}

/* The seen epoch alone is no reason for a report, unless it is higher than the object's. */
bool node_is_reported(const struct row *row, const struct world *w, unsigned node) {
        const struct host *h = &w->hosts[node];
        const struct object *o = world_view(w, h->view);
        struct report is = report_of(row, w, node);
        if (!h->process || h->cut || h->process != h->pod ||
            (h->memory.domain && h->memory.pod != h->process))
                return true;
        if (!o || o->epoch >= h->memory.seen)
                is.seen = h->report.seen;
        return memcmp(&is, &h->report, sizeof is) == 0;
}

void node_report(const struct row *row, struct world *w, unsigned node) {
        w->hosts[node].report = report_of(row, w, node);
}
