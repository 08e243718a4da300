/* SPDX-License-Identifier: Apache-2.0 */
/* domain: simulates the API server, partitions and daemons around one ComputeDomain, so that tests can run
 * plan_make() against the effects of its earlier plans. A test can add the DaemonSet of the Go driver. The
 * test sets the time (`now`). */
#pragma once

#include "controller/plan.h"
#include "world/fake.h"
#include "world/store.h"

enum { WORLD_NODES = 5 };
#define WORLD_NS "driver"
#define WORLD_USER_NS "w"

struct world_node {
        bool exists, ready, wanted, labelled;
        bool unseen; /* the controller's cache lacks the claim that makes it wanted */
        const char *clique;
        bool assigned, leaving, joined; /* the assignment of this driver's daemon */
        int64_t index;
        bool stuck;                           /* daemons on it do not finish leaving or ending */
        bool has_pod, pod_ending;             /* the Pod of the Go driver's daemon */
        const char *host_state, *host_reason; /* the plugin's report about the host's IMEX */
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
        bool stale;        /* the controller's caches are stale */
        bool cd_unseen;    /* the controller's cache lacks the ComputeDomain, whether it exists or not */
        bool asked_domain; /* the API server was asked whether the ComputeDomain exists */
        const char *label_error, *write_error; /* errors of these writes; NULL: none */
        struct buf *transcript; /* receives each write and each Event of world_settle(); NULL: none */
};

extern const char *const world_names[WORLD_NODES];

void world_init(struct world *w);
/* Sets the mode that these feature gates and IMEX_MODE choose. A new world is driver-managed. */
void world_set_mode(struct world *w, const char *gates, const char *imex_mode);
void world_done(struct world *w);
/* Fixtures of cmocka: *state is a new world. */
int world_setup(void **state);
int world_teardown(void **state);
void world_create_cd(struct world *w, const char *spec);
struct object *world_find(struct world *w, const struct kube_resource *res, const char *ns, const char *name);
void world_put(struct world *w, const struct kube_resource *res, const char *ns, const char *name,
               const char *json); /* with ' instead of " */
void world_delete(struct world *w, struct object *o);

/* Returns the present content of the caches, allocated in the arena. */
void world_view(struct world *w, struct arena *a, struct plan_input *ret);
/* Performs one write as the API server does. Returns false if the server refuses the write. */
bool world_perform(struct world *w, const struct plan_action *x);
/* Lets labels, partitions, daemons, and the DaemonSet controller do one step. */
void world_turn(struct world *w);
/* Return the present ComputeDomain, and its condition of this type. */
const struct compute_domain *world_cd(struct world *w, struct arena *a);
const struct cd_condition *world_condition(struct world *w, struct arena *a, const char *type);
size_t world_count(const struct world *w); /* returns the number of objects */
/* Answers a plan's question to the API server. The next view contains the answer. */
void world_ask(struct world *w, const struct plan *p);
/* Makes a plan for the present state, and does not perform it. */
struct plan *world_plan(struct world *w, struct arena *a);
const struct plan_action *world_action(const struct plan *p, enum kube_verb verb,
                                       const struct kube_resource *res);
/* Plans and performs until nothing remains to be done. With `lossy`, a random part of each plan is not
 * performed. Returns the number of rounds, or -1 if it does not settle. */
int world_settle(struct world *w, bool lossy);
