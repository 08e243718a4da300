/* SPDX-License-Identifier: Apache-2.0 */
/* records: all that the controller knows: its caches, what it remembers beyond them, and the queue of what is
 * to be looked at. Decides and writes nothing. Loop thread only. */
#pragma once

#include <uthash.h>

#include "api/kinds.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "controller/config.h"
#include "controller/confirm.h"
#include "controller/crds.h"
#include "controller/since.h"
#include "controller/leases.h"
#include "controller/placements.h"
#include "controller/writes.h"
#include "kube/event_recorder.h"
#include "kube/kube_informer.h"
#include "kube/work_queue.h"
#include "model/domain.h"
#include "model/fabric.h"
#include "render/objects.h"
#include "rules/census.h"

/* A namespace with daemons of the Go driver: the driver's, and those it lived in before. */
struct controller_namespace {
        const char *ns;
        struct kube_informer *sets, *pods, *cliques;
};

/* What must be remembered of a domain beyond the caches. None of it matters after a restart. */
struct controller_domain {
        UT_hash_handle hh;
        struct controller *c;
        struct arena *holder_arena;
        const struct rct
                *holder; /* who has the name of the workload template, when the caches do not show him */
        struct arena *news_arena; /* Events of the status write under way, told when it has succeeded */
        struct verdict_event *news;
        size_t n_news;
        struct kube_call *asking; /* for the holder */
        int64_t ending_since;     /* since when it has to end, as far as is known; 0: it lives */
        bool was_held;            /* deleted, by another controller's finalizer */
        bool counted;
        struct census census; /* as of the last look, when counted */
        char uid[];
};

struct controller_held {
        UT_hash_handle hh;
        char key[];
};

/* The domain's label of a node as we wrote it last. */
struct controller_written {
        UT_hash_handle hh;
        char *domain_uid; /* NULL: removed */
        char node[];
};

struct controller_lost_fabric {
        struct controller_lost_fabric *next;
        const struct compute_domain_fabric *was; /* counted */
};

/* The object of a partition whose version went back, and the epoch that it had then. */
struct controller_restored_fabric {
        struct controller_restored_fabric *next;
        int64_t epoch;
        char name[];
};

/* A daemon whose removal is asked for: see controller/removals. */
struct controller_removal {
        UT_hash_handle hh;
        char *pod_uid;
        unsigned why; /* enum removals_why, or-ed */
        char node[];
};

struct controller_metrics {
        struct metric *info, *ready, *not_ready_s, *nodes, *peers_missing, *untold, *gpu_nodes;
        struct metric *channels, *fabric_problem; /* NULL without fabrics */
        struct metric *depth, *leader, *reconcile, *writes, *waiting, *in_flight, *stale, *held, *crds;
};

/* So many ComputeDomains have series of their own: eight each, those that are not Ready first. */
enum { CONTROLLER_TOLD_MAX = 1000, CONTROLLER_CALM_MS = 5000 };

struct controller {
        const struct config *config;
        const struct imex_mode *mode;
        struct objects_settings settings;
        struct kube_client *client;
        struct event_recorder *events;
        struct metrics *metrics;
        struct work_queue *queue;
        struct writes *writes;
        struct placements *placements;
        struct confirm *confirm;
        struct leases *leases;  /* of the kubelets */
        struct since *gone;     /* Nodes that are not there */
        struct since *vanished; /* of these, those on which a daemon of ours may run */
        struct since *seen;     /* objects by UID, and states of some: see fabrics.c and daemons.c */
        struct since *empty;    /* domains without an assignment in a fabric's object, as "<clique>/<uid>" */
        struct crds *crds;
        /* Keys whose removals wait until no cache is stale. */
        struct controller_held *held;
        struct controller_written *written;
        void (*synced)(void *u);
        void *synced_u;
        struct kube_informer *cds, *claims, *nodes, *slices, *rcts;
        struct kube_informer
                *rack_namespaces; /* those that want a ComputeDomain of each rack; NULL: no racks */
        struct kube_informer *fabrics;
        /* Objects of fabrics that somebody has deleted, as the cache held them last. */
        struct controller_lost_fabric *lost_fabrics;
        struct controller_restored_fabric *restored_fabrics;
        struct controller_removal *removals;
        struct kube_informer *daemons, *daemon_sets, *daemon_rcts; /* their Pods, DaemonSet, claim template */
        struct kube_informer *plugins;           /* Pods of the kubelet plugin; NULL without a selector */
        struct controller_namespace *namespaces; /* what the Go driver left */
        size_t n_namespaces;
        struct controller_domain *domains;
        struct loop_timer calm; /* runs out when nothing has been decided or listed for CONTROLLER_CALM_MS */
        bool started, leading, told_synced;
        bool no_conditions; /* the server's schema drops them */
        struct controller_metrics m;
};

enum {
        CONTROLLER_BY_UID = 0,
        CONTROLLER_CDS_BY_RACK = 1,
        CONTROLLER_SLICES_BY_RACK = 1,
        CONTROLLER_SLICES_BY_CLIQUE = 2,
        CONTROLLER_PLUGINS_BY_NODE = 0,
        CONTROLLER_DAEMONS_BY_NODE = 0,
        CONTROLLER_DAEMONS_BY_CLIQUE = 1,
        CONTROLLER_NODES_BY_CLIQUE = 1, /* as we wrote on them */
        CONTROLLER_BY_DOMAIN = 0,
        CONTROLLER_BY_NODE = 0,
        CONTROLLER_PODS_BY_NODE = 1
};

/* All caches are filled. */
bool records_synced(const struct controller *c);
/* Those of what the Go driver left. */
bool records_go_synced(const struct controller *c);
/* Which of the caches that removals are justified by has lost touch with the server: its plural, NULL: none.
 */
const char *records_stale(const struct controller *c);
/* The caches have told all that they have taken: nobody decides from less. */
void records_catch_up(const struct controller *c);

/* Keys of the queue: a domain by its UID, a node by its name, a rack by its id, a fabric by its clique's. A
 * follower queues nothing. */
void records_queue_domain(struct controller *c, const char *uid);
void records_queue_node(struct controller *c, const char *name);
void records_queue_rack(struct controller *c, const char *id); /* with racks on */
void records_queue_fabric(struct controller *c, const char *clique);
void records_queue_daemons(struct controller *c); /* their DaemonSet and claim template */
#define RECORDS_DAEMONS "s/daemons"               /* the key that it queues */
/* The domains that have to do with a node: by claim, by label, by a daemon Pod of the Go driver. */
void records_queue_domains_of_node(struct controller *c, const char *name);

/* What this key would remove is kept until no cache is stale; then it is queued again. */
void records_hold(struct controller *c, const char *key);
void records_release(struct controller *c, const char *key);
/* A cache is current again, or is not any more. */
void records_on_current(struct controller *c, bool is);

/* When this controller first saw what the object `uid` reports with the time `reported` of its own clock, in
 * clock_mono_s(); 0: `reported` is 0. */
int64_t records_seen(struct controller *c, const char *uid, int64_t reported);

const struct compute_domain *records_domain(const struct controller *c, const char *uid);
const struct node *records_node(const struct controller *c, const char *name);
const char *records_node_clique(const struct controller *c, const char *node);
const char *records_node_rack(const struct controller *c, const char *node); /* NULL: none is stated */
/* `cd` may be NULL. */
struct mode_traces records_traces(const struct controller *c, const char *uid,
                                  const struct compute_domain *cd);
bool records_other_mode(const struct controller *c, const struct compute_domain *cd);
/* The fabric of a clique, NULL: it has no object, or it is no clique (NULL or empty). */
const struct compute_domain_fabric *records_fabric(const struct controller *c, const char *clique);
/* The daemon's Pod on a node that has not ended, NULL: none. The one that has reported, else the newest. */
const struct daemon_pod *records_daemon(const struct controller *c, const char *node);
bool records_owns(const struct controller *c, const struct compute_domain *cd, const struct rct *r);

/* What is remembered of a domain; NULL when nothing is. */
struct controller_domain *records_find(const struct controller *c, const char *uid);
struct controller_domain *records_make(struct controller *c, const char *uid);
void records_forget(struct controller_domain *d);
/* How the nodes of a domain were at the last look; NULL: nothing is known, or it is ending. */
const struct census *records_census(const struct controller *c, const char *uid);
/* The label that we wrote last of a Node, until the Node is gone. */
void records_label_written(struct controller *c, const char *node, const char *domain_uid);
const struct controller_written *records_written(const struct controller *c, const char *node);
void records_forget_written(struct controller *c, const char *node);
/* Forgets all domains, all that is held, and all labels. */
void records_done(struct controller *c);
