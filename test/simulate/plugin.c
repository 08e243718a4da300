/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/stderr.h"
#include "base/file.h"
#include "cd_plugin/cd_driver.h"
#include "cd_plugin/isolation.h"
#include "cd_plugin/may_prepare.h"
#include "cd_plugin/cd_metrics.h"
#include "cd_plugin/cd_offer.h"
#include "cd_plugin/own_pod.h"
#include "cd_plugin/standing.h"
#include "channels.h"
#include "daemon.h"
#include "daemon/folder.h"
#include "daemon/memory.h"
#include "disks.h"
#include "go_driver.h"
#include "imex.h"
#include "imex/imex_grants.h"
#include "imex/imex_lock.h"
#include "looks.h"
#include "model/rack.h"
#include "node/batch.h"
#include "node/claims.h"
#include "node/slice_publisher.h"
#include "racks.h"
#include "sim.h"
#include "world.h"

enum { MAX_PLUGINS = 64, EVENTS_FLUSH_MS = 1500, BURIAL_MS = 5000, KUBELET_WAITS_MS = 45000 };

/* ---- cd_plugin/facts.h: facts of a node, from NVML and the kernel ---- */

struct facts_sampler {
        struct facts facts;
};

const struct facts *facts_get(const struct facts_sampler *s) {
        return &s->facts;
}

void facts_poll_fast(struct facts_sampler *s, bool waiting) {
}

int facts_major(const struct facts_sampler *s, const char *name, unsigned *ret, struct err *e) {
        *ret = streq(name, PROC_MAJOR_CAPS) ? 241 : 240;
        return 0;
}

/* ---- the processes ---- */

struct life {
        unsigned node;
        bool over, serves; /* serves: the kubelet can use its sockets */
        bool withholds;    /* its node is not registered with the NVLink fabric */
        bool judged;       /* it is known whether its devices are offered; before that it publishes nothing */
        char name[16], boot_id[37], pod[32];
        char *plugin_dir, *cdi_root;
        const struct imex_mode *mode;
        struct facts_sampler facts;
        struct kube_client *client;
        struct event_recorder *events;
        struct slice_publisher *slices;
        struct claims *claims;
        struct own_pod *own_pod;
        struct isolation *isolation; /* with channels only */
        struct offering offering;    /* the last judgment */
        struct cd_metrics metrics;
};

static struct {
        struct life *now; /* NULL: the plugin does not run */
        struct sim_event *again;
        char clique[64], boot_id[37];
} plugins[MAX_PLUGINS];
static uv_loop_t *loop;
static const struct imex_mode *modes[2]; /* for isolation domain and channel */
static unsigned living;                  /* plugins that have not been freed */

/* Ends the kubelet's calls: the plugin cancels them, or the connection breaks. */
static void break_calls(struct life *l, bool cancels);

static void put(const char *path, const char *text) {
        struct err e;
        _cleanup_(freep) char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
        BUG_ON(file_mkdirs(dir, 0755, &e) < 0 ||
               file_replace_volatile(path, text, strlen(text), 0755, &e) < 0);
}

void plugins_begin(uv_loop_t *l) {
        static struct gates gates;
        struct err e;
        loop = l;
        gates_init(&gates);
        if (channels_of_host())
                BUG_ON(gates_parse(&gates, "HostManagedIMEX=true", &e) < 0);
        BUG_ON(mode_resolve(&gates, "", "", &modes[0], &e) < 0 ||
               mode_resolve(&gates, "", "channel", &modes[1], &e) < 0);
        put("root/usr/lib64/libnvidia-ml.so.1", "x");
        put("root/usr/bin/nvidia-imex", "x");
        put("root/usr/bin/nvidia-imex-ctl", "x");
        put("root/capabilities/fabric-imex-mgmt", "DeviceFileMinor: 512\nDeviceFileMode: 438\n");
}

/* The closing handles and the disk no longer use it. */
static void on_closed(void *u) {
        struct life *l = u;
        node_metrics_done(&l->metrics.node);
        free(l->plugin_dir);
        free(l->cdi_root);
        free(l);
        living--;
}

static void on_again(void *u) {
        unsigned node = (unsigned)(uintptr_t)u;
        char clique[64], boot_id[37];
        plugins[node].again = NULL;
        snprintf(clique, sizeof clique, "%s", plugins[node].clique);
        snprintf(boot_id, sizeof boot_id, "%s", plugins[node].boot_id);
        plugin_start(node, clique, boot_id);
}

static void begin_again(unsigned node) {
        plugins[node].again =
                sim_at(sim_now_ms() + sim_between(1000, 15000), on_again, (void *)(uintptr_t)node);
}

static void on_flushed(void *u) {
        struct life *l = u;
        event_recorder_free(l->events);
        kube_client_free(l->client);
        sim_at(sim_now_ms() + BURIAL_MS, on_closed, l);
}

bool plugin_runs(unsigned node) {
        return plugins[node].now && plugins[node].now->serves;
}

static void end_claims(struct life *l) {
        l->over = true;
        plugins[l->node].now = NULL;
        claims_free(l->claims);
        isolation_free(l->isolation);
        own_pod_free(l->own_pod);
        slice_publisher_free(l->slices);
}

void plugin_kill(unsigned node, bool again) {
        struct life *l = plugins[node].now;
        sim_cancel(TAKE(plugins[node].again));
        if (again)
                begin_again(node);
        if (!l)
                return;
        sim_log("the plugin of %s is killed", l->name);
        break_calls(l, false);
        disk_kill(l->claims->batch->disk);
        end_claims(l);
        on_flushed(l);
}

void plugin_stop(unsigned node) {
        struct life *l = plugins[node].now;
        if (!l)
                return;
        sim_log("the plugin of %s gets SIGTERM", l->name);
        break_calls(l, true);
        end_claims(l);
        event_recorder_flush(l->events, EVENTS_FLUSH_MS, on_flushed, l);
        begin_again(node);
}

void plugins_end(void) {
        for (unsigned i = 0; i < MAX_PLUGINS; i++)
                plugin_kill(i, false);
}

bool plugins_buried(void) {
        return living == 0;
}

static void publish(const struct life *l) {
        char rack[RACK_MAX + 1];
        const char *clique = l->facts.facts.fabric.clique_id;
        struct slice_content content = cd_offer_content(
                &(struct cd_offer){ .channels = l->offering.offered,
                                    .channel_devices = mode_channel_devices(l->mode),
                                    .daemon = mode_runs_daemons(l->mode),
                                    .clique_id = clique,
                                    .rack = racks_used() && rack_id(NULL, clique, rack) ? rack : NULL });
        slice_set(l->slices, &content);
}

void plugin_withhold(unsigned node) {
        struct life *l = plugins[node].now;
        l->withholds = true;
        l->offering.offered = false;
        own_pod_set(l->own_pod, IMEX_ANNOTATION_WITHHELD,
                    "FabricError: 2 of 4 GPUs are not registered with the NVLink fabric", 0);
        publish(l);
}

static void on_isolation(void *u) {
        struct life *l = u;
        struct offering now;
        if (isolation_evaluate(l->isolation, &l->facts.facts, &now)) {
                now.offered = now.offered && !l->withholds;
                bool news = now.offered != l->offering.offered;
                l->offering = now;
                if (news || !l->judged)
                        publish(l);
                l->judged = true;
        }
        if (l->claims)
                claims_reevaluate(l->claims);
}

static void on_standing(void *u) {
        struct life *l = u;
        isolation_standing(l->isolation);
}

static void get_standing(void *u, struct standing *ret) {
        const struct life *l = u;
        *ret = (struct standing){ 0 };
        if (l->claims)
                standing_get(l->claims->o.u, ret);
}

static void on_started(void *u, const struct err *e) {
        struct life *l = u;
        if (e)
                sim_broken("the plugin on %s does not start: %s", l->name, e->msg);
        l->serves = !e;
        if (l->serves)
                claims_registered(l->claims);
}

void plugin_start(unsigned node, const char *clique, const char *boot_id) {
        struct life *l = xnew(struct life);
        char server[32];
        struct kube_config kc = { .server = server };
        struct err e;
        living++;
        sim_cancel(TAKE(plugins[node].again));
        plugins[node].now = l;
        l->node = node;
        l->mode = modes[channels_used()];
        snprintf(l->name, sizeof l->name, "node-%u", node);
        snprintf(server, sizeof server, "http://%s", l->name);
        snprintf(plugins[node].clique, sizeof plugins[node].clique, "%s", clique);
        snprintf(plugins[node].boot_id, sizeof plugins[node].boot_id, "%s", boot_id);
        snprintf(l->boot_id, sizeof l->boot_id, "%s", boot_id);
        l->plugin_dir = xasprintf(PLUGIN_DIR(l->name));
        l->cdi_root = xasprintf(PLUGIN_CDI(l->name));
        BUG_ON(file_mkdirs(l->plugin_dir, 0750, &e) < 0 || file_mkdirs(l->cdi_root, 0750, &e) < 0);
        l->facts.facts = (struct facts){ .known = true,
                                         .usable = true,
                                         .reason = "",
                                         .driver_version = "580.95.05",
                                         .fabric = { .kind = GPU_FABRIC_CLIQUE },
                                         .channel_count = channels_count(),
                                         .channel_major = 240 };
        snprintf(l->facts.facts.fabric.clique_id, sizeof l->facts.facts.fabric.clique_id, "%s", clique);
        cd_metrics_init(&l->metrics, l->name);
        BUG_ON(kube_client_new(loop,
                               &(struct kube_client_options){ .config = &kc,
                                                              .user_agent = "plugin",
                                                              .metrics = l->metrics.node.registry,
                                                              .metrics_prefix = CD_METRICS_PREFIX },
                               &l->client, &e) < 0);
        l->events = event_recorder_new(l->client, "compute-domain-kubelet-plugin", l->name);
        l->slices = slice_publisher_new(l->client, CD_DRIVER, l->name);
        snprintf(l->pod, sizeof l->pod, CHANNELS_POD, l->name);
        l->own_pod = own_pod_new(l->client, DRIVER_NS, l->pod);
        if (channels_used()) {
                cd_metrics_own_channels(&l->metrics);
                l->isolation = isolation_new(&(struct isolation_options){
                        .loop = loop,
                        .kube = l->client,
                        .events = l->events,
                        .metrics = &l->metrics,
                        .node = l->name,
                        .own_pod = l->own_pod,
                        .cdi_root = l->cdi_root,
                        .root = { .host = "/run/nvidia/driver", .here = "root" },
                        .host_root = "",
                        .trust_toolkit = true,
                        .facts = &l->facts,
                        .standing = channels_standing() ? get_standing : NULL,
                        .changed = on_isolation,
                        .u = l,
                });
        }
        l->offering.offered = !l->isolation; /* otherwise later, when it is known */
        if (!l->isolation)
                publish(l);
        slice_start(l->slices);
        sim_log("the plugin of %s starts", l->name);
        const struct cd_options cd = {
                .loop = loop,
                .kube = l->client,
                .events = l->events,
                .facts = &l->facts,
                .mode = l->mode,
                .node = l->name,
                .ns = DRIVER_NS,
                .plugin_dir = l->plugin_dir,
                .boot_id = l->boot_id,
                .root = { .host = "/run/nvidia/driver", .here = "root" },
                .dev_root = "root",
                .proc_driver = "root",
                .channel_nodes = "", /* no channels are created: the host is this machine */
                .fabric = l->isolation ? isolation_fabric(l->isolation) : NULL,
                .holdings = l->isolation ? isolation_holdings(l->isolation) : NULL,
                .own_pod = l->own_pod,
                .standing_changed = channels_standing() ? on_standing : NULL,
                .u = l,
        };
        const struct claims_options o = {
                .loop = loop,
                .kube = l->client,
                .events = l->events,
                .metrics = &l->metrics.node,
                .driver = &cd_driver,
                .u = cd_driver_new(&cd),
                .node = l->name,
                .plugin_dir = l->plugin_dir,
                .cdi_root = l->cdi_root,
                .boot_id = l->boot_id,
                .retries = true,
        };
        BUG_ON(claims_new(&o, &l->claims, &e) < 0);
        claims_start(l->claims, on_started, l);
        if (l->isolation)
                isolation_facts(l->isolation);
}

static const struct checkpoint_claim *recorded(const struct life *l, const char *uid) {
        const struct checkpoint_claim *c = checkpoint_find(&l->claims->journal.table, uid);
        return c && c->state == CHECKPOINT_COMPLETED ? c : NULL;
}

/* ---- dra/dra_plugin.h: a call of the kubelet ---- */

struct dra_op {
        LIST_ENTRY(dra_op) entry;
        struct held *held;
        struct life *life;
        void *data;
        bool unprepare;
        bool again;     /* the claim was already prepared when the call began */
        uint64_t began; /* looks_now() */
        int64_t began_ms;
        struct sim_event *deadline;
};
static LIST_HEAD(, dra_op) calls = LIST_HEAD_INITIALIZER(calls);
static LIST_HEAD(, held) helds = LIST_HEAD_INITIALIZER(helds);

const char *held_cdi_file(const struct held *h) {
        static char path[256];
        snprintf(path, sizeof path, "node-%u/cdi/k8s.compute-domain.nvidia.com-claim_%s.yaml", h->node,
                 h->uid);
        return path;
}

static bool has_cdi_file(const struct held *h) {
        return access(held_cdi_file(h), F_OK) == 0;
}

/* The pod of the claim may have a channel of that partition now: the claim is prepared, with or without
 * network. Nothing runs on a node whose Node has not existed for a minute. */
static bool may_be_alive(const struct held *h) {
        return h->channel && h->id >= 0 && h->state != HELD_NOT && !world_is_given_up(h->node);
}

void held_given_up(unsigned node) {
        struct held *h;
        LIST_FOREACH (h, &helds, entry)
                if (h->node == node)
                        h->id = -1;
}

/* failure: any faults meet in the simulation -> no channel has two holders that may run [simulation] */
static void look_at_channel(struct held *h, const char *clique) {
        const struct held *o;
        h->id = channels_id(held_cdi_file(h));
        snprintf(h->clique, sizeof h->clique, "%s", clique);
        sim_log("%s/%s has channel %lld of %s", h->ns, h->name, (long long)h->id, clique);
        LIST_FOREACH (o, &helds, entry) {
                if (o == h || !may_be_alive(o) || !streq(o->clique, clique))
                        continue;
                if (o->id == h->id && !streq(o->domain, h->domain))
                        sim_broken("channel %lld of %s has two holders that may run: %s on node-%u and %s "
                                   "on node-%u",
                                   (long long)h->id, clique, o->name, o->node, h->name, h->node);
                if (o->id != h->id && streq(o->domain, h->domain) &&
                    !channels_is_releasing(clique, o->id, o->domain))
                        sim_broken("ComputeDomain %s has channels %lld and %lld of %s", h->domain,
                                   (long long)o->id, (long long)h->id, clique);
        }
}

/* Wraps cd_plugin/may_prepare.h: the plugin's last look before it records a claim. */
bool __real_may_prepare(const struct prepare_question *q, const struct prepare_daemon *d, char *msg,
                        size_t n);
bool __wrap_may_prepare(const struct prepare_question *q, const struct prepare_daemon *d, char *msg,
                        size_t n);
bool __wrap_may_prepare(const struct prepare_question *q, const struct prepare_daemon *d, char *msg,
                        size_t n) {
        bool may = __real_may_prepare(q, d, msg, n);
        const struct held *h;
        LIST_FOREACH (h, &helds, entry)
                if (may && streq(h->uid, d->claim_uid)) {
                        looks_ready(h->node, q->imex_uid);
                        world_pod_serves(h->node, h->uid, q->imex_uid);
                }
        return may;
}

static void end_call(struct dra_op *op) {
        LIST_REMOVE(op, entry);
        sim_cancel(op->deadline);
        op->held->call = NULL;
        free(op);
}

void dra_op_set_data(struct dra_op *op, void *data) {
        op->data = data;
}

uint64_t dra_op_timeout_ms(const struct dra_op *op) {
        return KUBELET_WAITS_MS;
}

/* A claim that was prepared before keeps its channel, in any state of IMEX. */
/* failure: any faults meet in the simulation -> no claim is prepared while its IMEX is not READY
 * [simulation] */
static void look_at_imex(const struct dra_op *op) {
        const struct held *h = op->held;
        const char *domain = channels_imex_domain(h->own, h->domain, plugins[h->node].clique);
        if (!op->again && !imex_serves(h->node, domain) && !looks_excuse(h->node, domain, op->began))
                sim_broken(
                        "claim %s/%s gets a channel of ComputeDomain %s on %s, where its IMEX is not READY",
                        h->ns, h->name, h->domain, op->life->name);
}

void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n) {
        struct held *h = op->held;
        sim_log("%s: %s/%s is prepared", op->life->name, h->ns, h->name);
        if (!n || !has_cdi_file(h))
                sim_broken("the plugin reports claim %s/%s as prepared on %s, but it is not", h->ns, h->name,
                           op->life->name);
        if (h->channel && h->own)
                look_at_channel(h, plugins[h->node].clique);
        if (h->channel && !channels_of_host())
                look_at_imex(op);
        if (h->channel && !op->again)
                go_driver_prepared(h->node, h->domain, op->began_ms);
        h->state = HELD_PREPARED;
        end_call(op);
}

/* Kubelets before 1.37 unprepare a claim that other pods of the node use: see claim_info.h. */
static void undo_others(const struct held *h) {
        struct held *o;
        LIST_FOREACH (o, &helds, entry)
                if (o != h && o->node == h->node && streq(o->uid, h->uid) && o->state == HELD_PREPARED) {
                        if (!channels_old_kubelets())
                                sim_broken("a kubelet of 1.37 unprepares %s/%s, which a pod uses", h->ns,
                                           h->name);
                        sim_log("the kubelet of node-%u unprepares %s/%s while a pod uses it", h->node, h->ns,
                                h->name);
                        o->state = HELD_ASKED;
                        o->undone = true;
                }
}

void dra_op_unprepared(struct dra_op *op) {
        struct held *h = op->held;
        undo_others(h);
        sim_log("%s: %s/%s is unprepared", op->life->name, h->ns, h->name);
        if (has_cdi_file(h) || recorded(op->life, h->uid))
                sim_broken("the plugin reports claim %s/%s as unprepared on %s, but it is not", h->ns,
                           h->name, op->life->name);
        h->state = HELD_NOT;
        end_call(op);
}

/* The kubelet retries with its next sync of the pod: a Prepare after 60 to 90 s (kubernetes#139836), unless
 * an annotation changes. */
static int64_t next_sync_ms(void) {
        return sim_now_ms() + sim_between(60000, 90000);
}

static void failed(struct dra_op *op, const char *msg) {
        struct held *h = op->held;
        sim_log("%s: %s of %s/%s fails: %s", op->life->name, op->unprepare ? "unprepare" : "prepare",
                op->held->ns, op->held->name, msg);
        h->next_ms = h->sync         ? sim_now_ms()
                     : op->unprepare ? sim_now_ms() + sim_between(500, 10000)
                                     : next_sync_ms();
        if (!op->unprepare) {
                snprintf(op->held->failure, sizeof op->held->failure, "%s", msg);
                op->held->failed_ms = sim_now_ms();
        }
        end_call(op);
}

void dra_op_fail(struct dra_op *op, const char *msg) {
        failed(op, msg);
}

static void cancel(struct dra_op *op, const char *why) {
        claims_cancelled(op->life->claims, op, op->data);
        failed(op, why);
}

static void on_deadline(void *u) {
        struct dra_op *op = u;
        op->deadline = NULL;
        cancel(op, "the deadline has passed");
}

static void break_calls(struct life *l, bool cancels) {
        struct dra_op *op, *next;
        for (op = LIST_FIRST(&calls); op; op = next) {
                next = LIST_NEXT(op, entry);
                if (op->life == l && cancels)
                        cancel(op, "the plugin ends");
                else if (op->life == l)
                        failed(op, "the connection is closed");
        }
}

static void call(struct held *h, bool unprepare) {
        struct life *l = plugins[h->node].now;
        struct dra_claim claim = { h->ns, h->name, h->uid };
        if (h->call || sim_now_ms() < h->next_ms || !l || !l->serves)
                return;
        struct dra_op *op = xnew(struct dra_op);
        *op = (struct dra_op){ .held = h, .life = l, .unprepare = unprepare };
        op->again = recorded(l, h->uid) != NULL;
        op->began = looks_now();
        op->began_ms = sim_now_ms();
        op->deadline = sim_at(sim_now_ms() + KUBELET_WAITS_MS, on_deadline, op);
        LIST_INSERT_HEAD(&calls, op, entry);
        h->call = op;
        h->sync = false;
        h->state = HELD_ASKED;
        if (unprepare)
                undo_others(h);
        if (unprepare)
                claims_unprepare(l->claims, op, &claim);
        else
                claims_prepare(l->claims, op, &claim);
}

/* ---- calls of the kubelet ---- */

void held_init(struct held *h, unsigned node, bool channel, const char *ns, const char *name, const char *uid,
               const char *domain, bool own) {
        if (h->known)
                return;
        *h = (struct held){ .known = true, .node = node, .channel = channel, .own = own, .id = -1 };
        snprintf(h->ns, sizeof h->ns, "%s", ns);
        snprintf(h->name, sizeof h->name, "%s", name);
        snprintf(h->uid, sizeof h->uid, "%s", uid);
        snprintf(h->domain, sizeof h->domain, "%s", domain);
        LIST_INSERT_HEAD(&helds, h, entry);
}

bool held_prepare(struct held *h) {
        if (h->state != HELD_PREPARED)
                call(h, false);
        return h->state == HELD_PREPARED;
}

bool held_abort(struct held *h) {
        if (h->call && !h->call->unprepare && sim_chance(20))
                cancel(h->call, "the pod ends");
        return !h->call;
}

bool held_unprepare(struct held *h) {
        (void)held_abort(h);
        if (h->state != HELD_NOT)
                call(h, true);
        return h->state == HELD_NOT && !h->call;
}

void held_must_unprepare(struct held *h) {
        h->state = HELD_ASKED;
        call(h, true);
}

bool held_join(struct held *h) {
        if (!has_cdi_file(h))
                return false;
        h->state = HELD_PREPARED;
        h->undone = false;
        look_at_channel(h, plugins[h->node].clique);
        return true;
}

void held_refuse(struct held *h, const char *why) {
        sim_log("the kubelet of node-%u does not prepare %s/%s: %s", h->node, h->ns, h->name, why);
        h->next_ms = h->sync ? sim_now_ms() : next_sync_ms();
        h->sync = false;
}

void held_sync(struct held *h) {
        h->sync = true;
        h->next_ms = 0;
}

void held_reboot(struct held *h) {
        h->id = -1;
        h->undone = false;
        if (h->state == HELD_PREPARED)
                h->state = HELD_ASKED;
}

void held_leave(const struct held *h) {
        struct held *left = xnew(struct held);
        sim_log("the kubelet of node-%u forgets %s/%s", h->node, h->ns, h->name);
        *left = *h;
        left->forgotten = true;
        left->state = HELD_NOT;
        left->id = -1;
        left->call = NULL;
        LIST_INSERT_HEAD(&helds, left, entry);
}

void held_forget(struct held *h) {
        if (!h->known)
                return;
        BUG_ON(h->call);
        LIST_REMOVE(h, entry);
        *h = (struct held){ 0 };
}

/* failure: any faults meet in the simulation -> no claim is unprepared while its pod may run [simulation] */
void held_check_all(void) {
        static uint64_t looked;
        const bool changed = looked != disks_tasks();
        const struct held *h;
        looked = disks_tasks();
        LIST_FOREACH (h, &helds, entry) {
                const struct life *l = plugins[h->node].now;
                if (h->state == HELD_PREPARED &&
                    ((changed && !has_cdi_file(h)) || (l && l->serves && !recorded(l, h->uid))))
                        sim_broken("claim %s/%s is unprepared on node-%u while its pod may run", h->ns,
                                   h->name, h->node);
        }
}

/* ---- leftovers ---- */

/* The names in a folder, which are listed again when a folder has changed. */
struct names {
        uint64_t at;
        bool known;
        char **list;
        size_t n, cap;
};

static int add_name(void *u, int folder, const char *name, struct err *e) {
        struct names *l = u;
        GROW(l->list, l->n, l->cap);
        l->list[l->n++] = xstrdup(name);
        return 0;
}

static void list_names(struct names *l, const char *dir) {
        struct err e;
        if (l->known && l->at == sim_files_changes())
                return;
        while (l->n)
                free(l->list[--l->n]);
        l->known = true;
        l->at = sim_files_changes();
        (void)file_each(dir, add_name, l, &e);
}

/* The folders of ComputeDomains on a node: of the one whose IMEX the daemon runs, and of those that pods of
 * the node use. A plugin that assigns channels watches the folder of the partition's domain, also before the
 * daemon has left the domain of a pod with a claim of the other isolation. */
static bool is_of_daemon(const struct held *h, const char *name) {
        return !channels_of_host() &&
               ((channels_standing() &&
                 streq(name, channels_imex_domain(true, h->domain, plugins[h->node].clique))) ||
                streq(name, FOLDER_FABRIC_FILE) || streq(name, FOLDER_EDITS_FILE) ||
                streq(name, MEMORY_FILE) ||
                streq(name, channels_imex_domain(h->own, h->domain, plugins[h->node].clique)) ||
                streq(name, imex_domain(h->node)));
}

/* The plugin must keep a forgotten claim while other nodes can use it. */
static bool explains(const struct held *h, unsigned node) {
        const struct version *c = h->forgotten ? store_get(K_CLAIM, h->ns, h->name) : NULL;
        return h->node == node && (!h->forgotten || (c && streq(c->uid, h->uid)));
}

static bool is_stray(unsigned node, const char *name) {
        const struct held *h;
        if (streq(name, IMEX_GRANTS_LOCK) || streq(name, IMEX_DAEMON_LOCK))
                return false; /* they stay */
        LIST_FOREACH (h, &helds, entry)
                if (explains(h, node) && (strstr(name, h->uid) || is_of_daemon(h, name)))
                        return false;
        return true;
}

static char *stray_in(unsigned node, const char *sub, struct names *names) {
        char dir[64];
        snprintf(dir, sizeof dir, "node-%u/%s", node, sub);
        list_names(names, dir);
        for (size_t i = 0; i < names->n; i++)
                if (is_stray(node, names->list[i]))
                        return xasprintf("%s/%s", dir, names->list[i]);
        return NULL;
}

static char *stray_entry(unsigned node) {
        const struct life *l = plugins[node].now;
        const struct held *h;
        for (const struct checkpoint_claim *c = l ? l->claims->journal.table.claims : NULL; c;
             c = c->hh.next) {
                if (c->state == CHECKPOINT_ABORTED)
                        continue; /* the plugin keeps it for a while, to refuse a late Prepare */
                LIST_FOREACH (h, &helds, entry)
                        if (explains(h, node) && streq(h->uid, c->uid))
                                break;
                if (!h)
                        return xasprintf("the entry of claim %s/%s", c->ns, c->name);
        }
        return NULL;
}

const char *held_strays(unsigned node) {
        static char text[256];
        static struct names cdi[MAX_PLUGINS], domains[MAX_PLUGINS];
        _cleanup_(freep) char *found = stray_in(node, "cdi", &cdi[node]);
        if (!found)
                found = stray_in(node, "plugin/domains", &domains[node]);
        if (!found)
                found = stray_entry(node);
        if (found)
                snprintf(text, sizeof text, "%s is left on node-%u", found, node);
        return found ? text : NULL;
}
