/* SPDX-License-Identifier: Apache-2.0 */
/* controller: keeps ComputeDomains, their objects, the labels of nodes and the cliques as they should be.
 *
 * Caches are filled from the start, also while another replica leads, so that taking over means no more than
 * looking at everything once. What changes queues keys ("d/<UID of a domain>", "n/<name of a node>"); a key's
 * handler decides by pure functions and sends what they say. Loop thread only. */
#ifndef CONTROLLER_CONTROLLER_H
#define CONTROLLER_CONTROLLER_H

#include <uthash.h>

#include "api/compute_domain.h"
#include "api/kinds.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "controller/config.h"
#include "controller/confirm.h"
#include "controller/crds.h"
#include "controller/gone.h"
#include "controller/placements.h"
#include "controller/seats.h"
#include "controller/writes.h"
#include "kube/event_recorder.h"
#include "kube/kube_informer.h"
#include "kube/work_queue.h"
#include "render/objects.h"
#include "rules/census.h"

/* A namespace with daemons of ours: the driver's, and those it lived in before. */
struct controller_namespace {
        struct controller *c;
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
        struct kube_call *asking;    /* for the holder */
        struct kube_call *labelling; /* a clique that lost its labels */
        int64_t ending_since;        /* 0: not seen without a ComputeDomain */
        bool counted;
        struct census census; /* as of the last look, when counted */
        char uid[];
};

struct controller_held {
        UT_hash_handle hh;
        char key[];
};

struct controller_metrics {
        struct metric *info, *ready, *not_ready_s, *nodes, *peers_missing, *untold, *gpu_nodes;
        struct metric *depth, *leader, *reconcile, *writes, *waiting, *in_flight, *stale, *held, *crds;
};

/* So many ComputeDomains have series of their own: eight each, those that are not Ready first. */
enum { CONTROLLER_TOLD_MAX = 1000 };

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
        struct seats *seats;
        struct confirm *confirm;
        struct gone *gone; /* Nodes that are not there */
        struct crds *crds; /* NULL: somebody else owns the schema */
        /* Keys whose removals wait until no cache is stale. */
        struct controller_held *held;
        void (*synced)(void *u);
        void *synced_u;
        struct kube_informer *cds, *claims, *nodes, *slices, *rcts;
        struct kube_informer
                *plugins; /* Pods of the kubelet plugin; NULL when we run the IMEX daemons ourselves */
        /* What belongs to daemons. Where the hosts run IMEX: empty until something is met that a
         * driver-managed domain left. */
        struct controller_namespace *namespaces;
        size_t n_namespaces;
        struct controller_domain *domains;
        struct loop_timer calm; /* runs out when nothing has been decided for a while */
        bool started, leading, told_synced;
        bool no_conditions; /* the server's schema drops them */
        struct controller_metrics m;
};

enum {
        CONTROLLER_BY_UID = 0,
        CONTROLLER_PLUGINS_BY_NODE = 0,
        CONTROLLER_BY_DOMAIN = 0,
        CONTROLLER_BY_NODE = 0,
        CONTROLLER_PODS_BY_NODE = 1,
        CONTROLLER_PODS_BY_UID = 2,
        CONTROLLER_CLAIMS_BY_POD = 0
};

/* Starts when kube_discover_resource_api() is through. synced is called once, when all caches have been
 * filled: who leads before that knows nothing. */
void controller_start(struct controller *c, const struct config *config, struct kube_client *client,
                      struct event_recorder *events, struct metrics *metrics, void (*synced)(void *u),
                      void *u);
/* From now on we write. */
void controller_lead(struct controller *c);
void controller_stop(struct controller *c);
bool controller_synced(const struct controller *c);
void controller_metrics(
        struct controller *c); /* brings gauges up to date, and those of domains that have gone away */
/* Logs what it knows and does: its caches, domains, what is held back, writes. Also before it starts. */
void controller_dump(const struct controller *c);

/* Between the files of the controller. */
void controller__add_metrics(struct controller *c);
/* How the nodes of a domain were at the last look; NULL: nothing is known, or it is ending. */
const struct census *controller__census(const struct controller *c, const char *uid);
void controller__queue_domain(struct controller *c, const char *uid);
void controller__queue_node(struct controller *c, const char *name);
/* The domains that have to do with a node: by claim, by label, by a daemon pod. */
void controller__queue_domains_of_node(struct controller *c, const char *name);
void controller__watch(struct controller *c);
void controller__watch_daemons(struct controller *c);
bool controller__daemons_synced(const struct controller *c);
void controller__unwatch(struct controller *c);
/* Which of the caches that removals are justified by has lost touch with the server: its plural, NULL: none.
 */
const char *controller__stale(const struct controller *c);
/* What this key would remove is kept until no cache is stale; then it is queued again. */
void controller__hold(struct controller *c, const char *key);
/* All caches are filled, or none is stale any more. */
void controller__on_synced(struct controller *c);
void controller__on_current(struct controller *c, bool is);
void controller__queue_all(struct controller *c);
void controller__reconcile_domain(struct controller *c, const char *uid);
void controller__reconcile_node(struct controller *c, const char *name);
void controller__forget_domain(struct controller_domain *d);
/* The source of c->seats. */
void controller__name_nodes(void *u, const char *uid, seats_add_fn *add, void *seats);
bool controller__look_at_node(void *u, const char *uid, struct formation_node *seat, struct arena *a);
/* The caches have told all that they have taken: nobody decides from less. */
void controller__catch_up(const struct controller *c);
const struct compute_domain *controller__domain(const struct controller *c, const char *uid);
const struct node *controller__node(const struct controller *c, const char *name);
const char *controller__node_clique(const struct controller *c, const char *node);
/* `cd` may be NULL. */
struct mode_traces controller__traces(const struct controller *c, const char *uid,
                                      const struct compute_domain *cd);
bool controller__other_mode(const struct controller *c, const struct compute_domain *cd);
bool controller__owns(const struct controller *c, const struct compute_domain *cd, const struct rct *r);
/* Whose label the node should carry, by the labelling rule: NULL for nobody's. */
const char *controller__label_of(const struct controller *c, const char *node);

#endif
