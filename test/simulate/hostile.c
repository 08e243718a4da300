/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/json.h"
#include "base/mem.h"
#include "channels.h"
#include "daemon.h"
#include "model/rack.h"
#include "racks.h"
#include "schema.h"
#include "sim.h"
#include "world.h"
#include "world_state.h"

/* MOST_ROWS: the largest number of the tenant's ComputeDomains; each takes an entry of a fabric object.
 * OLD_NAME: the length of a name that an earlier definition accepts. An object with it fits into the store,
 * but a message with it is too long for a condition. */
enum { MOST_ROWS = 400, OLD_NAME = 40000, NAME_MOST = 253 };
#define FOREIGN_FINALIZER "hostile.example.com/x"
#define TENANT "hostile"

static bool used, calm, greedy;
static unsigned serial, moves;

void hostile_use(void) {
        used = true;
}

bool hostile_used(void) {
        return used;
}

bool hostile_greedy(void) {
        return greedy;
}

/* ---- names that the tenant knows ---- */

static const char *padded(const char *prefix, size_t n) {
        static char text[OLD_NAME + 1];
        size_t from = (size_t)snprintf(text, sizeof text, "%s", prefix);
        for (; from < n; from++)
                text[from] = 'a';
        text[from] = '\0';
        return text;
}

static const struct version *any(enum kind k) {
        return store_count(k) ? store_nth(k, sim_draw(store_count(k))) : NULL;
}

/* One of the tenant's objects. */
static const struct version *own(enum kind k) {
        size_t n = 0, i;
        for (i = 0; i < store_count(k); i++)
                n += streq(store_nth(k, i)->ns, HOSTILE_NS);
        if (!n)
                return NULL;
        n = sim_draw(n) + 1;
        for (i = 0; n; i++)
                n -= streq(store_nth(k, i)->ns, HOSTILE_NS);
        return store_nth(k, i - 1);
}

/* The UID of a ComputeDomain, of the tenant or of another one. */
static const char *some_uid(void) {
        const struct version *v = any(K_DOMAIN);
        return v ? v->uid : "00000000-0000-4000-8000-000000000000";
}

static const char *some_rack(void) {
        const struct version *slice = any(K_SLICE);
        const char *rack =
                slice ? version_str(slice, "/spec/devices/0/attributes/" CD_ATTRIBUTE_RACK "/string") : NULL;
        return rack && sim_chance(60) ? rack : "no-such-rack";
}

/* ---- writes of the tenant ---- */

static void add_annotation(struct jw *j, const struct version *of) {
        /* The modes of model/mode.h, and others. */
        static const char *const modes[] = { "driverManaged", "driverManagedChannel",
                                             "hostManaged",   "hostManagedChannel",
                                             "none",          "" };
        static const char *const times[] = { "2001-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "yesterday" };
        const struct version *node = any(K_NODE);
        /* Keys that the driver writes on objects outside of the tenant's namespace. */
        static const char *const others[] = {
                CD_ANNOTATION_GPU_CLIQUE,      CD_ANNOTATION_TEMPLATE,     CD_ANNOTATION_CLIQUE,
                CD_ANNOTATION_FABRIC_EMPTY,    IMEX_ANNOTATION_STATE,      IMEX_ANNOTATION_REASON,
                IMEX_ANNOTATION_NODE_ID,       IMEX_ANNOTATION_INDEX,      IMEX_ANNOTATION_PEERS,
                IMEX_ANNOTATION_READY,         IMEX_ANNOTATION_AWAITED,    IMEX_ANNOTATION_REPORT,
                IMEX_ANNOTATION_UNPREPARED,    IMEX_ANNOTATION_HOST_STATE, IMEX_ANNOTATION_HOST_REASON,
                IMEX_ANNOTATION_HOST_CHANNELS, IMEX_ANNOTATION_REFUSED,
        };
        static const char *const values[] = {
                "",
                "0",
                "-1",
                "true",
                "READY",
                "9223372036854775807",
                "{\"clique.0\":{}}",
                "{\"claimUID\":\"00000000-0000-4000-8000-000000000000\",\"bootID\":"
                "\"00000000-0000-4000-8000-000000000000\",\"left\":\"0,1\",\"seen\":9}"
        };
        switch (sim_draw(10)) {
        case 0:
        case 1:
        case 2:
                jw_str(j, CD_ANNOTATION_MODE, modes[sim_draw(ARRAY_LEN(modes))]);
                return;
        case 3:
                jw_str(j, CD_ANNOTATION_RACK_UID, of ? of->uid : some_uid());
                return;
        case 4:
                jw_str(j, CD_ANNOTATION_RACK_NODES, node ? node->name : "node-0");
                return;
        case 5:
                jw_str(j, CD_ANNOTATION_RACK_EMPTY, times[sim_draw(ARRAY_LEN(times))]);
                return;
        case 6:
                jw_str(j, CD_ANNOTATION_NAME, some_uid());
                return;
        case 7:
        case 8:
                jw_str(j, others[sim_draw(ARRAY_LEN(others))],
                       sim_chance(30) ? some_uid() : values[sim_draw(ARRAY_LEN(values))]);
                return;
        default:
                jw_str(j, padded("hostile.example.com/", 80), padded("x", 20000));
                return;
        }
}

static void add_label(struct jw *j) {
        switch (sim_draw(8)) {
        case 0:
        case 1:
                jw_str(j, CD_LABEL, some_uid());
                if (sim_chance(50))
                        jw_str(j, CD_LABEL_TARGET, sim_chance(50) ? CD_TARGET_DAEMON : CD_TARGET_WORKLOAD);
                return;
        case 2:
                jw_str(j, CD_LABEL_DAEMON, "true");
                return;
        case 3:
                jw_str(j, CD_LABEL_COMPONENT, CD_DAEMON_OBJECT);
                return;
        case 4:
                jw_str(j, sim_chance(50) ? CD_LABEL_CLIQUE : GPU_CLIQUE_LABEL, "clique.0");
                return;
        case 5:
                jw_str(j, CD_LABEL_RACK_DOMAINS, "enabled");
                return;
        default:
                jw_str(j, CD_LABEL_RACK, some_rack());
                return;
        }
}

static void add_meta(struct jw *j, const char *name, const struct version *of) {
        jw_obj(j, "metadata");
        if (name)
                jw_str(j, "name", name);
        jw_obj(j, "labels");
        if (sim_chance(50))
                add_label(j);
        jw_end_obj(j);
        jw_obj(j, "annotations");
        if (sim_chance(70))
                add_annotation(j, of);
        jw_end_obj(j);
        if (!of && sim_chance(20)) {
                jw_arr(j, "finalizers");
                jw_str(j, NULL, sim_chance(50) ? CD_FINALIZER : FOREIGN_FINALIZER);
                jw_end_arr(j);
        }
        jw_end_obj(j);
}

static void make_domain(const char *name) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        struct jw j = JW(&b);
        char number[32], own_name[NAME_MOST + 1];
        snprintf(number, sizeof number, "e%u-", ++serial);
        /* The name of another tenant's claim template, or a name of the largest length. */
        snprintf(own_name, sizeof own_name, "%s",
                 name             ? name
                 : sim_chance(20) ? "d0"
                                  : padded(number, sim_chance(greedy ? 95 : 70) ? NAME_MOST : 8));
        jw_obj(&j, NULL);
        jw_str(&j, "apiVersion", CD_API_VERSION);
        add_meta(&j, own_name, NULL);
        jw_obj(&j, "spec");
        jw_int(&j, "numNodes", sim_chance(20) ? INT64_MAX : 0);
        jw_obj(&j, "channel");
        jw_obj(&j, "resourceClaimTemplate");
        if (sim_chance(20)) {
                char template[NAME_MOST + 32];
                snprintf(template, sizeof template, RACK_TEMPLATE_PREFIX "%s", own_name);
                jw_str(&j, "name", template);
        } else {
                jw_str(&j, "name",
                       sim_chance(10) ? "t-d0" : padded(number, sim_chance(20) ? OLD_NAME : NAME_MOST));
        }
        jw_end_obj(&j);
        jw_end_obj(&j);
        jw_end_obj(&j);
        jw_end_obj(&j);
        store_create(TENANT, K_DOMAIN, HOSTILE_NS, buf_str(&b));
}

static void change(enum kind k) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        struct jw j = JW(&b);
        const struct version *v = own(k);
        if (!v)
                return;
        jw_obj(&j, NULL);
        add_meta(&j, NULL, v);
        if (k == K_DOMAIN && sim_chance(30)) {
                jw_obj(&j, "spec");
                jw_int(&j, "numNodes", (int64_t)sim_draw(5));
                jw_end_obj(&j);
        }
        jw_end_obj(&j);
        store_merge_patch(TENANT, k, HOSTILE_NS, v->name, buf_str(&b), false);
}

static void make_template(void) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        struct jw j = JW(&b);
        const struct version *cd = own(K_DOMAIN);
        const char *wanted = cd ? version_str(cd, "/spec/channel/resourceClaimTemplate/name") : NULL;
        char name[NAME_MOST + 1];
        if (wanted && sim_chance(50))
                snprintf(name, sizeof name, "%s", wanted);
        else if (sim_chance(50))
                snprintf(name, sizeof name, "computedomain-daemon-%s", some_uid());
        else
                snprintf(name, sizeof name, "%s", "t-d0");
        jw_obj(&j, NULL);
        add_meta(&j, name, NULL);
        jw_end_obj(&j);
        store_create(TENANT, K_TEMPLATE, HOSTILE_NS, buf_str(&b));
}

/* A pod of the tenant is scheduled. Its claim names a ComputeDomain of the tenant, or of another one. */
static void use_node(void) {
        const struct version *cd = sim_chance(80) ? own(K_DOMAIN) : any(K_DOMAIN);
        const struct domain nobody = { .of_rack = false };
        struct node *n = choose_node(&nobody);
        char claim[32], uid[48], device[16];
        unsigned i = 0;
        if (!cd || !n)
                return;
        snprintf(claim, sizeof claim, "c%u", ++serial);
        snprintf(uid, sizeof uid, "%s", cd->uid);
        do
                snprintf(device, sizeof device, "channel-%u", i++);
        while (i < channels_pods_max() && is_taken(n->name, device));
        world_create(K_CLAIM, HOSTILE_NS, "{'metadata':{'name':'%s','labels':{'" CD_LABEL "':'%s'}}}", claim,
                     uid);
        allocate(claim, HOSTILE_NS, n->name, device,
                 sim_chance(90) ? "ComputeDomainChannelConfig" : "ComputeDomainDaemonConfig", uid,
                 channels_used(), claim);
        moves++;
}

static void delete_one(enum kind k, bool by_force) {
        const struct version *v = own(k);
        if (!v)
                return;
        _cleanup_(freep) char *name = xstrdup(v->name);
        moves += k == K_CLAIM;
        store_delete(TENANT, k, HOSTILE_NS, name, NULL);
        if (by_force && store_get(k, HOSTILE_NS, name))
                store_merge_patch(TENANT, k, HOSTILE_NS, name, "{\"metadata\":{\"finalizers\":null}}", false);
        /* Creates another one with the same name at once. */
        if (k == K_DOMAIN && by_force && sim_chance(50))
                make_domain(name);
}

static size_t count_own(enum kind k) {
        size_t n = 0;
        for (size_t i = 0; i < store_count(k); i++)
                n += streq(store_nth(k, i)->ns, HOSTILE_NS);
        return n;
}

static void release_all(void) {
        while (count_own(K_CLAIM))
                delete_one(K_CLAIM, true);
}

void hostile_begin(void) {
        if (!used)
                return;
        greedy = sim_chance(30);
        schema_set_old(sim_chance(30));
        for (int i = 0; i < 4; i++)
                make_domain(NULL);
        schema_set_old(false);
}

void hostile_step(void) {
        if (!used || calm || !sim_chance(greedy ? 100 : 20))
                return;
        switch (sim_draw(10)) {
        case 0:
        case 1:
                if (count_own(K_DOMAIN) < MOST_ROWS)
                        make_domain(NULL);
                return;
        case 2:
        case 3:
                use_node();
                return;
        case 4:
        case 5:
                if (!greedy || sim_chance(30))
                        delete_one(K_CLAIM, true);
                return;
        case 6:
                change(K_DOMAIN);
                return;
        case 7:
                if (count_own(K_TEMPLATE) < 2 * MOST_ROWS)
                        make_template();
                return;
        case 8:
                change(sim_chance(50) ? K_TEMPLATE : K_CLAIM);
                return;
        default:
                if (sim_chance(greedy ? 1 : 30))
                        delete_one(sim_chance(50) ? K_DOMAIN : K_TEMPLATE, sim_chance(50));
                return;
        }
}

unsigned hostile_moves(void) {
        return moves;
}

void hostile_calm(void) {
        calm = true;
        if (used)
                release_all();
}

static bool has_our_finalizer(const struct version *v) {
        size_t i, n;
        yyjson_val *x;
        yyjson_arr_foreach (yyjson_obj_get(v->meta, "finalizers"), i, n, x)
                if (yyjson_equals_str(x, CD_FINALIZER))
                        return true;
        return false;
}

static void empty_kind(enum kind k) {
        for (size_t i = store_count(k); i-- > 0;) {
                const struct version *v = store_nth(k, i);
                if (!streq(v->ns, HOSTILE_NS))
                        continue;
                _cleanup_(freep) char *name = xstrdup(v->name);
                bool ours = k == K_DOMAIN && has_our_finalizer(v);
                store_merge_patch(TENANT, k, HOSTILE_NS, name,
                                  ours ? "{\"metadata\":{\"finalizers\":[\"" CD_FINALIZER "\"]}}"
                                       : "{\"metadata\":{\"finalizers\":null}}",
                                  false);
                if (store_get(k, HOSTILE_NS, name))
                        store_delete(TENANT, k, HOSTILE_NS, name, NULL);
                i = i < store_count(k) ? i : store_count(k);
        }
}

void hostile_empty(void) {
        if (!used)
                return;
        empty_kind(K_DOMAIN);
        empty_kind(K_TEMPLATE);
}

const char *hostile_misses(void) {
        static char text[128];
        for (size_t i = 0; used && i < store_count(K_DOMAIN); i++) {
                const struct version *v = store_nth(K_DOMAIN, i);
                if (!streq(v->ns, HOSTILE_NS) || version_deleted(v) || version_str(v, "/status/status"))
                        continue;
                snprintf(text, sizeof text, "ComputeDomain %s/%.40s has no status", v->ns, v->name);
                return text;
        }
        return NULL;
}
