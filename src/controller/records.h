/* SPDX-License-Identifier: Apache-2.0 */
/* records: holds the state of the controller: its caches, the facts that it remembers in addition, and the
 * queue of keys. The module decides and writes nothing. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "api/kinds.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/str.h"
#include "controller/allocations.h"
#include "controller/config.h"
#include "controller/crds.h"
#include "controller/first_seen.h"
#include "controller/leases.h"
#include "controller/live_read.h"
#include "controller/writes.h"
#include "kube/event_recorder.h"
#include "kube/kube_informer.h"
#include "kube/work_queue.h"
#include "model/domain.h"
#include "model/fabric.h"
#include "render/objects.h"
#include "rules/node_counts.h"
#include "rules/shortage.h"

/* ---- keys ---- */

/* A key of the work queue names an object that needs a decision. The queue and controller/writes compare keys
 * as texts. */
enum key_kind {
        KEY_DOMAIN,  /* a ComputeDomain, by its UID */
        KEY_NODE,    /* a Node, by its name */
        KEY_RACK,    /* a rack, by its ID */
        KEY_FABRIC,  /* a partition, by its clique ID */
        KEY_DAEMONS, /* the DaemonSet of the daemons and its claim template; they have no name */
        KEY_SHARED,  /* the ResourceSlice of the device for shared claims; it has no name */
        KEY_AUTO,    /* a ComputeDomain that pods ask for with a label, as "<namespace>/<name>" */
        KEY_CLAIM,   /* a claim that the controller may allocate, as "<namespace>/<name>" */
        KEY_KINDS
};

struct key {
        enum key_kind kind;
        const char *name;
};

/* Appends the text of the key. */
void key_render(enum key_kind kind, const char *name, struct buf *out);
/* Parses a text of key_render(). The name in the result points into the text. */
struct key key_parse(const char *text);
/* Returns the name of the kind in metrics: "domain", "node", "rack", "fabric", "daemons", "shared", "auto" or
 * "claim". */
const char *key_kind_name(enum key_kind kind);

#define KEY_OF_DAEMONS "daemons/"
#define KEY_OF_SHARED "shared/"

/* A namespace that may have daemons of the Go driver: the driver's, and those of earlier installations. */
struct controller_namespace {
        const char *ns;
        struct kube_informer *sets, *pods, *cliques;
};

/* The object with the name of one of its claim templates. The caches do not show it, because it does not have
 * the label of the ComputeDomain. */
struct controller_holder {
        struct controller_domain *d;
        struct arena *arena;
        const struct rct *rct;    /* NULL: none known */
        struct kube_call *asking; /* the request that reads it */
};

/* The facts about a ComputeDomain that the controller remembers in addition to the caches. They do not matter
 * after a restart. */
struct controller_domain {
        UT_hash_handle hh;
        struct controller *c;
        struct controller_holder holder, shared_holder; /* see struct plan_input */
        struct arena *events_arena; /* Events of the last status write; they are created after the write
                                       has succeeded */
        struct verdict_event *events;
        size_t n_events;
        uint64_t events_version; /* the version of the ComputeDomain that this write was to change */
        bool events_unsure;      /* its answer was lost, so the cache will show whether it has succeeded */
        /* The request that reads the claim with the name of its shared claim. */
        struct kube_call *asking_claim;
        const struct plan_claim_holder *claim_holder; /* another claim with that name; NULL: none known */
        struct arena *claim_holder_arena;
        int64_t ending_since; /* since when it has been ending, as far as known; 0: it is not ending */
        bool was_held;        /* the ComputeDomain was deleted, and the finalizer of another controller
                                 kept it */
        struct shortage_memory shortage;
        int64_t shortage_looked;         /* when the facts for it were looked at last; 0: never */
        struct cd_condition shortage_is; /* the result; reason NULL: nothing to report */
        char *shortage_message;          /* of shortage_is */
        bool counted;
        struct node_counts counts; /* of the last pass, if `counted` */
        char uid[];
};

struct controller_paused {
        UT_hash_handle hh;
        char key[];
};

/* The label that this controller wrote last on a Node. */
struct controller_written {
        UT_hash_handle hh;
        char *domain_uid; /* NULL: it removed the label */
        char node[];
};

struct controller_deleted_fabric {
        struct controller_deleted_fabric *next;
        const struct compute_domain_fabric *was; /* this struct holds a reference */
};

/* A fabric object that returned to an earlier version, or that was deleted with assignments, and its epoch
 * after that. */
struct controller_restored_fabric {
        struct controller_restored_fabric *next;
        int64_t epoch;
        char name[];
};

/* The request to remove a daemon, see controller/removals. */
struct controller_removal {
        UT_hash_handle hh;
        char *pod_uid;
        unsigned why; /* enum removals_why, or-ed */
        char node[];
};

struct controller_metrics {
        struct metric *info, *ready, *not_ready_s, *nodes, *peers_missing, *without_series, *gpu_nodes;
        struct metric *channels, *fabric_problem; /* NULL without fabrics */
        struct metric *depth, *leader, *reconcile, *writes, *waiting, *in_flight, *stale, *paused, *crds;
        struct metric *checks_failed;
};

/* At most CONTROLLER_SERIES_MAX ComputeDomains have their own series in the metrics, eight each.
 * ComputeDomains that are not Ready take precedence. */
enum {
        CONTROLLER_SERIES_MAX = 1000,
        CONTROLLER_IDLE_MS = 5000,
        CONTROLLER_BUSY_MS = 60000,
        CONTROLLER_ROLLOUT_MS = 500
};

/* The caches. They are NULL until controller/watch creates them. */
struct controller_caches {
        union {
                struct {
                        struct kube_informer *cds, *claims, *nodes, *slices, *rcts;
                        /* Pods of the kubelet plugin; NULL without a selector. */
                        struct kube_informer *plugins;
                        struct kube_informer *fabrics;
                        /* Pods, DaemonSet and claim template of the daemons. */
                        struct kube_informer *daemons, *daemon_sets, *daemon_rcts;
                        /* Namespaces that want a ComputeDomain of each rack; NULL: racks are off. */
                        struct kube_informer *rack_namespaces;
                        /* Pods with the label CD_LABEL_AUTO; NULL: the controller creates no ComputeDomains
                         * for them. */
                        struct kube_informer *auto_pods;
                };
                struct kube_informer *all[12]; /* the same caches */
        };
        struct controller_namespace *namespaces; /* objects that the Go driver left */
        size_t n_namespaces;
        struct kube_informer *pod_groups; /* see controller/pod_groups; NULL: not needed, or not served */
};
_Static_assert(sizeof((struct controller_caches){ 0 }.all) == offsetof(struct controller_caches, namespaces),
               "`all` lacks a cache");

/* What the controller remembers in addition to the caches. It does not matter after a restart. */
struct controller_memory {
        struct first_seen *missing_nodes;   /* Nodes that do not exist */
        struct first_seen *missing_holders; /* those of them that may have been in a partition */
        struct first_seen *vanished;        /* nodes that may still run a daemon in a partition, as "<clique
                                               ID>/<node>", see records_vanished() */
        struct first_seen *known;    /* fabric objects by UID, and what records_seen() records; forgotten only
                                        with the objects */
        struct first_seen *older;    /* UIDs of fabric objects that are younger than plugins */
        struct first_seen *restored; /* names of fabric objects, see fabric_memory_restored_s() */
        int64_t complete_since;      /* when the caches were first complete; 0: not yet */
        struct first_seen *reporting; /* nodes whose plugin has reported its channels to this process;
                                         forgotten only with the Nodes */
        struct first_seen *awaited;   /* nodes whose daemon with the newest template has not started */
        struct first_seen *releasing; /* entries of fabric objects that are being released, see fabrics.c */
        struct first_seen *empty;     /* IMEX domains without an assignment, as "<clique ID>/<owner's UID>" */
        struct controller_paused *paused; /* keys with removals that are paused until no cache is stale */
        struct controller_written *written;
        struct controller_deleted_fabric *deleted_fabrics; /* as the cache had them last */
        struct controller_restored_fabric *restored_fabrics;
        struct controller_removal *removals;
        struct controller_domain *domains;
        int64_t shared_refused;    /* when the API server dropped a field of the shared device; 0: never */
        unsigned shared_conflicts; /* of creations of its ResourceSlice, in a row */
        int64_t api_asked; /* when the API server was asked for the best version of resource.k8s.io; 0: never
                            */
        struct kube_call *api_call; /* this question; NULL: none is in flight */
        unsigned shared_was;        /* enum shared_device_state of the last pass */
        size_t shared_nodes;        /* Nodes in the cache with the label CD_LABEL_SHARED */
        unsigned reach_was;         /* enum shared_claim_reach of the last pass */
        int64_t unreached;          /* since when no Node has the label; 0: one has it, or it is not known */
        struct first_seen *brought; /* "<node>/<rack>": the rack got its first ComputeDomain because of this
                                       node */
        struct first_seen *undone; /* allocations and reservations that others removed, see shared_claims.c */
};

struct controller {
        const struct config *config;
        const struct imex_mode *mode;
        struct objects_settings settings;
        struct kube_client *client;
        struct event_recorder *events;
        struct metrics *metrics;
        struct work_queue *queue;
        struct writes *writes;
        struct allocations *allocations;
        struct live_read *live_read;
        struct leases *leases; /* of the kubelets */
        struct node_reads *node_reads;
        struct shortages *shortages;
        struct evictions *evictions; /* NULL: off */
        struct crds *crds;
        struct pod_groups *pod_groups;
        void (*synced)(void *u);
        void *synced_u;
        struct controller_caches caches;
        struct controller_memory memory;
        struct loop_timer calm; /* see records_calm_later() */
        uint64_t calm_by_ms;    /* while it waits: when it expires at the latest */
        bool started, leading, synced_called;
        bool no_conditions; /* the schema of the API server drops conditions */
        struct controller_metrics m;
};

enum {
        CONTROLLER_BY_UID = 0,
        CONTROLLER_CDS_BY_RACK = 1,
        CONTROLLER_CLAIMS_AWAITING = 0, /* by the ComputeDomain for which a Pod waits */
        CONTROLLER_CLAIMS_BY_OWNER = 1, /* by the ComputeDomain for which the controller created the claim */
        CONTROLLER_CLAIMS_GROUPED = 2,  /* claims for one node that PodGroups share, by their ComputeDomain */
        CONTROLLER_CLAIMS_NAMED =
                3, /* claims for one node that users created by name, by their ComputeDomain */
        CONTROLLER_SLICES_BY_RACK = 1,
        CONTROLLER_SLICES_BY_CLIQUE = 2,
        CONTROLLER_PLUGINS_BY_NODE = 0,
        CONTROLLER_DAEMONS_BY_NODE = 0,
        CONTROLLER_DAEMONS_BY_CLIQUE = 1,
        CONTROLLER_NODES_BY_CLIQUE = 1, /* by the clique ID that the controller wrote on the Node */
        CONTROLLER_BY_DOMAIN = 0,
        CONTROLLER_BY_NODE = 0,
        CONTROLLER_AUTO_PODS_BY_DOMAIN = 0,
        CONTROLLER_PODS_BY_NODE = 1
};

/* Returns whether all caches are filled. */
bool records_synced(const struct controller *c);
/* Returns whether the caches of the objects that the Go driver left are filled. */
bool records_go_synced(const struct controller *c);
/* Returns the plural of the resource of a stale cache that removals depend on; NULL: none is stale. */
const char *records_stale(const struct controller *c);
/* Returns whether such a cache, that of the ResourceSlices or that of the plugins' Pods is stale: a node's
 * report may have changed. */
bool records_reports_stale(const struct controller *c);
/* Makes the caches deliver all changes that they have received. Call it before a decision. */
void records_catch_up(const struct controller *c);

/* The functions below queue a key. They do nothing while this replica does not lead. */
void records_queue_domain(struct controller *c, const char *uid);
void records_queue_node(struct controller *c, const char *name);
void records_queue_rack(struct controller *c, const char *id); /* does nothing while racks are off */
void records_queue_fabric(struct controller *c, const char *clique);
void records_queue_auto(struct controller *c, const char *key); /* "<namespace>/<name>" */
void records_queue_claim(struct controller *c, const char *ns, const char *name);
void records_queue_daemons(struct controller *c); /* the DaemonSet and claim template of the daemons */
/* The same, after CONTROLLER_ROLLOUT_MS: a pass of the rollout visits all daemons and Nodes, so the changes
 * of many Pods and Nodes share one pass. */
void records_queue_rollout(struct controller *c);
/* Queues the ComputeDomains that are related to a node by a claim, by a label, or by a daemon Pod of the Go
 * driver. */
void records_queue_domains_of_node(struct controller *c, const char *name);

/* Records that the removals of this key are paused until no cache is stale. Then the key is queued again.
 * records_resume() ends the pause of the key. */
void records_pause(struct controller *c, const char *key);
void records_resume(struct controller *c, const char *key);
/* Call this when a cache has become current (`is` true) or stale. */
void records_on_current(struct controller *c, bool is);
/* After a decision or a list, starts the timer `calm`, which cleans up. It expires after CONTROLLER_IDLE_MS
 * without another one, or CONTROLLER_BUSY_MS after its first start: a busy cluster is never idle. */
void records_calm_later(struct controller *c);

/* Returns when this controller first saw that the object `uid` reports the time `reported`, which another
 * clock measured. The result is a time of clock_mono_s(); 0: `reported` is 0. */
int64_t records_seen(struct controller *c, const char *uid, int64_t reported);
/* Forgets it. Call this when the object no longer reports this time. */
void records_unseen(struct controller *c, const char *uid, int64_t reported);

const struct compute_domain *records_domain(const struct controller *c, const char *uid);
const struct node *records_node(const struct controller *c, const char *name);
const char *records_node_clique(const struct controller *c, const char *node);
/* The same, or the last one that the controller wrote on the Node: a node that withholds its channels has a
 * slice without devices, and its plugin's restart may delete the slice. NULL: not known. */
const char *records_last_clique(const struct controller *c, const char *node);
const char *records_node_rack(const struct controller *c, const char *node); /* NULL: no slice has a rack */
/* Returns when the plugin of a node started at the latest, in seconds since 1970. `published`: when the
 * node's slice was created. It can be later, because a restore of etcd removes slices, and plugins create
 * them again. Only the kubelet's clock measures the start of the plugin. If it is ahead of this machine's by
 * more than a minute, a plugin may count as old. */
int64_t records_plugin_start(const struct controller *c, const char *node, int64_t published);
bool records_other_mode(const struct controller *c, const struct compute_domain *cd);
/* Returns the fabric object of a partition; NULL: it does not exist, or `clique` is NULL or empty. */
const struct compute_domain_fabric *records_fabric(const struct controller *c, const char *clique);
/* Returns the daemon's Pod on a node that has not ended; NULL: there is none. If there are several, prefers a
 * Pod that has reported, then the newest. */
const struct daemon_pod *records_daemon(const struct controller *c, const char *node);
/* Returns the plugin's Pod on a node that plugin_pod_choose() prefers; NULL: there is none. */
const struct plugin_pod *records_plugin(const struct controller *c, const char *node);
bool records_owns(const struct controller *c, const struct compute_domain *cd, const struct rct *r);

/* Returns the remembered facts about a ComputeDomain; NULL: there are none. records_make() creates them if
 * needed. */
struct controller_domain *records_find(const struct controller *c, const char *uid);
struct controller_domain *records_make(struct controller *c, const char *uid);
void records_forget(struct controller_domain *d);
/* Records that the Node does not exist. `holder`: containers that still run on it may hold channels. */
void records_missing(struct controller *c, const char *node, bool holder);
/* Records that the Node was deleted while it had a daemon, which may still run there for a minute from now.
 * `clique` is its partition; NULL or empty: unknown, so it may be any. records_exists() records that the Node
 * exists in this partition. */
void records_vanished(struct controller *c, const char *clique, const char *node);
void records_exists(struct controller *c, const char *clique, const char *node);
/* The same, if the Node of this Pod of a daemon does not exist: IMEX may run there for as long as the Pod
 * exists. A controller that has just started did not see when the Node was deleted. For visits of the cache;
 * `u` is the controller. Returns true. */
bool records_note_orphan(void *u, const struct kube_object *daemon);
/* Returns for how many seconds daemons of such Nodes may still run in this partition; 0: none can. */
int64_t records_vanished_left(const struct controller *c, const char *clique, int64_t now);

/* Returns the number of a ComputeDomain's nodes in each state in the last pass; NULL: unknown, or the
 * ComputeDomain is ending. */
const struct node_counts *records_node_counts(const struct controller *c, const char *uid);
/* Records the label that this controller wrote last on a Node. It is remembered until the Node is deleted. */
void records_label_written(struct controller *c, const char *node, const char *domain_uid);
const struct controller_written *records_written(const struct controller *c, const char *node);
void records_forget_written(struct controller *c, const char *node);
/* Forgets all ComputeDomains, paused removals and labels. */
void records_done(struct controller *c);
