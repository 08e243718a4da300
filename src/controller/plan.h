/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what has to be written so that one ComputeDomain becomes what it should be, as a pure function of
 * what is cached. Level-triggered: it looks at nothing but the present, so a lost event or a crash between
 * two writes costs a pass and no more. */
#pragma once

#include "kube/kube_client.h"
#include "model/mode.h"
#include "render/objects.h"
#include "rules/census.h"
#include "rules/formation.h"
#include "rules/host_health.h"
#include "rules/seated.h"
#include "rules/verdict.h"

/* A daemon pod of the domain whose containers have ended. */
struct plan_ended {
        const struct pod *pod;
        bool claimed; /* a claim is still reserved for it: the kubelet has not unprepared it */
};

struct plan_input {
        const struct objects_settings *settings;
        const struct imex_mode *mode; /* in which the domain is looked after */
        const char *uid;
        const struct compute_domain *cd;     /* NULL: it does not exist (any more) */
        const struct daemonset *const *sets; /* with the domain's label, in all namespaces we manage */
        size_t n_sets;
        const struct rct *const *rcts; /* the domain's own, see rules_own_template() */
        size_t n_rcts;
        const struct rct
                *holder; /* whoever has the name and namespace of the workload template, NULL: nobody known */
        const struct pod *const *pods; /* daemon pods of the domain that have not ended; of one that lives,
                                          one is enough, and those that have ended and labels do not matter */
        size_t n_pods;
        const struct plan_ended *ended;
        size_t n_ended;
        struct formation_input
                formation;        /* max_nodes, dns_names and what is here too are filled in by plan_make() */
        const struct host *hosts; /* where claims of the domain are allocated, sorted by name; only when the
                                     hosts run IMEX */
        size_t n_hosts;
        const struct own_channel *channels; /* of the domain, where each has its own; else NULL */
        size_t n_channels;
        const struct seated_facts *seated; /* its nodes, where the mode runs agents; sorted by name */
        size_t n_seated;
        size_t n_places;            /* that fabrics list for it yet, of one that ends */
        const char *places;         /* on which nodes, for people */
        size_t n_labelled;          /* nodes that carry the domain's label */
        int64_t applied_generation; /* of the DaemonSet when it was last as we want it; 0: unknown */
        bool conditions;            /* the server keeps status.conditions */
        /* Which cache has lost touch with the server, for people; NULL: none has, as far as
         * kube_informer_current() promises. What a stale cache does not show may be there, so nothing is
         * taken away because of it. What it does show is a fact of some moment, and some facts are for ever:
         * a deletionTimestamp is never taken back. */
        const char *stale;
        /* Of a domain that does not exist: the server itself has said lately that it does not. UIDs do not
         * come back. */
        bool gone_confirmed;
        int64_t now;             /* seconds since 1970 */
        int64_t ending_since;    /* since when the domain has to end, as far as is known; 0: it lives */
        const char *write_error; /* why one of the domain's objects cannot be written, NULL: nothing known */
        const char
                *label_error; /* why a label of a domain that ends cannot be removed, NULL: nothing known */
};

/* Whose answer the controller looks at beyond taking it into the cache. */
enum plan_answer { PLAN_ANSWER_NONE, PLAN_ANSWER_STATUS, PLAN_ANSWER_TEMPLATE, PLAN_ANSWER_NEW_CLIQUE };

/* When: at once; soon, gathering what comes in the same moment; or later, for what only people wait for. */
enum plan_when { PLAN_NOW, PLAN_SOON, PLAN_LATER };

struct plan_action {
        enum kube_verb verb;
        const struct kube_resource *res;
        const char *ns, *name, *subresource;
        struct str body;
        enum plan_when when;
        enum plan_answer answer; /* STATUS: the write that the plan's events belong to */
};

struct plan {
        struct plan_action *actions;
        size_t n_actions;
        struct verdict_event *events;
        size_t n_events;
        int64_t recheck_s; /* look again then though nothing happens; 0: no need */
        bool nothing_left; /* no trace of the domain in the caches */
        /* What the server is to be asked before more can be decided: whether the domain exists; whether a
         * claim brings these nodes in. */
        bool ask_domain;
        const char **ask_nodes;
        size_t n_ask_nodes;
        bool needs_lost; /* see struct formation */
        bool held;       /* something should go, and stays because a cache is stale */
        bool counted; /* census is of the domain as it is; what is ending, or was formed in another mode, has
                         none */
        struct census census;
        const char *too_large; /* the name of an object that is too large to be written, NULL: none */
};

/* How long the deletion of a domain waits for its daemon pods before it goes on without them, and when it
 * begins to say so; how long after the end of its grace period a pod that has ended may keep its kubelet
 * waiting. */
enum { PLAN_DAEMONS_END_S = 60, PLAN_PATIENCE_S = 5, PLAN_ENDED_S = 30 };

void plan_make(struct plan_input *in, struct arena *a, struct plan *ret);
