/* SPDX-License-Identifier: Apache-2.0 */
/* shared: the pods, kubelets and claims of a world in which each owner has a shared claim. A kubelet acts as
 * test/simulate/claim_info.h describes. In this world it sees the end of a pod at once, unless its node is
 * cut off. */
#include "channels_state.h"

#include <string.h>

#include "base/mem.h"

enum kind {
        BIND,         /* the scheduler reserves the claim for a pod, and binds it */
        END,          /* the pod is deleted */
        FORCE,        /* it is force-deleted */
        DELETE_CLAIM, /* the claim is force-deleted, and created again */
        LOSE,         /* the answer of Unprepare is lost */
        CUT,
        REBOOT,
        FIRST_PROGRESS,
        HEAL = FIRST_PROGRESS,
        JOIN,    /* the kubelet's entry of the claim names the pod */
        ASK,     /* the plugin gets the channel from the fabric object */
        PREPARE, /* the plugin prepares the claim, and answers */
        START,   /* the containers start */
        REPLACE, /* the users delete the pods of the node, because one cannot start */
        STOP,    /* the containers end */
        RELEASE, /* the kubelet no longer needs the claim for the pod, or calls Unprepare */
        UNPREPARE,
        ANSWER,  /* the kubelet gets the answer of Unprepare */
        COLLECT, /* the plugin unprepares a claim that its kubelet has forgotten */
        KINDS
};
enum { MOST_STEPS = KINDS * HOSTS * OWNERS * PODS, OF_KIND = 32, OF_HOST = 16, OF_OWNER = 4 };

static unsigned count(unsigned bits) {
        return (unsigned)__builtin_popcount(bits);
}

static uint8_t without(uint8_t bits, unsigned pod) {
        return (uint8_t)(bits & ~(1U << pod));
}

/* ---- what others see ---- */

unsigned shared_in_use(const struct state *s) {
        unsigned owners = 0;
        for (unsigned n = 0; n < HOSTS; n++)
                for (unsigned o = 0; o < OWNERS; o++)
                        owners |= (unsigned)(s->machines[n].sharing[o].reserved != 0) << o;
        return owners;
}

unsigned shared_asks(const struct machine *m) {
        unsigned owners = 0;
        for (unsigned o = 0; o < OWNERS; o++)
                owners |= (unsigned)(m->sharing[o].refers && !m->sharing[o].prepared) << o;
        return owners;
}

/* The kubelet has ended the pod, and calls Unprepare for it. */
static bool has_ended(const struct sharing *x, unsigned pod) {
        return x->call && x->caller == pod;
}

/* The Prepare of a pod may run. */
static bool waits(const struct sharing *x) {
        bool any = false;
        for (unsigned p = 0; p < PODS; p++)
                any = any || (x->refers >> p & 1 && !has_ended(x, p));
        return any && !x->prepared;
}

/* The pod has been deleted or force-deleted. */
static bool is_over(const struct sharing *x, unsigned pod) {
        return !(x->reserved >> pod & 1) || x->ends >> pod & 1;
}

static bool has_containers(const struct sharing *x, unsigned pod) {
        return (x->runs | x->ready) >> pod & 1;
}

bool shared_is_quiet(const struct state *s) {
        for (unsigned n = 0; n < HOSTS; n++)
                for (unsigned o = 0; o < OWNERS; o++)
                        for (unsigned p = 0; p < PODS && !s->machines[n].cut; p++)
                                if (has_containers(&s->machines[n].sharing[o], p) &&
                                    is_over(&s->machines[n].sharing[o], p))
                                        return false;
        return true;
}

/* ---- events ---- */

static bool bind(struct state *s, const struct machine *m, unsigned o, unsigned p) {
        struct sharing *x = &s->machines[m - s->machines].sharing[o];
        bool used = (x->reserved | x->ends | x->refers | x->ready | x->runs) >> p & 1;
        if (used || m->cut || !(s->owners >> o & 1) || !channels_take(&s->changes))
                return false;
        x->reserved |= (uint8_t)(1U << p);
        return true;
}

static bool end(struct state *s, struct sharing *x, unsigned p) {
        if (is_over(x, p) || !channels_take(&s->changes))
                return false;
        x->ends |= (uint8_t)(1U << p);
        return true;
}

static bool force(struct state *s, struct sharing *x, unsigned p) {
        if (!(x->reserved >> p & 1) || !channels_take(&s->forces))
                return false;
        x->reserved = without(x->reserved, p);
        x->ends = without(x->ends, p);
        return true;
}

/* Its finalizers are removed, too. The pods that use it cannot use the next claim with this name. */
static bool delete_claim(struct state *s, unsigned o) {
        if (!(shared_in_use(s) >> o & 1) || !channels_take(&s->forces))
                return false;
        for (unsigned n = 0; n < HOSTS; n++)
                s->machines[n].sharing[o].reserved = s->machines[n].sharing[o].ends = 0;
        return true;
}

static bool lose(struct state *s, struct sharing *x) {
        if ((x->call != CALL_BEGUN && x->call != CALL_DONE) || !channels_take(&s->lost))
                return false;
        x->call = CALL_LOST;
        return true;
}

/* A Prepare that has begun continues with the fabric object as the plugin saw it last. */
static bool cut(const struct channels_row *row, struct state *s, struct machine *m) {
        unsigned id;
        if (m->cut || !channels_take(&s->cuts))
                return false;
        m->cut = 1;
        for (unsigned o = 0; o < row->owners; o++)
                if (waits(&m->sharing[o]) && channels_may_prepare(row, s, o, &id))
                        m->offers |= (uint8_t)channels_bit(id, o);
        return true;
}

/* The plugin sees the fabric object and reports before the controller reads that the kubelet has renewed its
 * Lease. */
static bool heal(const struct state *s, struct machine *m) {
        if (!m->cut)
                return false;
        m->cut = m->offers = 0;
        (void)channels_report(m, s->object);
        return true;
}

/* The kubelet keeps its entries. The plugin forgets claims that were prepared before. */
static bool reboot(struct state *s, struct machine *m) {
        if (m->cut || !channels_take(&s->reboots))
                return false;
        m->held = m->coming = 0;
        for (unsigned o = 0; o < OWNERS; o++) {
                struct sharing *x = &m->sharing[o];
                x->runs = x->ready = x->prepared = x->caller = 0;
                x->call = CALL_NONE;
                memset(x->id, 0, sizeof x->id);
        }
        return true;
}

/* ---- a node ---- */

static bool join(const struct channels_row *row, const struct machine *m, struct sharing *x, unsigned p) {
        if (m->cut || is_over(x, p) || x->refers >> p & 1 || has_containers(x, p) ||
            (x->call && !row->old_kubelets))
                return false;
        x->refers |= (uint8_t)(1U << p);
        if (x->prepared)
                x->ready |= (uint8_t)(1U << p);
        return true;
}

static bool ask(const struct channels_row *row, const struct state *s, struct machine *m, unsigned o) {
        const struct sharing *x = &m->sharing[o];
        unsigned id;
        if (m->coming || !waits(x) || (x->call && !row->old_kubelets))
                return false;
        if (m->held & channels_bits_of(o))
                m->coming = (uint8_t)(m->held & channels_bits_of(o));
        else if (m->cut)
                m->coming = (uint8_t)(m->offers & channels_bits_of(o));
        else if (channels_may_prepare(row, s, o, &id))
                m->coming = (uint8_t)channels_bit(id, o);
        return m->coming != 0;
}

/* A pod that is force-deleted while Prepare runs can start before its kubelet sees this. */
static bool prepare(struct machine *m, unsigned o) {
        struct sharing *x = &m->sharing[o];
        if (!(m->coming & channels_bits_of(o)))
                return false;
        m->held |= m->coming;
        m->coming = 0;
        x->prepared = x->refers != 0;
        for (unsigned p = 0; p < PODS; p++)
                if (x->refers >> p & 1 && !(x->runs >> p & 1) && !has_ended(x, p))
                        x->ready |= (uint8_t)(1U << p);
        return true;
}

static bool can_start(const struct machine *m, unsigned o, unsigned p) {
        const struct sharing *x = &m->sharing[o];
        return x->ready >> p & 1 && x->refers && x->prepared && m->held & channels_bits_of(o);
}

static bool start(struct machine *m, unsigned o, unsigned p) {
        struct sharing *x = &m->sharing[o];
        if (!can_start(m, o, p))
                return false;
        x->ready = without(x->ready, p);
        x->runs |= (uint8_t)(1U << p);
        x->id[p] = m->held & channels_bit(1, o) ? 1 : 2;
        return true;
}

static bool replace(const struct machine *m, struct sharing *x, unsigned o, unsigned p) {
        if (!(x->ready >> p & 1) || is_over(x, p) || can_start(m, o, p))
                return false;
        x->ends = x->reserved;
        return true;
}

static bool stop(const struct machine *m, struct sharing *x, unsigned p) {
        if (m->cut || !is_over(x, p) || !has_containers(x, p))
                return false;
        x->runs = without(x->runs, p);
        x->ready = without(x->ready, p);
        x->id[p] = 0;
        return true;
}

/* The pod has ended. Then the claim is no longer reserved for it. */
static void finish(struct sharing *x, unsigned p) {
        if (x->ends >> p & 1)
                x->reserved = without(x->reserved, p);
        x->ends = without(x->ends, p);
        x->refers = without(x->refers, p);
        if (x->call == CALL_LOST && x->caller == p)
                x->call = x->caller = 0; /* it does not call again for this pod */
}

static bool release(const struct channels_row *row, const struct machine *m, struct sharing *x, unsigned o,
                    unsigned p) {
        bool known = (x->reserved | x->ends | x->refers) >> p & 1, refers = x->refers >> p & 1;
        bool busy = m->coming & channels_bits_of(o) || (x->call && x->call != CALL_LOST && x->caller == p);
        if (m->cut || !known || !is_over(x, p) || has_containers(x, p) || busy)
                return false;
        if (!x->refers || (!row->old_kubelets && !refers) || count(x->refers) > 1) {
                finish(x, p);
        } else if (x->call == CALL_NONE || x->call == CALL_LOST) {
                x->call = CALL_BEGUN;
                x->caller = (uint8_t)p;
        } else {
                return false;
        }
        return true;
}

static bool unprepare(struct machine *m, unsigned o) {
        struct sharing *x = &m->sharing[o];
        if (x->call != CALL_BEGUN)
                return false;
        m->held &= (uint8_t)~channels_bits_of(o);
        x->call = CALL_DONE;
        return true;
}

static bool answer(struct sharing *x) {
        if (x->call != CALL_DONE)
                return false;
        finish(x, x->caller);
        x->refers = x->prepared = x->call = x->caller = 0;
        return true;
}

/* Twenty minutes after the claim was deleted. */
static bool collect(const struct state *s, struct machine *m, unsigned o) {
        const struct sharing *x = &m->sharing[o];
        if (m->cut || x->refers || x->runs || m->coming || s->owners >> o & 1 ||
            !(m->held & channels_bits_of(o)))
                return false;
        m->held &= (uint8_t)~channels_bits_of(o);
        return true;
}

/* ---- steps ---- */

static unsigned number(unsigned kind, unsigned n, unsigned o, unsigned p) {
        return SHARED_FIRST + OF_KIND * kind + OF_HOST * n + OF_OWNER * o + p;
}

bool shared_step(const struct channels_row *row, struct state *s, unsigned step) {
        unsigned x = step - SHARED_FIRST, o = x % OF_HOST / OF_OWNER, p = x % OF_OWNER;
        struct machine *m = &s->machines[x % OF_KIND / OF_HOST];
        struct sharing *claim = &m->sharing[o];
        switch (x / OF_KIND) {
        case BIND:
                return bind(s, m, o, p);
        case END:
                return end(s, claim, p);
        case FORCE:
                return force(s, claim, p);
        case DELETE_CLAIM:
                return delete_claim(s, o);
        case LOSE:
                return lose(s, claim);
        case CUT:
                return cut(row, s, m);
        case REBOOT:
                return reboot(s, m);
        case HEAL:
                return heal(s, m);
        case JOIN:
                return join(row, m, claim, p);
        case ASK:
                return ask(row, s, m, o);
        case PREPARE:
                return prepare(m, o);
        case START:
                return start(m, o, p);
        case REPLACE:
                return replace(m, claim, o, p);
        case STOP:
                return stop(m, claim, p);
        case RELEASE:
                return release(row, m, claim, o, p);
        case UNPREPARE:
                return unprepare(m, o);
        case ANSWER:
                return answer(claim);
        case COLLECT:
                return collect(s, m, o);
        default:
                return false;
        }
}

bool shared_is_progress(unsigned step) {
        return (step - SHARED_FIRST) / OF_KIND >= FIRST_PROGRESS;
}

static bool is_of_pods(unsigned kind) {
        return kind == BIND || kind == END || kind == FORCE || kind == JOIN || kind == START ||
               kind == REPLACE || kind == STOP || kind == RELEASE;
}

static bool is_of_owners(unsigned kind) {
        return kind != CUT && kind != REBOOT && kind != HEAL;
}

/* The second node has one pod of each owner. */
size_t shared_steps(const struct channels_row *row, const uint16_t **ret) {
        /* The steps of channels.c, except those of claims and of deleted Nodes. */
        static const uint16_t others[] = { 8, 9, 10, 24, 32, 40, 48, 80, 84, 88 };
        static uint16_t steps[MOST_STEPS + ARRAY_LEN(others)];
        size_t n_steps = 0;
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                steps[n_steps++] = others[i];
        for (unsigned kind = 0; kind < KINDS; kind++)
                for (unsigned n = 0; n < HOSTS; n++)
                        for (unsigned o = 0; o < (is_of_owners(kind) ? row->owners : 1); o++)
                                for (unsigned p = 0; p < (is_of_pods(kind) && n == 0 ? PODS : 1); p++)
                                        if (kind != DELETE_CLAIM || n == 0)
                                                steps[n_steps++] = (uint16_t)number(kind, n, o, p);
        *ret = steps;
        return n_steps;
}

/* ---- promises ---- */

/* Whether something on a node may use the channel of the owner. */
static bool may_use(const struct machine *m, unsigned id, unsigned o) {
        const struct sharing *x = &m->sharing[o];
        bool runs = false;
        for (unsigned p = 0; p < PODS; p++)
                runs = runs || (x->runs >> p & 1 && x->id[p] == id);
        return runs || m->held & channels_bit(id, o);
}

/* failure: pods on several nodes share a claim, and any fault strikes at any step -> no channel has two
 * owners [search] */
const char *shared_check(const struct channels_row *row, const struct state *s) {
        for (unsigned id = 1; id <= row->ids; id++) {
                unsigned n = 0;
                for (unsigned o = 0; o < OWNERS; o++)
                        n += may_use(&s->machines[0], id, o) || may_use(&s->machines[1], id, o);
                if (n > 1)
                        return "a channel has two owners";
        }
        return NULL;
}

static bool has_entry(const struct table *t, unsigned id, unsigned o) {
        for (unsigned i = 0; i < t->n; i++)
                if (t->e[i].id == id && t->e[i].owner == o)
                        return true;
        return false;
}

static bool is_reported(const struct state *s, unsigned id, unsigned o) {
        return (s->machines[0].reported.held | s->machines[1].reported.held) & channels_bit(id, o);
}

/* failure: a node reports a channel, or its owner's shared claim is in use -> it has no other owner [search]
 */
const char *shared_check_decision(const struct state *before, const struct state *after) {
        for (unsigned i = 0; i < after->table.n; i++) {
                const struct entry *e = &after->table.e[i];
                if (has_entry(&before->table, e->id, e->owner))
                        continue;
                for (unsigned o = 0; o < OWNERS; o++) {
                        if (o == e->owner)
                                continue;
                        if (is_reported(before, e->id, e->owner))
                                continue; /* the report takes precedence over the table */
                        if (is_reported(before, e->id, o))
                                return "a channel that a node reports gets another owner";
                        if (has_entry(&before->table, e->id, o) && shared_in_use(before) >> o & 1)
                                return "a channel gets another owner while the claim of its owner is in use";
                }
        }
        return NULL;
}

/* Pods wait if there are more owners than channels, and if a kubelet has forgotten a claim that holds one. */
bool shared_is_served(const struct channels_row *row, const struct state *s) {
        unsigned wanting = 0, lost = 0;
        bool all = true;
        for (unsigned o = 0; o < row->owners; o++) {
                bool wants = false, forgotten = false;
                for (unsigned n = 0; n < HOSTS; n++) {
                        const struct sharing *x = &s->machines[n].sharing[o];
                        for (unsigned p = 0; p < PODS; p++) {
                                bool has = !is_over(x, p);
                                wants = wants || has;
                                all = all && (!has || !(s->owners >> o & 1) || x->runs >> p & 1);
                        }
                        forgotten = forgotten || (s->machines[n].held & channels_bits_of(o) && !x->refers);
                }
                wanting += wants;
                lost += forgotten && !wants && row->old_kubelets;
        }
        return all || wanting + lost > row->ids;
}

void shared_print(unsigned step, FILE *out) {
        static const char *const words[KINDS] = { [BIND] = "is bound, and the claim is reserved for it",
                                                  [END] = "is deleted",
                                                  [FORCE] = "is force-deleted",
                                                  [DELETE_CLAIM] = "the claim is force-deleted",
                                                  [LOSE] = "the answer of Unprepare is lost",
                                                  [CUT] = "loses its network",
                                                  [REBOOT] = "reboots",
                                                  [HEAL] = "has its network again",
                                                  [JOIN] = "is in the kubelet's entry of the claim",
                                                  [ASK] = "the plugin gets the channel",
                                                  [PREPARE] = "the plugin prepares the claim",
                                                  [START] = "starts",
                                                  [REPLACE] = "cannot start: the pods are deleted",
                                                  [STOP] = "ends",
                                                  [RELEASE] = "no longer needs the claim",
                                                  [UNPREPARE] = "the plugin unprepares the claim",
                                                  [ANSWER] = "the kubelet deletes its entry",
                                                  [COLLECT] = "the plugin unprepares a forgotten claim" };
        unsigned x = step - SHARED_FIRST, kind = x / OF_KIND;
        fprintf(out, "n%u", x % OF_KIND / OF_HOST + 1);
        if (is_of_owners(kind))
                fprintf(out, ", owner %u", x % OF_HOST / OF_OWNER + 1);
        if (is_of_pods(kind))
                fprintf(out, ", pod %u", x % OF_OWNER + 1);
        fprintf(out, ": %s\n", words[kind]);
}
