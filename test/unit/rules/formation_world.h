/* SPDX-License-Identifier: Apache-2.0 */
/* formation_world: what is known of a domain, a formation of it, and what that came to. */
#pragma once

#include "../api/fake.h"

#include "rules/formation.h"

struct world {
        struct arena *a;
        struct seat_facts nodes[8];
        size_t n_nodes;
        const struct clique *cliques[4], *lost[4];
        size_t n_cliques, n_lost;
        int64_t max_nodes;
        bool ip_mode, stale, unsure; /* unsure: the server has not said who is not wanted */
        const char *adopted;         /* annotation of the ComputeDomain */
        int64_t now;
        struct formation f;
        struct formation_memory *memory;
};

static inline int setup(void **state) {
        struct world *w = xnew(struct world);
        w->a = arena_new(4096);
        w->max_nodes = 18;
        *state = w;
        return 0;
}

static inline int teardown(void **state) {
        struct world *w = *state;
        arena_free(w->a);
        free(w);
        return 0;
}

static inline struct seat_facts *add(struct world *w, const char *name, const char *clique) {
        w->nodes[w->n_nodes] = (struct seat_facts){
                .name = name, .node = fake_node(w->a, name, true), .wanted = true, .clique = clique
        };
        return &w->nodes[w->n_nodes++];
}

static inline void clique(struct world *w, const char *id, const char *daemons, const char *more_meta) {
        w->cliques[w->n_cliques++] = fake_clique_json(
                w->a,
                "{'metadata':{'name':'c-%s','namespace':'driver','uid':'u','resourceVersion':'7','labels':{"
                "'" CD_LABEL "':'" UID_A "','" CD_LABEL_CLIQUE "':'%s'}%s},'daemons':[%s]}",
                id, id, more_meta, daemons);
}

#define ENTRY(node, ip, clique, index, status)                                                               \
        "{'nodeName':'" node "','ipAddress':'" ip "','cliqueID':'" clique "','index':" #index                \
        ",'status':'" status "'}"
#define INFIX ",'annotations':{'" CD_ANNOTATION_INFIX "':'abc','" CD_ANNOTATION_NUM_NODES "':'0'}"

static inline void make(struct world *w) {
        for (size_t i = 0; i < w->n_nodes; i++)
                w->nodes[i].released = !w->nodes[i].wanted && !w->unsure;
        struct formation_input in = {
                .cd = fake_cd_json(w->a,
                                   "{'metadata':{'name':'cd','namespace':'w','uid':'" UID_A
                                   "','resourceVersion':'1','annotations':{'" CD_ANNOTATION_ADOPTED
                                   "':'%s'}},'spec':{'numNodes':0,'channel':{'"
                                   "resourceClaimTemplate':{'name':'t'}}}}",
                                   w->adopted ? w->adopted : ""),
                .stale = w->stale,
                .nodes = w->nodes,
                .n_nodes = w->n_nodes,
                .cliques = w->cliques,
                .n_cliques = w->n_cliques,
                .lost = w->lost,
                .n_lost = w->n_lost,
                .max_nodes = w->max_nodes,
                .dns_names = !w->ip_mode,
                .infix = "abc",
                .now = w->now,
                .memory = w->memory,
        };
        formation_make(&in, w->a, &w->f);
}

static inline const struct formed_seat *member(const struct world *w, const char *node) {
        for (size_t i = 0; i < w->f.n_members; i++)
                if (streq(w->f.members[i].seat.node, node))
                        return &w->f.members[i];
        return NULL;
}

/* "a=0@10.0.0.1+ b=1@-": index, IP, + when ready. */
static inline const char *entries(struct world *w, const char *id) {
        struct buf b = BUF_INIT(4096);
        for (size_t i = 0; i < w->f.n_imex; i++)
                for (size_t k = 0; streq(w->f.imex[i].imex.clique_id, id) && k < w->f.imex[i].imex.n_seats;
                     k++) {
                        const struct seat *d = &w->f.imex[i].imex.seats[k];
                        buf_addf(&b, "%s%s=%d@%s%s", b.n ? " " : "", d->node, (int)d->index, d->ip,
                                 streq(d->status, "Ready") ? "+" : "-");
                }
        const char *s = arena_strdup(w->a, buf_str(&b));
        buf_done(&b);
        return s;
}
