/* SPDX-License-Identifier: Apache-2.0 */
#include "racks.h"

#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "hostile.h"
#include "sim.h"
#include "transport.h"
#include "world.h"

/* DAY_S: a little more than a day. LATE_MS: after the users' namespace lost its label and got it again, a
 * controller with an old cache may delete the ComputeDomains for so long. JUST_CAME_MS: for how long the API
 * server's answer that no claim exists is valid. */
enum { DAY_S = 25 * 3600, LATE_MS = 150000, JUST_CAME_MS = 12000, FAR_MS = 1 << 30 };

static bool used, over;               /* over: no node is left, and a day has passed */
static int64_t unwanted_ms = -FAR_MS; /* when the users' namespace last had no label */

void racks_use(void) {
        used = true;
}

bool racks_used(void) {
        return used;
}

static bool is_wanted(const char *ns) {
        const struct version *v = store_get(K_NAMESPACE, "", ns);
        return streq(ns, DRIVER_NS) || (v && version_label(v, CD_LABEL_RACK_DOMAINS));
}

void racks_begin(void) {
        world_patch(K_NAMESPACE, store_get(K_NAMESPACE, "", USER_NS), false,
                    "{'metadata':{'labels':{'" CD_LABEL_RACK_DOMAINS "':'enabled'}}}");
}

void racks_name(unsigned clique, char *ret, size_t n) {
        snprintf(ret, n, "rack-clique-%u", clique);
}

/* The rack that a node publishes; NULL: none. */
static const char *stated(const struct version *slice) {
        return version_str(slice, "/spec/devices/0/attributes/" CD_ATTRIBUTE_RACK "/string");
}

bool racks_may_run(const char *name, const struct version *slice) {
        const char *rack = stated(slice);
        return rack && streq(strrchr(rack, '.') + 1, strrchr(name, '-') + 1);
}

bool racks_has(const char *name) {
        for (size_t i = 0; i < store_count(K_SLICE); i++)
                if (racks_may_run(name, store_nth(K_SLICE, i)))
                        return true;
        return false;
}

static const char *rack_of(const struct version *cd) {
        return version_label(cd, CD_LABEL_RACK);
}

static bool is_ours(const struct version *cd) {
        return rack_of(cd) && streq(version_annotation(cd, CD_ANNOTATION_RACK_UID), cd->uid);
}

bool racks_keeps(const struct version *v) {
        const char *uid = v->domain;
        for (size_t i = 0; used && !over && i < store_count(K_DOMAIN); i++) {
                const struct version *cd = store_nth(K_DOMAIN, i);
                if (rack_of(cd) && !version_deleted(cd) && (cd == v || streq(cd->uid, uid)))
                        return true;
        }
        return false;
}

/* ---- faults ---- */

static void want(bool is) {
        if (is == is_wanted(USER_NS))
                return;
        unwanted_ms = sim_now_ms();
        world_patch(K_NAMESPACE, store_get(K_NAMESPACE, "", USER_NS), false,
                    "{'metadata':{'labels':{'" CD_LABEL_RACK_DOMAINS "':%s}}}", is ? "'enabled'" : "null");
}

void racks_fault(const char *name) {
        const struct version *some[64];
        size_t n = 0;
        if (streq(name, "rack_namespace")) {
                want(!is_wanted(USER_NS));
                return;
        }
        for (size_t i = 0; i < store_count(K_DOMAIN) && n < ARRAY_LEN(some); i++)
                if (rack_of(store_nth(K_DOMAIN, i)) && !version_deleted(store_nth(K_DOMAIN, i)))
                        some[n++] = store_nth(K_DOMAIN, i);
        if (n)
                world_delete(K_DOMAIN, some[sim_draw(n)], false);
}

void racks_calm(void) {
        if (used)
                want(true);
}

static bool is_listed(const char *rack) {
        for (size_t i = 0; i < store_count(K_DOMAIN); i++) {
                const struct version *cd = store_nth(K_DOMAIN, i);
                if (streq(cd->ns, DRIVER_NS) && streq(rack_of(cd), rack) && !version_deleted(cd))
                        return true;
        }
        return false;
}

void racks_delete_lost(void) {
        const struct version *lost[64];
        size_t n = 0;
        for (size_t i = 0; i < store_count(K_DOMAIN); i++) {
                const struct version *cd = store_nth(K_DOMAIN, i);
                if (rack_of(cd) && !version_deleted(cd) && !is_listed(rack_of(cd)) && n < ARRAY_LEN(lost))
                        lost[n++] = cd;
        }
        while (n)
                world_delete(K_DOMAIN, lost[--n], false);
}

void racks_next_day(void) {
        over = true;
        sim_skip_s(DAY_S);
}

/* ---- promises ---- */

/* When the request was sent, a pod with a channel of the ComputeDomain had run for longer than the controller
 * trusts the API server's answer that no claim exists. The request may have hung in a webhook since. */
static bool is_in_use(const char *uid) {
        int64_t least_ms = JUST_CAME_MS + sim_now_ms() - transport_sent_ms();
        for (size_t i = 0; i < store_count(K_NODE); i++)
                if (world_runs_ms(store_nth(K_NODE, i)->name, uid) > least_ms)
                        return true;
        return false;
}

/* Only the ComputeDomain of a rack that has not existed for a day, or that its namespace does not request,
 * may be deleted, and only if no pod uses it. */
/* failure: any faults meet in the simulation -> no rack's ComputeDomain in use or of today is deleted
 * [simulation] */
static void look_at_deletion(const struct version *cd) {
        bool unwanted =
                !is_wanted(cd->ns) || (streq(cd->ns, USER_NS) && sim_now_ms() - unwanted_ms < LATE_MS);
        if (!is_ours(cd))
                sim_broken("%s deletes ComputeDomain %s/%s, which is not that of a rack", store_writer(),
                           cd->ns, cd->name);
        else if (is_in_use(cd->uid))
                sim_broken("%s deletes ComputeDomain %s/%s of a rack while a pod uses it", store_writer(),
                           cd->ns, cd->name);
        else if (!unwanted && !over)
                sim_broken("%s deletes ComputeDomain %s/%s of a rack that existed today", store_writer(),
                           cd->ns, cd->name);
}

/* failure: any faults meet in the simulation -> only racks get ComputeDomains, with their own names
 * [simulation] */
static void look_at_creation(const struct version *cd) {
        char name[64];
        racks_name(rack_of(cd) && str_starts(rack_of(cd), "clique.")
                           ? (unsigned)strtoul(rack_of(cd) + strlen("clique."), NULL, 10)
                           : 0,
                   name, sizeof name);
        if (!streq(name, cd->name))
                sim_broken(
                        "%s creates ComputeDomain %s/%.80s for rack %s: the name is wrong, or it is no rack",
                        store_writer(), cd->ns, cd->name, str_or(rack_of(cd), "none"));
        for (size_t i = 0; rack_of(cd) && i < store_count(K_DOMAIN); i++) {
                const struct version *other = store_nth(K_DOMAIN, i);
                if (!streq(other->uid, cd->uid) && streq(other->ns, cd->ns) &&
                    streq(rack_of(other), rack_of(cd)))
                        sim_broken("%s creates ComputeDomain %s/%s of a rack that already has %s there",
                                   store_writer(), cd->ns, cd->name, other->name);
        }
}

void racks_look(enum kind k, const struct change *c) {
        if (!used || k != K_DOMAIN || !str_starts(store_writer(), "controller-"))
                return;
        if (!c->was)
                look_at_creation(c->now);
        else if (!version_deleted(c->was) && (c->gone || version_deleted(c->now)))
                look_at_deletion(c->was);
}

static const char *describe(const char *what, const char *ns, const char *name) {
        static char text[256];
        snprintf(text, sizeof text, "the ComputeDomain %s/%s of a rack %s", ns, name, what);
        return text;
}

/* The Nodes that publish a rack, "a,b". The store lists slices by name, and the name contains that of the
 * Node. */
static void nodes_of(const char *rack, char *ret, size_t n) {
        size_t used_bytes = 0;
        *ret = '\0';
        for (size_t i = 0; i < store_count(K_NODE); i++)
                for (size_t k = 0; k < store_count(K_SLICE); k++) {
                        const struct version *s = store_nth(K_SLICE, k);
                        if (streq(s->node, store_nth(K_NODE, i)->name) && streq(stated(s), rack))
                                used_bytes += (size_t)snprintf(ret + used_bytes, n - used_bytes, "%s%s",
                                                               used_bytes ? "," : "", s->node);
                }
}

/* A daemon of the rack cannot report, or its partition waits for a report. */
static bool may_be_unready(const char *rack) {
        for (size_t i = 0; i < store_count(K_SLICE); i++) {
                const struct version *s = store_nth(K_SLICE, i);
                if (streq(stated(s), rack) && world_daemon_may_be_unknown(s->node))
                        return true;
        }
        return false;
}

static const char *misses_in(const char *ns, const char *rack) {
        char name[64], template[96], nodes[1024];
        racks_name((unsigned)strtoul(strrchr(rack, '.') + 1, NULL, 10), name, sizeof name);
        snprintf(template, sizeof template, RACKS_TEMPLATE, name);
        nodes_of(rack, nodes, sizeof nodes);
        const struct version *cd = store_get(K_DOMAIN, ns, name), *t = store_get(K_TEMPLATE, ns, template);
        if (!cd || version_deleted(cd))
                return describe("does not exist", ns, name);
        if (!is_ours(cd) || !streq(version_annotation(cd, CD_ANNOTATION_RACK_NODES), nodes))
                return describe("does not list its nodes", ns, name);
        if (version_annotation(cd, CD_ANNOTATION_RACK_EMPTY))
                return describe("states that the rack has no nodes", ns, name);
        if (!streq(version_str(cd, "/status/status"), "Ready") && !may_be_unready(rack))
                return describe("is not Ready", ns, name);
        return t && streq(t->domain, cd->uid) ? NULL : describe("has no claim template", ns, name);
}

const char *racks_misses(void) {
        for (size_t i = 0; used && i < store_count(K_SLICE); i++) {
                const char *rack = stated(store_nth(K_SLICE, i)), *missing;
                if (!rack)
                        continue;
                if ((missing = misses_in(DRIVER_NS, rack)) || (missing = misses_in(USER_NS, rack)))
                        return missing;
        }
        return NULL;
}

const char *racks_unaware(void) {
        for (size_t i = 0; i < store_count(K_DOMAIN); i++) {
                const struct version *cd = store_nth(K_DOMAIN, i);
                if (!version_annotation(cd, CD_ANNOTATION_RACK_EMPTY))
                        return describe("does not state since when the rack has no nodes", cd->ns, cd->name);
        }
        for (size_t i = 0; i < store_count(K_FABRIC); i++)
                if (!version_annotation(store_nth(K_FABRIC, i), CD_ANNOTATION_FABRIC_EMPTY))
                        return "a fabric object does not state since when it is empty";
        return NULL;
}

bool racks_over(void) {
        return over;
}
