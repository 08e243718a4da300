/* SPDX-License-Identifier: Apache-2.0 */
#include "promises.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uthash.h>

#include "api/names.h"
#include "base/mem.h"
#include "hostile.h"
#include "racks.h"
#include "sim.h"
#include "transport.h"
#include "world.h"

/* The server's word that a claim is not there holds for ten seconds. A pod that came within them may find its
 * daemon leaving; it gets another. */
enum { JUST_CAME_MS = 12000, WINDOW_MS = 10000, MOST_WRITES = 40 };

struct written {
        UT_hash_handle hh;
        int64_t from_ms;
        unsigned n, moves; /* the hostile tenant's when the ten seconds began */
        char key[];
};
static struct written *written;
static uint64_t writes;
static bool idle;

static bool by_controller(void) {
        return str_starts(store_writer(), "controller-");
}

/* A pod of the domain was running there for long when the controller decided. What hangs in a webhook
 * meanwhile is done all the same. */
static bool was_used(const char *node, const char *uid) {
        int64_t since = by_controller() ? sim_now_ms() - transport_sent_ms() : 0;
        return world_runs_ms(node, uid) > since + JUST_CAME_MS;
}

/* A living domain, or NULL. */
static const struct version *living(const char *uid) {
        for (size_t i = 0; uid && i < store_count(K_DOMAIN); i++)
                if (streq(store_nth(K_DOMAIN, i)->uid, uid) && !version_deleted(store_nth(K_DOMAIN, i)))
                        return store_nth(K_DOMAIN, i);
        return NULL;
}

static void look_at_label(const struct change *c) {
        const char *was = c->was->domain;
        if (was && !c->gone && !streq(was, c->now->domain) && living(was) && was_used(c->now->name, was))
                sim_broken("%s takes the label of domain %s from %s, where a pod of it runs", store_writer(),
                           was, c->now->name);
}

/* What a living domain has is not for us to delete. */
static void look_at_deletion(enum kind k, const struct change *c) {
        const char *uid = c->now->domain, *node = c->now->node;
        const struct version *cd = living(uid);
        if (version_deleted(c->was) || !version_deleted(c->now) || !by_controller() || !cd)
                return;
        /* A label of the ComputeDomain is a part of its claim template. A template of the tenant's namespace
         * is not that of another tenant's ComputeDomain, whatever its label names. */
        if (k == K_TEMPLATE && (streq(cd->ns, HOSTILE_NS) || streq(c->now->ns, HOSTILE_NS)))
                return;
        if (k == K_POD ? world_runs_ms(node, uid) > JUST_CAME_MS
                       : k == K_SET || k == K_TEMPLATE || k == K_CLIQUE)
                sim_broken("%s deletes %s %s of domain %s, which lives", store_writer(), kinds[k].kind,
                           c->now->name, uid);
}

static int64_t index_in(const struct version *clique, const char *node) {
        size_t i, max;
        yyjson_val *d;
        yyjson_arr_foreach (yyjson_obj_get(clique->root, "daemons"), i, max, d)
                if (streq(yyjson_get_str(yyjson_obj_get(d, "nodeName")), node))
                        return yyjson_get_sint(yyjson_obj_get(d, "index"));
        return -1;
}

static void look_at_clique(const struct change *c) {
        size_t i, max, k, max_k;
        yyjson_val *d, *o, *daemons = yyjson_obj_get(c->now->root, "daemons");
        yyjson_arr_foreach (daemons, i, max, d) {
                const char *node = yyjson_get_str(yyjson_obj_get(d, "nodeName"));
                int64_t index = yyjson_get_sint(yyjson_obj_get(d, "index")),
                        was = c->was ? index_in(c->was, node) : -1;
                if (was >= 0 && was != index)
                        sim_broken("clique %s: the index of %s changes from %" PRId64 " to %" PRId64,
                                   c->now->name, node, was, index);
                yyjson_arr_foreach (daemons, k, max_k, o)
                        if (k < i && yyjson_get_sint(yyjson_obj_get(o, "index")) == index)
                                sim_broken("clique %s gives index %" PRId64 " to two nodes", c->now->name,
                                           index);
        }
}

/* "": of a node that another domain lists yet. */
static bool has_address(yyjson_val *seat) {
        return *str_or(yyjson_get_str(yyjson_obj_get(seat, "ip")), "");
}

static bool seat_has_address(const struct version *fabric, const char *domain, const char *node) {
        size_t i, max, k, max_k;
        yyjson_val *d, *s;
        yyjson_arr_foreach (yyjson_obj_get(fabric->root, "domains"), i, max, d)
                yyjson_arr_foreach (yyjson_obj_get(d, "seats"), k, max_k, s)
                        if (streq(yyjson_get_str(yyjson_ptr_get(d, "/owner/uid")), domain) &&
                            streq(yyjson_get_str(yyjson_obj_get(s, "node")), node))
                                return has_address(s);
        return false;
}

/* What an agent could not say before the object was lost nobody knows. */
static bool has_reported_to(const struct version *fabric, const char *node) {
        for (size_t i = 0; i < store_count(K_POD); i++) {
                const struct version *p = store_nth(K_POD, i);
                if (streq(p->target, node) &&
                    streq(version_annotation(p, IMEX_ANNOTATION_FABRIC), fabric->uid))
                        return true;
        }
        return false;
}

/* The places in an IMEX domain that agents run. */
static void look_at_seats(const struct change *c, yyjson_val *domain) {
        size_t i, max, k, max_k;
        yyjson_val *s, *o, *seats = yyjson_obj_get(domain, "seats");
        const char *uid = yyjson_get_str(yyjson_ptr_get(domain, "/owner/uid"));
        yyjson_arr_foreach (seats, i, max, s) {
                int64_t index = yyjson_get_sint(yyjson_obj_get(s, "index"));
                const char *node = yyjson_get_str(yyjson_obj_get(s, "node")), *runs = world_runs_imex(node);
                yyjson_arr_foreach (seats, k, max_k, o)
                        if (k < i && yyjson_get_sint(yyjson_obj_get(o, "index")) == index)
                                sim_broken("fabric %s gives index %" PRId64 " of domain %s to two nodes",
                                           c->now->name, index, uid);
                if (runs && !streq(runs, uid) && has_address(s) && has_reported_to(c->now, node) &&
                    (!c->was || !seat_has_address(c->was, uid, node)))
                        sim_broken("fabric %s tells domain %s the address of %s, which runs domain %s",
                                   c->now->name, uid, node, runs);
        }
}

static void look_at_fabric(const struct change *c) {
        size_t i, max;
        yyjson_val *d;
        yyjson_arr_foreach (yyjson_obj_get(c->now->root, "domains"), i, max, d)
                look_at_seats(c, d);
}

static void count(enum kind k, const struct change *c) {
        char key[256];
        struct written *x;
        snprintf(key, sizeof key, "%s %s/%s", kinds[k].kind, c->now->ns, c->now->name);
        HASH_FIND_STR(written, key, x);
        if (!x) {
                x = xcalloc(1, sizeof *x + strlen(key) + 1);
                memcpy(x->key, key, strlen(key) + 1);
                HASH_ADD_STR(written, key, x);
        }
        if (sim_now_ms() - x->from_ms >= WINDOW_MS) {
                x->from_ms = sim_now_ms();
                x->n = 0;
                x->moves = hostile_moves();
        }
        /* Its fabric is the only object that others share with the tenant. */
        if (++x->n > MOST_WRITES + (k == K_FABRIC ? hostile_moves() - x->moves : 0))
                sim_broken("%s was written %u times within ten seconds", key, x->n);
        if (idle)
                sim_broken("%s writes %s though nothing has happened for long", store_writer(), key);
        writes++;
}

void promises_look(enum kind k, const struct change *c) {
        if (k == K_NODE && c->was)
                look_at_label(c);
        if (c->was)
                look_at_deletion(k, c);
        if (k == K_CLIQUE && !c->gone)
                look_at_clique(c);
        if (k == K_FABRIC && !c->gone && by_controller())
                look_at_fabric(c);
        racks_look(k, c);
        if (!streq(store_writer(), "world") && k != K_LEASE && k != K_EVENT)
                count(k, c);
}

void promises_idle(bool is) {
        idle = is;
}

uint64_t promises_writes(void) {
        return writes;
}

void promises_done(void) {
        struct written *x, *next;
        HASH_ITER (hh, written, x, next) {
                HASH_DEL(written, x);
                free(x);
        }
}
