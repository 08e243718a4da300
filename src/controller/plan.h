/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what has to be written so that one ComputeDomain becomes what it should be, as a pure function of
 * what is cached. Level-triggered: it looks at nothing but the present, so a lost event or a crash between
 * two writes costs a pass and no more. */
#pragma once

#include "kube/kube_client.h"
#include "model/mode.h"
#include "render/objects.h"
#include "rules/census.h"
#include "rules/host_health.h"
#include "rules/membership.h"
#include "rules/verdict.h"

struct plan_input {
        const struct objects_settings *settings;
        const struct imex_mode *mode; /* in which the domain is looked after */
        const char *uid;
        const struct compute_domain *cd; /* NULL: it does not exist (any more) */
        const struct rct *const *rcts;   /* the domain's own, see rules_own_template() */
        size_t n_rcts;
        const struct rct
                *holder; /* whoever has the name and namespace of the workload template, NULL: nobody known */
        /* What the Go driver left of it, in all namespaces that we manage: pods are those of its daemons that
         * have not ended. */
        const struct daemonset *const *sets;
        size_t n_sets;
        const struct pod *const *pods;
        size_t n_pods;
        const struct clique *const *cliques;
        size_t n_cliques;
        const struct host *hosts; /* where claims of the domain are allocated, sorted by name; only when the
                                     hosts run IMEX */
        size_t n_hosts;
        const struct own_channel *channels; /* of the domain, where each has its own; else NULL */
        size_t n_channels;
        const struct member_facts *members; /* its nodes, where each domain has its own; sorted by name */
        size_t n_members;
        size_t n_assigned;    /* assignments that are still listed, of a domain that ends */
        const char *assigned; /* on which nodes, for people */
        size_t n_labelled;    /* nodes that carry the domain's label */
        const char *labelled; /* which, for people; of a domain that ends */
        bool conditions;      /* the server keeps status.conditions */
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
enum plan_answer { PLAN_ANSWER_NONE, PLAN_ANSWER_STATUS, PLAN_ANSWER_TEMPLATE };

/* When: at once, or later, for what only people wait for. */
enum plan_when { PLAN_NOW, PLAN_LATER };

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
         * claim of it is allocated. */
        bool ask_domain;
        bool held;    /* something should go, and stays because a cache is stale */
        bool counted; /* census is of the domain as it is; what is ending, or was formed in another mode, has
                         none */
        struct census census;
        const char *too_large; /* the name of an object that is too large to be written, NULL: none */
};

/* How long the deletion of a domain waits for daemons to leave before it goes on without them, and when it
 * begins to report that; after what time an object that is being deleted stands still, where no cause is
 * known. */
enum { PLAN_DAEMONS_END_S = 60, PLAN_PATIENCE_S = 5, PLAN_STANDSTILL_S = 60 };

void plan_make(const struct plan_input *in, struct arena *a, struct plan *ret);
