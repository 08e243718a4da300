/* SPDX-License-Identifier: Apache-2.0 */
/* plan: decides the writes that bring one ComputeDomain to its desired state, as a pure function of the
 * caches. The function is level-triggered: it uses only the present state, so after a lost event or a crash
 * between two writes, the next pass completes the work. */
#pragma once

#include "controller/allocations.h"
#include "kube/kube_client.h"
#include "model/mode.h"
#include "render/objects.h"
#include "rules/node_counts.h"
#include "rules/host_health.h"
#include "rules/membership.h"
#include "rules/shared_claim.h"
#include "rules/verdict.h"

/* The device that claims of pods on several nodes share. */
enum shared_device_state {
        SHARED_DEVICE_PENDING,   /* its ResourceSlice does not exist yet */
        SHARED_DEVICE_PUBLISHED, /* any number of claims can have the device */
        SHARED_DEVICE_REFUSED    /* the API server does not support that */
};

/* A claim for a channel of one node, and a PodGroup that shares it. */
struct plan_grouped {
        const char *claim, *group;
};

/* Another claim that has the name of a ComputeDomain's shared claim. It may be large, so this is all that the
 * controller keeps of it. */
struct plan_claim_holder {
        const char *version;     /* metadata.resourceVersion; NULL: the claim cannot be decoded */
        const char *terminating; /* shared_claim_terminating(); NULL: it is not being deleted */
};

struct plan_input {
        const struct objects_settings *settings;
        const struct imex_mode *mode; /* the mode of the controller */
        const char *uid;
        const struct compute_domain *cd; /* NULL: the ComputeDomain does not exist, or no longer exists */
        const struct rct *const *rcts;   /* the claim templates of the ComputeDomain, see
                                            rules_own_template() */
        size_t n_rcts;
        const struct rct *holder; /* the object with the name and namespace of its workload claim template;
                                     NULL: none known */
        /* Only if the ComputeDomain asks for shared claims: */
        const struct rct *shared_holder; /* the same for its template of shared claims */
        enum shared_device_state shared_device;
        enum shared_claim_reach shared_reach;
        const char
                *shared_error; /* why the ResourceSlice of the device cannot be written; NULL: none known */
        const struct plan_claim_holder *claim_holder; /* NULL: none known */
        bool claim_watched; /* the controller created it for another ComputeDomain, so the watch shows when
                               it is deleted */
        const struct claim_record *const *claims; /* the claims that the controller created for it */
        size_t n_claims;
        const struct plan_grouped *grouped; /* always */
        size_t n_grouped;
        bool groups_pending; /* the PodGroups are not known yet */
        /* Objects that the Go driver left, in all namespaces of the configuration. `pods` contains the Pods
         * of its daemons that have not ended. */
        const struct daemonset *const *sets;
        size_t n_sets;
        const struct pod *const *pods;
        size_t n_pods;
        const struct clique *const *cliques;
        size_t n_cliques;
        const struct host *hosts; /* nodes where its claims are allocated, sorted by name; not in
                                     driver-managed mode with isolation `domain` */
        size_t n_hosts;
        bool hosts_unknown; /* there are no hosts, but a plugin that has not reported yet may use its shared
                               claim */
        const struct own_channel *channels; /* its assigned channels; NULL: channels are not assigned */
        size_t n_channels;
        const struct cd_condition *shortage; /* the condition ChannelAvailable that the status should have;
                                                NULL: none */
        int64_t shortage_recheck_s;          /* plan again after this time because of it; 0: no need */
        const struct member_facts *members; /* its nodes, sorted by name; only in driver-managed mode with
                                               isolation `domain` */
        size_t n_members;
        size_t n_assigned;    /* assignments that fabric objects still list; only when it ends */
        const char *assigned; /* the nodes of these assignments, for people */
        size_t n_labelled;    /* nodes with its label */
        const char *labelled; /* their names, for people; only when it ends */
        bool conditions;      /* the server keeps status.conditions */
        /* The name of a stale cache, for people; NULL: none is stale, as far as kube_informer_current()
         * promises. An object that a stale cache does not show may exist, so nothing is removed because of
         * its absence. Facts that a stale cache shows were true at some time, and some of them stay true: a
         * deletionTimestamp is never removed. */
        const char *stale;
        /* `cd` is NULL, and the API server has confirmed lately that no ComputeDomain has this UID. UIDs are
         * never reused. */
        bool deletion_confirmed;
        int64_t now;             /* seconds since 1970 */
        int64_t ending_since;    /* since when it has been ending, as far as known; 0: it is not ending */
        const char *write_error; /* why one of its objects cannot be written; NULL: none known */
        const char *label_error; /* why one of its labels cannot be removed when it ends; NULL: none known */
};

/* The handler that gets the answer to a write, in addition to the cache. */
enum plan_answer { PLAN_ANSWER_NONE, PLAN_ANSWER_STATUS, PLAN_ANSWER_TEMPLATE, PLAN_ANSWER_CLAIM };

/* The time of a write: at once; later if only people read it; or at once but not soon after the last write of
 * the object, which another client may delete again and again. */
enum plan_when { PLAN_NOW, PLAN_LATER, PLAN_SPACED };

struct plan_action {
        enum kube_verb verb;
        const struct kube_resource *res;
        const char *ns, *name, *subresource;
        struct str body;
        enum plan_when when;
        enum plan_answer answer; /* STATUS: the Events of the plan belong to this write */
};

struct plan {
        struct plan_action *actions;
        size_t n_actions;
        struct verdict_event *events;
        size_t n_events;
        int64_t recheck_s; /* plan again after this time even without an event; 0: no need */
        bool nothing_left; /* the caches show no object of the ComputeDomain */
        bool ask_domain;   /* ask the API server whether the ComputeDomain exists, then plan again */
        bool held;         /* an object should be removed, but stays because a cache is stale */
        bool counted; /* the node counts are valid; false if the ComputeDomain ends or was formed in another
                         mode */
        struct node_counts counts;
        const char *broken;    /* why the status failed its check, so that it is not written; NULL: it
                                  passed */
        const char *too_large; /* the name of an object that is too large to be written, NULL: none */
};

/* Times of the deletion of a ComputeDomain: how long it waits for daemons before it continues without them;
 * after what time it begins to report that it waits; and after what time it reports an object whose deletion
 * does not end, if no cause is known. */
enum { PLAN_DAEMONS_END_S = 60, PLAN_REPORT_AFTER_S = 5, PLAN_STANDSTILL_S = 60 };

void plan_make(const struct plan_input *in, struct arena *a, struct plan *ret);
