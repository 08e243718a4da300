/* SPDX-License-Identifier: Apache-2.0 */
#include "promises.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uthash.h>

#include "api/names.h"
#include "base/mem.h"
#include "channels.h"
#include "crashing.h"
#include "go_driver.h"
#include "hostile.h"
#include "faults.h"
#include "imex.h"
#include "lying.h"
#include "model/fabric.h"
#include "model/mode.h"
#include "racks.h"
#include "sim.h"
#include "transport.h"
#include "workloads.h"
#include "world.h"

/* CLAIM_MS: for how long a deleted claim excuses an address, because caches are late. */
enum { WINDOW_MS = 10000, MOST_WRITES = 40, CLAIM_MS = 150000 };

struct written {
        UT_hash_handle hh;
        int64_t from_ms;
        unsigned n, moves; /* moves: moves() when the ten seconds began */
        char key[];
};
static struct written *written;

/* A claim for a channel was allocated: its namespace, node and ComputeDomain. */
struct placed {
        UT_hash_handle hh;
        int64_t ms; /* when it was seen last */
        char key[];
};
static struct placed *placed;
static uint64_t writes;
static bool idle;

static bool by_controller(void) {
        return str_starts(store_writer(), "controller-");
}

/* The ComputeDomain if it exists and is not being deleted, or NULL. */
static const struct version *living(const char *uid) {
        for (size_t i = 0; uid && i < store_count(K_DOMAIN); i++)
                if (streq(store_nth(K_DOMAIN, i)->uid, uid) && !version_deleted(store_nth(K_DOMAIN, i)))
                        return store_nth(K_DOMAIN, i);
        return NULL;
}

/* failure: any faults meet in the simulation -> no controller deletes the template of a living ComputeDomain
 * [simulation] */
static void look_at_deletion(enum kind k, const struct change *c) {
        const char *uid = c->now->domain;
        const struct version *cd = living(uid);
        if (k != K_TEMPLATE || version_deleted(c->was) || !version_deleted(c->now) || !by_controller() || !cd)
                return;
        /* The controller removes what the Go driver has left when none of its daemons can run any more. */
        if (go_driver_owns(c->was)) {
                if (go_driver_runs(uid))
                        sim_broken("%s deletes %s of the Go driver, whose daemons run", store_writer(),
                                   c->now->name);
                return;
        }
        /* A label of the ComputeDomain is a part of its claim template. A template in the hostile tenant's
         * namespace never belongs to another tenant's ComputeDomain, whatever its label contains. */
        /* It has just formed in the mode of this leader. An earlier leader created the template for the other
         * isolation, and could not record its mode. */
        const char *mode = version_annotation(cd, CD_ANNOTATION_MODE);
        if (channels_change() && mode && channels_of_template(c->was) != streq(mode, MODE_DRIVER_CHANNEL))
                return;
        if (!streq(cd->ns, HOSTILE_NS) && !streq(c->now->ns, HOSTILE_NS))
                sim_broken("%s deletes %s %s of ComputeDomain %s, which exists", store_writer(),
                           kinds[k].kind, c->now->name, uid);
}

/* ---- assignments ---- */

static const char *text_of(yyjson_val *object, const char *member) {
        return str_or(yyjson_get_str(yyjson_obj_get(object, member)), "");
}

static const char *owner_of(yyjson_val *domain) {
        return str_or(yyjson_get_str(yyjson_ptr_get(domain, "/owner/uid")), "");
}

/* Nobody else may have its index: it is active or reserved. */
static bool is_exclusive(yyjson_val *assignment) {
        const char *state = text_of(assignment, "state");
        enum fabric_state s = fabric_state_decode(state);

        return s != FABRIC_LEAVING && s != FABRIC_ENDING;
}

static bool is_reserved(yyjson_val *assignment) {
        return fabric_state_decode(text_of(assignment, "state")) == FABRIC_RESERVED;
}

static bool is_active(yyjson_val *assignment) {
        return !*text_of(assignment, "state");
}

/* The address is "" while another ComputeDomain still lists the node. */
static bool has_address(yyjson_val *assignment) {
        return *text_of(assignment, "ip");
}

static bool had_address(const struct version *fabric, const char *domain, const char *node) {
        size_t i, max, k, max_k;
        yyjson_val *d, *x;
        yyjson_arr_foreach (yyjson_obj_get(fabric->root, "domains"), i, max, d)
                yyjson_arr_foreach (yyjson_obj_get(d, "assignments"), k, max_k, x)
                        if (streq(owner_of(d), domain) && streq(text_of(x, "node"), node))
                                return has_address(x);
        return false;
}

/* ---- claims ---- */

/* The key of a claim with a channel that is allocated, in a static buffer; NULL: it is not. */
static const char *placed_key(const struct version *claim) {
        static char key[256];
        yyjson_val *p = yyjson_ptr_get(claim->root, "/status/allocation/devices/config/0/opaque/parameters");
        if (!claim->pool || !streq(text_of(p, "kind"), "ComputeDomainChannelConfig"))
                return NULL;
        snprintf(key, sizeof key, "%s/%s/%s", claim->ns, claim->pool, text_of(p, "domainID"));
        return key;
}

static void note_placed(const struct version *claim) {
        const char *key = claim ? placed_key(claim) : NULL;
        struct placed *x;
        if (!key)
                return;
        HASH_FIND_STR(placed, key, x);
        if (!x) {
                x = xcalloc(1, sizeof *x + strlen(key) + 1);
                memcpy(x->key, key, strlen(key) + 1);
                HASH_ADD_STR(placed, key, x);
        }
        x->ms = sim_now_ms();
}

/* A claim of the ComputeDomain is on the node, or was until a moment ago. */
static bool has_claim(yyjson_val *owner, const char *node) {
        char key[256];
        struct placed *x;
        snprintf(key, sizeof key, "%s/%s/%s", text_of(owner, "namespace"), node, text_of(owner, "uid"));
        HASH_FIND_STR(placed, key, x);
        if (x && sim_now_ms() - x->ms < CLAIM_MS)
                return true;
        for (size_t i = 0; x && i < store_count(K_CLAIM); i++)
                if (streq(store_nth(K_CLAIM, i)->pool, node) && streq(placed_key(store_nth(K_CLAIM, i)), key))
                        return true;
        return false;
}

/* ---- addresses ---- */

/* The peers connect to each address, and a report without a claim publishes none. */
/* failure: any faults meet in the simulation -> no address is published without a claim on its node
 * [simulation] */
static void look_at_address(const struct change *c, yyjson_val *domain, yyjson_val *x) {
        const char *uid = owner_of(domain), *node = text_of(x, "node");
        if (has_address(x) && !channels_stands(uid) && !(c->was && had_address(c->was, uid, node)) &&
            !has_claim(yyjson_obj_get(domain, "owner"), node))
                sim_broken("fabric object %s publishes the address of %s in %s, of which it has no claim",
                           c->now->name, node, uid);
}

/* A daemon that had not reported before the fabric object was lost is unknown. */
static bool has_reported_to(const struct version *fabric, const char *node) {
        for (size_t i = 0; i < store_count(K_POD); i++) {
                const struct version *p = store_nth(K_POD, i);
                const char *report = version_annotation(p, IMEX_ANNOTATION_REPORT);
                if (streq(p->target, node) && report && strstr(report, fabric->uid))
                        return true;
        }
        return false;
}

static void look_at_assignment(const struct change *c, const char *uid, yyjson_val *x) {
        const char *node = text_of(x, "node"), *runs = world_runs_imex(node);
        if (is_active(x) && (!*text_of(x, "claimUID") || !*text_of(x, "bootID")))
                sim_broken("fabric object %s assigns %s to %s without a claim or a boot ID", c->now->name,
                           node, uid);
        if (!is_active(x) && has_address(x))
                sim_broken("fabric object %s has the address of %s, which is not active in %s", c->now->name,
                           node, uid);
        if (lying_excuses(world_number(node)))
                return;
        if (runs && !streq(runs, uid) && has_address(x) && has_reported_to(c->now, node) &&
            !imex_predates_restore(world_number(node)) && (!c->was || !had_address(c->was, uid, node)))
                sim_broken("fabric object %s gives %s the address of %s, which runs %s", c->now->name, uid,
                           node, runs);
}

/* Two assignments of one object. The end of an epoch is proved for each node, so only the epochs of one node
 * must differ. Other nodes may have the same epochs if a controller was not stopped during a restore, or if
 * the object was deleted before the restore, after all nodes had rebooted: then the next one began at 0, and
 * the restored one has reserved assignments from before. */
/* failure: any faults meet in the simulation -> no fabric object gives an index, epoch or address twice
 * [simulation] */
static void compare(const struct change *c, const char *uid, yyjson_val *x, const char *other,
                    yyjson_val *y) {
        int64_t index = yyjson_get_sint(yyjson_obj_get(x, "index"));
        const char *node = text_of(x, "node");
        bool lies = lying_is(world_number(node)) || lying_is(world_number(text_of(y, "node")));
        bool past = faults_restored_ms() >= 0 && (is_reserved(x) || is_reserved(y));
        if (yyjson_get_sint(yyjson_obj_get(x, "epoch")) == yyjson_get_sint(yyjson_obj_get(y, "epoch")) &&
            (streq(node, text_of(y, "node")) || !(faults_careless() || past)) && !lies)
                sim_broken("fabric object %s has the epoch of %s twice", c->now->name, node);
        if (streq(uid, other) && is_exclusive(x) && is_exclusive(y) &&
            index == yyjson_get_sint(yyjson_obj_get(y, "index")))
                sim_broken("fabric object %s gives index %" PRId64 " of %s to %s and %s", c->now->name, index,
                           uid, node, text_of(y, "node"));
        if (streq(uid, other) && streq(node, text_of(y, "node")))
                sim_broken("fabric object %s lists %s twice in %s", c->now->name, node, uid);
        if (is_active(x) && is_active(y) && streq(node, text_of(y, "node")))
                sim_broken("fabric object %s has %s active in %s and %s", c->now->name, node, uid, other);
        if (!streq(uid, other) && has_address(x) && streq(text_of(x, "ip"), text_of(y, "ip")))
                sim_broken("fabric object %s has the address %s in %s and %s", c->now->name, text_of(x, "ip"),
                           uid, other);
}

/* Conditions of each fabric object that a controller writes. */
static void look_at_fabric(const struct change *c) {
        size_t i, max, j, max_j, k, max_k, l, max_l;
        yyjson_val *d, *e, *x, *y, *domains = yyjson_obj_get(c->now->root, "domains");
        yyjson_arr_foreach (domains, i, max, d)
                yyjson_arr_foreach (yyjson_obj_get(d, "assignments"), k, max_k, x) {
                        look_at_assignment(c, owner_of(d), x);
                        look_at_address(c, d, x);
                        yyjson_arr_foreach (domains, j, max_j, e)
                                yyjson_arr_foreach (yyjson_obj_get(e, "assignments"), l, max_l, y)
                                        if (j < i || (j == i && l < k))
                                                compare(c, owner_of(d), x, owner_of(e), y);
                }
}

static bool is_marked_in(const struct version *fabric, const char *uid) {
        size_t i, max;
        yyjson_val *x;
        yyjson_arr_foreach (yyjson_obj_get(fabric->root, "removals"), i, max, x)
                if (streq(text_of(x, "podUID"), uid))
                        return true;
        return false;
}

/* A daemon that may have an assignment is marked in the fabric object before its Pod is deleted. */
/* failure: any faults meet in the simulation -> no daemon's Pod is deleted without a mark [simulation] */
static void look_at_removal(const struct change *c) {
        const struct change *list;
        size_t n = store_history(K_FABRIC, &list);
        bool marked = false;
        if (version_deleted(c->was) || !by_controller() || !c->now->target ||
            !version_annotation(c->was, IMEX_ANNOTATION_REPORT) || (!c->gone && !version_deleted(c->now)))
                return;
        for (size_t i = 0; i < store_count(K_FABRIC) && !marked; i++)
                marked = is_marked_in(store_nth(K_FABRIC, i), c->now->uid);
        for (size_t i = n; i > 0 && !marked; i--)
                marked = is_marked_in(list[i - 1].now, c->now->uid);
        if (!marked && !store_compacted())
                sim_broken("%s deletes Pod %s of a daemon without a mark in a fabric object", store_writer(),
                           c->now->name);
}

/* More writes are allowed for these events. The fabric object is the only object that others share with the
 * hostile tenant. A false report may change all objects that concern its node. */
static unsigned moves(enum kind k) {
        return (k == K_FABRIC ? hostile_moves() : 0) + lying_count();
}

/* failure: nothing happens in the simulation -> nothing is written, and no object too often [simulation] */
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
                x->moves = moves(k);
        }
        if (++x->n > MOST_WRITES + moves(k) - x->moves)
                sim_broken("%s was written %u times within ten seconds", key, x->n);
        if (idle)
                sim_broken("%s writes %s although nothing has happened for a while", store_writer(), key);
        writes++;
}

void promises_look(enum kind k, const struct change *c) {
        if (c->was)
                look_at_deletion(k, c);
        if (c->was && k == K_POD)
                look_at_removal(c);
        if (k == K_CLAIM) {
                note_placed(c->was);
                note_placed(c->now);
        }
        if (k == K_FABRIC && !c->gone && by_controller())
                look_at_fabric(c);
        if (k == K_NODE)
                go_driver_look(c);
        racks_look(k, c);
        workloads_look(k, c);
        crashing_look(k, c);
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
        struct placed *p, *next_placed;
        HASH_ITER (hh, placed, p, next_placed) {
                HASH_DEL(placed, p);
                free(p);
        }
}
