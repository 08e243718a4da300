/* SPDX-License-Identifier: Apache-2.0 */
/* domain: API server, partitions and daemons, as far as one ComputeDomain sees them, so that plan_make() can
 * be run against its own effects; and the DaemonSet of the Go driver, where a test puts one. Time does not
 * pass by itself. */
#pragma once

#include "controller/plan.h"
#include "world/fake.h"
#include "world/store.h"

enum { WORLD_NODES = 5 };
#define WORLD_NS "driver"
#define WORLD_USER_NS "w"

struct world_node {
        bool exists, ready, wanted, labelled;
        bool unseen; /* the claim that makes it wanted is not in our cache */
        const char *clique;
        bool assigned, leaving, joined; /* of our daemon */
        int64_t index;
        bool stuck;                           /* what leaves, or ends, on it does not get on */
        bool has_pod, pod_ending;             /* of the Go driver's daemon */
        const char *host_state, *host_reason; /* what its kubelet plugin reports about the IMEX of the host */
};

struct world {
        struct store store;
        struct world_node nodes[WORLD_NODES];
        int64_t now, ending_since;
        bool was_held;
        int conflicts;
        size_t n_writes;
        struct objects_settings settings;
        const struct imex_mode *mode;
        bool stale;        /* our caches know that they have lost touch */
        bool cd_unseen;    /* the ComputeDomain is not in our cache, whether it exists or not */
        bool asked_domain; /* the server has been asked whether it exists */
        const char *label_error, *write_error; /* what keeps failing, NULL: nothing */
        struct buf *transcript; /* takes each write and each Event of world_settle(), NULL: nothing */
};

extern const char *const world_names[WORLD_NODES];

void world_init(struct world *w);
/* Driver-managed is what a world begins in. Sets what feature gates and IMEX_MODE choose. */
void world_set_mode(struct world *w, const char *gates, const char *imex_mode);
void world_done(struct world *w);
void world_create_cd(struct world *w, const char *spec);
struct object *world_find(struct world *w, const struct kube_resource *res, const char *ns, const char *name);
void world_put(struct world *w, const struct kube_resource *res, const char *ns, const char *name,
               const char *json); /* with ' for " */
void world_delete(struct world *w, struct object *o);

/* The caches of this moment, in the arena. */
void world_view(struct world *w, struct arena *a, struct plan_input *ret);
/* One write as the server would take it; false: refused. */
bool world_perform(struct world *w, const struct plan_action *x);
/* Labels, partitions, daemons, and the DaemonSet controller do one step. */
void world_turn(struct world *w);
/* The ComputeDomain as it is, and its condition of a type. */
const struct compute_domain *world_cd(struct world *w, struct arena *a);
const struct cd_condition *world_condition(struct world *w, struct arena *a, const char *type);
size_t world_count(const struct world *w); /* of objects */
/* The server answers what a plan asks; it is in the next view. */
void world_ask(struct world *w, const struct plan *p);
/* A plan for the present, not performed. */
struct plan *world_plan(struct world *w, struct arena *a);
const struct plan_action *world_action(const struct plan *p, enum kube_verb verb,
                                       const struct kube_resource *res);
/* Plans and performs until nothing is to be done; a random part of each plan is lost when `lossy`. Returns
 * the number of rounds, -1 when it does not settle. */
int world_settle(struct world *w, bool lossy);
