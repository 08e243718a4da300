/* SPDX-License-Identifier: Apache-2.0 */
#include "channels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/names.h"
#include "base/file.h"
#include "base/mem.h"
#include "daemon.h"
#include "hostile.h"
#include "model/fabric.h"
#include "model/mode.h"
#include "plugin.h"
#include "replica.h"
#include "server.h"
#include "sim.h"
#include "world.h"

enum { LEASE_S = 10, POD_GC_MS = 40000, FILE_MAX_BYTES = 1 << 20 };
#define LEASES "kube-node-lease"
#define DEVICE "/dev/nvidia-caps-imex-channels/channel"

static bool used, stands, changes, calm, shared, old_kubelets;
static unsigned count;

/* A namespace may have half of the channels that others leave free, and a ComputeDomain may have two after
 * its table was lost. */
void channels_use(unsigned n_domains, bool standing) {
        used = true;
        stands = standing;
        count = (hostile_used() ? 6 : 4) * n_domains + 1;
}

void channels_use_shared(void) {
        shared = true;
        old_kubelets = sim_chance(50);
        if (!old_kubelets)
                server_serve_pod_groups();
}

bool channels_old_kubelets(void) {
        return old_kubelets;
}

bool channels_pod_groups(void) {
        return shared && !old_kubelets;
}

bool channels_shared(void) {
        return shared;
}

unsigned channels_count(void) {
        return count;
}

bool channels_used(void) {
        return used;
}

bool channels_of_host(void) {
        return used && !stands;
}

bool channels_standing(void) {
        return stands;
}

bool channels_change(void) {
        return changes;
}

const char *channels_imex_domain(bool own, const char *domain_uid, const char *clique) {
        static char uid[37];
        if (!own || channels_of_host())
                return domain_uid;
        fabric_standing_uid(clique, uid);
        return uid;
}

bool channels_stands(const char *uid) {
        char clique[64];
        for (unsigned i = 0; i <= world_nodes() / NODES_OF_CLIQUE + 1; i++) {
                snprintf(clique, sizeof clique, "clique.%u", i);
                if (streq(uid, channels_imex_domain(true, "", clique)))
                        return true;
        }
        return false;
}

bool channels_other_mode(const struct version *domain) {
        const char *mode = version_annotation(domain, CD_ANNOTATION_MODE);
        return changes && mode && !streq(mode, used ? MODE_DRIVER_CHANNEL : MODE_DRIVER_MANAGED);
}

bool channels_of_template(const struct version *template) {
        return strstr(template->json, "\"isolation\":\"Channel\"");
}

/* ---- the isolation changes ---- */

static void on_replica(void *u) {
        replica_stop((unsigned)(uintptr_t)u);
}

static void on_plugin(void *u) {
        plugin_stop((unsigned)(uintptr_t)u);
}

static int64_t restarted_ms; /* when the last program has restarted */

/* Each program restarts with the value that is configured then, some later than others. */
static void restart_all(int64_t within_ms) {
        if (restarted_ms < sim_now_ms() + within_ms)
                restarted_ms = sim_now_ms() + within_ms;
        for (unsigned i = 0; i < REPLICAS; i++)
                sim_at(sim_now_ms() + sim_between(0, within_ms), on_replica, (void *)(uintptr_t)i);
        for (unsigned i = 0; i < world_nodes(); i++)
                sim_at(sim_now_ms() + sim_between(0, within_ms), on_plugin, (void *)(uintptr_t)i);
}

bool channels_restart(void) {
        return sim_now_ms() < restarted_ms;
}

static void on_change(void *u) {
        if (calm)
                return;
        used = stands = !used;
        sim_log("the isolation is %s", used ? "channel" : "domain");
        restart_all(sim_chance(50) ? 2000 : 60000);
        sim_at(sim_now_ms() + sim_between(20000, 300000), on_change, NULL);
}

void channels_use_changes(unsigned n_domains) {
        channels_use(n_domains, true);
        changes = true;
        used = stands = false;
}

void channels_begin(void) {
        if (shared)
                sim_log("the version of Kubernetes is %s", old_kubelets ? "1.36" : "1.37");
        if (changes)
                sim_at(sim_between(10000, 300000), on_change, NULL);
}

void channels_calm(void) {
        calm = true;
        if (changes)
                restart_all(10000);
}

unsigned channels_pods_max(void) {
        return used || changes ? MODE_CHANNEL_DEVICES : 1;
}

/* ---- reports of a node beside its Node object ---- */

const char *channels_now_text(int64_t ahead_s) {
        static char text[32];
        time_t now = (time_t)(sim_wall_s() + ahead_s);
        struct tm tm;
        gmtime_r(&now, &tm);
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000000Z", &tm);
        return text;
}

static void renew(const char *node, int64_t ahead_s) {
        const struct version *v = store_get(K_LEASE, LEASES, node);
        static const char spec[] = "'spec':{'holderIdentity':'%s','renewTime':'%s'}";
        char text[160];
        if (v && sim_wall_s() - v->renewed_s < LEASE_S)
                return;
        snprintf(text, sizeof text, spec, node, channels_now_text(ahead_s));
        if (v)
                world_patch(K_LEASE, v, false, "{'metadata':{'annotations':{'renewed':'%" PRId64 "'}},%s}",
                            sim_wall_s(), text);
        else
                world_create(K_LEASE, LEASES,
                             "{'metadata':{'name':'%s','annotations':{'renewed':'%" PRId64 "'}},%s}", node,
                             sim_wall_s(), text);
}

enum channels_pod channels_step(const char *node, const char *name, bool heard, bool runs, int64_t gone_ms,
                                int64_t ahead_s) {
        const struct version *pod = store_get(K_POD, DRIVER_NS, name);
        if (gone_ms && (!pod || sim_now_ms() - gone_ms <= POD_GC_MS))
                return CHANNELS_POD_STAYS;
        if (gone_ms) {
                world_delete(K_POD, pod, true);
                return CHANNELS_POD_GOES;
        }
        if (heard)
                renew(node, ahead_s);
        if (!pod) {
                world_create(K_POD, DRIVER_NS,
                             "{'metadata':{'name':'%s','labels':{'app':'" CHANNELS_LABEL
                             "'}},'spec':{'nodeName':'%s'},'status':{'phase':'Running'}}",
                             name, node);
                return CHANNELS_POD_COMES;
        }
        const char *status = heard && runs ? "True" : "False";
        if (heard && !streq(pod->condition, status))
                world_patch(
                        K_POD, pod, true,
                        "{'status':{'conditions':[{'type':'Ready','status':'%s','lastTransitionTime':'%s'},"
                        "{'type':'Initialized','status':'True','lastTransitionTime':'%s'}]}}",
                        status, channels_now_text(ahead_s), version_str(pod, "/metadata/creationTimestamp"));
        return CHANNELS_POD_STAYS;
}

/* ---- faults ---- */

/* An earlier version; NULL: it has never changed. */
static const struct version *earlier(const struct version *v) {
        const struct change *c;
        size_t n = store_history(K_FABRIC, &c), first = n ? (size_t)sim_draw(n) : 0;
        for (size_t i = first; i < n; i++)
                if (streq(c[i].now->name, v->name) && c[i].now->rv < v->rv)
                        return c[i].now;
        return NULL;
}

void channels_fault(const char *name) {
        size_t n = store_count(K_FABRIC);
        if (!n)
                return;
        struct version *v = version_ref(store_nth(K_FABRIC, sim_draw(n)));
        const struct version *was = streq(name, "fabric_restored") ? earlier(v) : NULL;
        _cleanup_(freep) char *json = was ? xstrdup(was->json) : NULL;
        world_delete(K_FABRIC, v, false);
        if (json)
                store_create("world", K_FABRIC, "", json);
        version_unref(v);
}

/* ---- prepared channels ---- */

int64_t channels_id(const char *cdi_path) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        const char *at =
                file_read(cdi_path, FILE_MAX_BYTES, &text, NULL, &e) < 0 ? NULL : strstr(text, DEVICE);
        return at ? strtoll(at + strlen(DEVICE), NULL, 10) : -1;
}

bool channels_is_releasing(const char *clique, int64_t id, const char *owner) {
        const struct version *v = store_get(K_FABRIC, "", clique);
        yyjson_val *e, *list = v ? yyjson_obj_get(v->root, "channels") : NULL;
        size_t i, n;
        yyjson_arr_foreach (list, i, n, e) {
                bool is_it = yyjson_get_sint(yyjson_obj_get(e, "id")) == id &&
                             yyjson_equals_str(yyjson_ptr_get(e, "/owner/uid"), owner);
                if (is_it && yyjson_obj_get(e, "releasing"))
                        return true;
        }
        return false;
}
