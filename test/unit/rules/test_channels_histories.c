/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories of a partition: no channel ever has two holders that may be alive. The world has four
 * nodes and six ComputeDomains that share three channels. Plugins crash. Nodes are cut off, powered off and
 * taken out of service. Claims are force-deleted, and ComputeDomains are created and deleted. The table is
 * deleted, emptied, and restored from an old copy. Two controllers lead at once, each with a view that is
 * some time old. The clocks of the nodes are up to five minutes wrong. In some histories a plugin also
 * reports IDs that no ComputeDomain can have. A container lives until its node's kubelet has learnt that its
 * claim was deleted, or until the node is off. CHANNELS_HISTORIES is the number of histories. A failure names
 * its seed. */
#include "rules/channels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/names.h"

#define FABRIC "3f7c1b2a-1111-2222-3333-444455556666.1"

enum {
        NODES = 4,
        DOMAINS = 6,
        COUNT = 4,
        HOLDS = 8,
        STEPS = 160,
        HISTORIES = 10000,
        ENTRIES = 64,
        START = 1000000,
        LEASES_PAUSE_S = 15, /* as in controller/leases */
        LIAR = NODES - 1
};

/* A plugin with false reports adds these IDs. */
static const int64_t false_ids[] = { 0, FABRIC_CHANNELS_MAX, FABRIC_CHANNELS_MAX - 1 };

static const char *const node_names[NODES] = { "node-0", "node-1", "node-2", "node-3" };

struct hold {
        int64_t id;
        int domain; /* generation and index: see uid_of() */
};

struct report {
        bool there, ready;
        int64_t ready_since;
        int object; /* generation of the table that it has seen; 0: none */
        struct hold held[HOLDS];
        size_t n;
};

struct table {
        int object; /* generation, 0: there is none */
        int64_t rv, created;
        int table_of;
        bool is_lost; /* it has the condition that it is lost */
        int64_t next, channel_count;
        struct {
                int64_t id;
                int domain;
                int64_t releasing;
        } e[ENTRIES];
        size_t n;
        bool members[NODES];
};

/* The content of the API server. */
struct api {
        struct table table;
        struct report reports[NODES];
        bool node_there[NODES], out_of_service[NODES];
        int64_t node_gone_since[NODES];
        int64_t renewed[NODES];
        int domains[DOMAINS]; /* its generation; 0: it does not exist */
        bool deleting[DOMAINS];
        int64_t claims[NODES][DOMAINS]; /* created; 0: none */
        int claim_of[NODES][DOMAINS];   /* the ComputeDomain's generation */
};

struct machine {
        bool off, cut, plugin_up;
        struct hold held[HOLDS]; /* prepared, and its container may run */
        size_t n;
        struct hold coming; /* has an ID, and is not prepared yet; domain 0: none */
        int64_t plugin_since;
        int64_t ahead; /* its clock */
};

struct controller {
        struct api view;
        struct table lost; /* what it knows of a deleted table */
        int64_t leases_at, leases_before, renewed[NODES], alive_after[NODES];
};

struct world {
        uint64_t random;
        int64_t now;
        struct api api;
        struct table copy; /* an old copy that somebody has kept */
        struct machine machines[NODES];
        struct controller controllers[2];
        int generation;
        char uids[STEPS * 2 + DOMAINS + 2][40];
        uint64_t seed;
        bool lies;               /* the plugin of the node LIAR */
        unsigned trouble;        /* probability of faults of nodes and table, in eighths */
        size_t reused, assigned; /* counted, so that a history without events does not pass */
};

static unsigned dice(struct world *w, unsigned n) {
        w->random = w->random * 6364136223846793005U + 1442695040888963407U;
        return (unsigned)(w->random >> 33) % n;
}

static const char *uid_of(struct world *w, int generation) {
        char *s = w->uids[generation];
        if (!*s)
                snprintf(s, 40, "%08d-0000-4000-8000-000000000000", generation);
        return s;
}

static int generation_of(const char *uid) {
        return atoi(uid);
}

/* ---- the invariant ---- */

static void check(const struct world *w) {
        for (int a = 0; a < NODES; a++)
                for (size_t i = 0; i < w->machines[a].n; i++)
                        for (int b = a; b < NODES; b++)
                                for (size_t k = b == a ? i + 1 : 0; k < w->machines[b].n; k++) {
                                        const struct hold *x = &w->machines[a].held[i],
                                                          *y = &w->machines[b].held[k];
                                        if (x->id == y->id && x->domain != y->domain)
                                                fail_msg("seed %llu, at %lld: channel %lld has two holders, "
                                                         "%d on %s and "
                                                         "%d on %s",
                                                         (unsigned long long)w->seed,
                                                         (long long)(w->now - START), (long long)x->id,
                                                         x->domain, node_names[a], y->domain, node_names[b]);
                                }
}

/* ---- a node ---- */

static void unprepare(struct machine *m, size_t i) {
        m->held[i] = m->held[--m->n];
}

static bool holds(const struct machine *m, int domain) {
        for (size_t i = 0; i < m->n; i++)
                if (m->held[i].domain == domain)
                        return true;
        return false;
}

static bool is_claimed(const struct world *w, int node, int domain) {
        for (int d = 0; d < DOMAINS; d++)
                if (w->api.claims[node][d] && w->api.claim_of[node][d] == domain)
                        return true;
        return false;
}

static void run_node(struct world *w, int n) {
        struct machine *m = &w->machines[n];
        struct report *r = &w->api.reports[n];
        if (m->off || m->cut)
                return;
        w->api.renewed[n] = w->now + m->ahead;
        r->ready = r->there && m->plugin_up;
        /* The kubelet ends containers without a claim. The plugin releases their channel, if it runs. */
        for (size_t i = 0; m->plugin_up && i < m->n;)
                if (!is_claimed(w, n, m->held[i].domain) && dice(w, 4))
                        unprepare(m, i);
                else
                        i++;
        if (!m->plugin_up)
                return;
        if (m->coming.domain && m->n < HOLDS && !holds(m, m->coming.domain))
                m->held[m->n++] = m->coming;
        m->coming.domain = 0;
        for (int d = 0; d < DOMAINS && !m->coming.domain; d++) {
                int domain = w->api.claim_of[n][d];
                if (!w->api.claims[n][d] || holds(m, domain) || w->api.domains[d] != domain ||
                    w->api.deleting[d])
                        continue;
                for (size_t i = 0; i < w->api.table.n && w->api.table.table_of == w->api.table.object; i++)
                        if (w->api.table.e[i].domain == domain && !w->api.table.e[i].releasing) {
                                m->coming = (struct hold){ w->api.table.e[i].id, domain };
                                break;
                        }
        }
        if (!r->there || dice(w, 4)) {
                if (!r->there || !r->ready)
                        r->ready_since = w->now;
                *r = (struct report){ .there = true,
                                      .ready = true,
                                      .ready_since = r->ready_since > m->plugin_since ? r->ready_since
                                                                                      : m->plugin_since,
                                      .object = w->api.table.object,
                                      .n = m->n };
                memcpy(r->held, m->held, sizeof r->held);
        }
}

/* ---- a controller ---- */

static void ask_leases(struct world *w, struct controller *c) {
        if (c->leases_at && w->now < c->leases_at + LEASES_PAUSE_S)
                return;
        for (int n = 0; n < NODES; n++)
                if (c->leases_at && w->api.renewed[n] > c->renewed[n])
                        c->alive_after[n] = c->leases_at;
        c->leases_before = c->leases_at;
        c->leases_at = w->now;
        memcpy(c->renewed, w->api.renewed, sizeof c->renewed);
}

/* The API server answers, independently of the view. */
static bool is_confirmed(const struct world *w, int domain, bool lives) {
        for (int d = 0; d < DOMAINS && !lives; d++)
                if (w->api.domains[d] == domain && !w->api.deleting[d])
                        return false;
        for (int n = 0; n < NODES; n++)
                if (is_claimed(w, n, domain))
                        return false;
        return true;
}

static size_t gather_owners(struct world *w, const struct controller *c, struct channels_owner *owners) {
        int ids[DOMAINS + ENTRIES + NODES * HOLDS];
        size_t n = 0, kept = 0;
        for (int d = 0; d < DOMAINS; d++)
                if (c->view.domains[d])
                        ids[n++] = c->view.domains[d];
        for (size_t i = 0; i < c->view.table.n; i++)
                ids[n++] = c->view.table.e[i].domain;
        for (int x = 1; x < (int)ARRAY_LEN(w->uids); x++) /* sorted, each once */
                for (size_t i = 0; i < n; i++)
                        if (ids[i] == x) {
                                struct channels_owner *o = &owners[kept++];
                                *o = (struct channels_owner){ .uid = uid_of(w, x),
                                                              .ns = "ns",
                                                              .name = "name" };
                                for (int d = 0; d < DOMAINS; d++) {
                                        if (c->view.domains[d] == x) {
                                                o->lives = !c->view.deleting[d];
                                                o->ends = c->view.deleting[d];
                                                o->ns = d % 2 ? "team-a" : "team-b";
                                        }
                                        for (int k = 0; k < NODES; k++)
                                                if (c->view.claims[k][d] && c->view.claim_of[k][d] == x) {
                                                        o->claimed = o->wants = true;
                                                        if (!o->oldest || c->view.claims[k][d] < o->oldest)
                                                                o->oldest = c->view.claims[k][d];
                                                }
                                }
                                o->confirmed = dice(w, 3) && is_confirmed(w, x, o->lives);
                                break;
                        }
        return kept;
}

static bool is_gone(const struct world *w, const struct api *v, int n) {
        return v->out_of_service[n] || (!v->node_there[n] && w->now - v->node_gone_since[n] >= 60);
}

static void fill_table(struct world *w, const struct table *t, struct compute_domain_fabric *f,
                       struct arena *a) {
        *f = (struct compute_domain_fabric){
                .o.meta = { .name = FABRIC, .uid = uid_of(w, t->object), .rv = "1", .created = t->created },
                .table_of = t->table_of ? uid_of(w, t->table_of) : NULL,
                .conditions = arena_alloc(a, sizeof *f->conditions),
                .n_conditions = t->is_lost,
                .next = t->next,
                .channel_count = t->channel_count,
                .channels = arena_alloc(a, (t->n + 1) * sizeof *f->channels),
                .members = arena_alloc(a, (NODES + 1) * sizeof *f->members),
        };
        *f->conditions = (struct condition){ FABRIC_CHANNELS_INCOMPLETE, "True", "", "", 0 };
        for (size_t i = 0; i < t->n; i++)
                f->channels[f->n_channels++] = (struct fabric_channel){
                        t->e[i].id, { CD_KIND, "ns", "name", uid_of(w, t->e[i].domain) }, t->e[i].releasing
                };
        for (int n = 0; n < NODES; n++)
                if (t->members[n])
                        f->members[f->n_members++] = node_names[n];
}

static void keep_table(const struct compute_domain_fabric *f, struct table *t) {
        t->next = f->next;
        t->channel_count = f->channel_count;
        t->table_of = f->table_of ? generation_of(f->table_of) : 0;
        t->is_lost = condition_find(f->conditions, f->n_conditions, FABRIC_CHANNELS_INCOMPLETE) != NULL;
        t->n = 0;
        assert_true(f->n_channels <= ENTRIES);
        for (size_t i = 0; i < f->n_channels; i++) {
                t->e[t->n].id = f->channels[i].id;
                t->e[t->n].domain = generation_of(f->channels[i].owner.uid);
                t->e[t->n++].releasing = f->channels[i].releasing;
        }
        for (int n = 0; n < NODES; n++)
                t->members[n] = has_string((const char *const *)f->members, f->n_members, node_names[n]);
}

static void run_controller(struct world *w, struct controller *c) {
        struct arena *a = arena_new(8192);
        struct channels_node nodes[NODES];
        struct channel_report_hold held[NODES][HOLDS + ARRAY_LEN(false_ids)];
        struct channels_owner owners[DOMAINS + ENTRIES];
        struct compute_domain_fabric old = { 0 }, lost;
        struct channels_decision d;
        const struct api *v = &c->view;
        if (v->table.object)
                fill_table(w, &v->table, &old, a);
        fill_table(w, &c->lost, &lost, a);
        for (int n = 0; n < NODES; n++) {
                const struct report *r = &v->reports[n];
                nodes[n] = (struct channels_node){
                        .name = node_names[n],
                        .gone = is_gone(w, v, n),
                        .states = v->node_there[n],
                        .stated = START - 1000,
                        .is_ready = true,
                        .reported = r->there,
                        .settled = r->there && r->ready && w->now - r->ready_since >= CHANNELS_SETTLED_S,
                        .uid = r->there ? (r->object ? uid_of(w, r->object) : "") : NULL,
                        .count = r->there ? COUNT : -1,
                        .held = held[n],
                        .n_held = r->n,
                        .alive_after = c->alive_after[n],
                };
                for (size_t i = 0; i < r->n; i++)
                        held[n][i] =
                                (struct channel_report_hold){ r->held[i].id, uid_of(w, r->held[i].domain) };
                for (size_t i = 0; w->lies && n == LIAR && i < ARRAY_LEN(false_ids); i++)
                        held[n][nodes[n].n_held++] =
                                (struct channel_report_hold){ false_ids[i], uid_of(w, 1) };
        }
        int64_t *since = arena_alloc(a, (old.n_channels + 1) * sizeof *since);
        for (size_t i = 0; i < old.n_channels; i++)
                since[i] = old.channels[i].releasing;
        struct channels_facts f = { .fabric = FABRIC,
                                    .old = v->table.object ? &old : NULL,
                                    .complete_since = old.o.meta.created,
                                    .releasing_since = since,
                                    .remembered = lost.channels,
                                    .n_remembered = lost.n_channels,
                                    .nodes = nodes,
                                    .n_nodes = NODES,
                                    .owners = owners,
                                    .n_owners = gather_owners(w, c, owners),
                                    .leases_at = c->leases_at,
                                    .leases_before = c->leases_before,
                                    .now = w->now };
        channels_decide(&f, a, &d);
        assert_null(channels_check(&f, &d, a));
        if (d.ask_leases)
                ask_leases(w, c);
        /* One PATCH in flight, with the version of its object. A crash may lose the answer. */
        if (d.step == CHANNELS_CREATE && !w->api.table.object) {
                w->api.table = (struct table){ .object = w->generation++,
                                               .rv = w->api.table.rv + 1,
                                               .created = w->now };
                keep_table(&d.fabric, &w->api.table);
        } else if (d.step == CHANNELS_PATCH && w->api.table.object == v->table.object &&
                   w->api.table.rv == v->table.rv) {
                keep_table(&d.fabric, &w->api.table);
                w->api.table.rv++;
                c->lost.n = 0;
        }
        if (dice(w, 4))
                c->view.table = w->api.table; /* the view after the answer */
        arena_free(a);
}

static void observe(struct world *w, struct controller *c) {
        if (c->view.table.object && !w->api.table.object && dice(w, 2))
                c->lost = c->view.table; /* the controller saw the deletion */
        c->view = w->api;
}

static void restart(struct controller *c) {
        *c = (struct controller){ .view = c->view };
}

/* ---- the events ---- */

static void happen(struct world *w) {
        int n = (int)dice(w, NODES), d = (int)dice(w, DOMAINS);
        struct machine *m = &w->machines[n];
        switch (dice(w, 8) < w->trouble ? dice(w, 17) : dice(w, 10)) {
        case 0: /* a ComputeDomain is created, or its deletion begins */
        case 1:
                if (!w->api.domains[d])
                        w->api.domains[d] = w->generation++, w->api.deleting[d] = false;
                else if (dice(w, 2))
                        w->api.deleting[d] = true;
                break;
        case 2: /* it is deleted, even while it is in use */
                if (w->api.deleting[d])
                        w->api.domains[d] = 0, w->api.deleting[d] = false;
                break;
        case 3: /* a claim is allocated */
        case 4:
        case 5:
        case 6:
                if (w->api.domains[d] && !w->api.claims[n][d] && !m->off && w->api.node_there[n] && !m->cut) {
                        w->api.claims[n][d] = w->now;
                        w->api.claim_of[n][d] = w->api.domains[d];
                }
                break;
        case 7: /* the claim is deleted in order: after its container has ended */
        case 8:
                if (w->api.claims[n][d] && !m->off && !m->cut && m->plugin_up) {
                        for (size_t i = 0; i < m->n; i++)
                                if (m->held[i].domain == w->api.claim_of[n][d]) {
                                        unprepare(m, i);
                                        break;
                                }
                        m->coming.domain = 0;
                        w->api.claims[n][d] = 0;
                }
                break;
        case 9: /* or it is force-deleted */
                w->api.claims[n][d] = 0;
                break;
        case 10:
                m->cut = !m->cut;
                break;
        case 11: /* the plugin crashes or restarts; its checkpoint stays */
                m->plugin_up = !m->plugin_up;
                m->plugin_since = w->now;
                m->coming.domain = 0;
                if (dice(w, 2)) /* and its Pod is deleted */
                        w->api.reports[n] = (struct report){ 0 };
                break;
        case 12: /* power fails, and its containers end */
                m->off = !m->off;
                m->n = 0;
                m->coming.domain = 0;
                m->plugin_since = w->now;
                w->api.out_of_service[n] = m->off && dice(w, 2);
                break;
        case 13: /* somebody deletes the Node of a machine that is off, or the Node registers again */
                if (m->off && w->api.node_there[n])
                        w->api.node_there[n] = false, w->api.node_gone_since[n] = w->now;
                else if (!m->off)
                        w->api.node_there[n] = true;
                break;
        case 14: /* the table is deleted */
                if (!dice(w, 4)) {
                        w->api.table.object = 0;
                        w->api.table.rv++;
                }
                break;
        case 15: /* somebody keeps a copy of the table, and restores it: another object with the old content,
                    or with none */
                if (w->api.table.object && dice(w, 2)) {
                        w->copy = w->api.table;
                } else if (w->copy.object && !dice(w, 3)) {
                        struct table old = w->copy;
                        old.object = w->generation++;
                        old.rv = w->api.table.rv + 1;
                        old.created = w->now;
                        old.n = dice(w, 2) ? old.n : 0;
                        w->api.table = old;
                }
                break;
        case 16:
                restart(&w->controllers[dice(w, 2)]);
                break;
        default:
                break;
        }
        if (!m->off && w->api.out_of_service[n] && dice(w, 2))
                w->api.out_of_service[n] = false; /* it is in service again, and its containers have ended */
        if (!m->off && !m->cut)
                w->api.node_there[n] = true;
}

static void play(uint64_t seed) {
        struct world *w = calloc(1, sizeof *w);
        w->seed = seed;
        w->random = seed * 2862933555777941757U + 3037000493U;
        w->now = START;
        w->trouble = dice(w, 6);
        w->lies = seed % 8 == 7;
        w->generation = 1;
        for (int n = 0; n < NODES; n++) {
                w->machines[n].plugin_up = w->api.node_there[n] = true;
                w->machines[n].plugin_since = START - 1000;
                w->machines[n].ahead = ((int64_t)(seed + 3 * (uint64_t)n) % 7 - 3) * 100;
        }
        for (int step = 0; step < STEPS; step++) {
                w->now += 1 + dice(w, dice(w, 3) ? 3 : 70);
                happen(w);
                for (int n = 0; n < NODES; n++)
                        run_node(w, n);
                check(w);
                for (int i = 0; i < 2; i++) {
                        if (dice(w, 3))
                                observe(w, &w->controllers[i]);
                        if (i == 0 || !dice(w, 4)) /* usually one of them leads */
                                run_controller(w, &w->controllers[i]);
                }
        }
        free(w);
}

/* The seeds that once broke the invariant, found in a million histories: the table was lost, and a node that
 * was cut off reported channels from before it was out of service. */
static const uint64_t corpus[] = { 743682 };

/* failure: controllers, plugins and nodes fail at random -> no channel has two holders that may be alive */
static void no_channel_has_two_holders_that_may_be_alive(void **state) {
        const char *text = getenv("CHANNELS_HISTORIES"), *first = getenv("CHANNELS_SEED");
        uint64_t n = text ? strtoull(text, NULL, 10) : HISTORIES,
                 seed = first ? strtoull(first, NULL, 10) : 1;
        for (size_t i = 0; i < ARRAY_LEN(corpus); i++)
                play(corpus[i]);
        for (uint64_t i = 0; i < n; i++)
                play(seed + i);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_channel_has_two_holders_that_may_be_alive),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
