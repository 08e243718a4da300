/* SPDX-License-Identifier: Apache-2.0 */
/* shared_claim: decides how the controller changes a claim that pods on several nodes share. Pure.
 *
 * Kubernetes allocates and reserves a claim when the scheduler binds the first pod. Pods that start together
 * then compete: each tries to write the claim, and those that lose wait for the scheduler's back-off, one
 * second or more (docs/dev/claim-forms.md). So the controller does both in advance:
 *
 * - It allocates the claim when the device is published. Such a claim stays allocated while it is unused,
 *   because Kubernetes deallocates a claim only with the finalizer that the scheduler adds.
 * - It reserves the claim for each PodGroup that names it or owns it. A PodGroup keeps its reservation until
 *   it is deleted.
 *
 * Others undo this. The scheduler removes a reservation each time that a gang does not fit. It deallocates a
 * claim that nobody uses if the nodes where a pod fits do not have the device, and so does the
 * kube-controller-manager after the last pod, if the scheduler has allocated the claim. The controller
 * repeats its write after a pause, because each write wakes the scheduler and makes the back-off of a waiting
 * gang longer. Without the controller's write, the scheduler does it.
 *
 * The controller never deallocates a claim, and never removes a reservation.
 *
 * It also describes the opposite: PodGroups that share a claim for a channel device of one node. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/claim.h"
#include "model/domain.h"

enum {
        SHARED_CLAIM_PAUSE_S = 3, /* after a reservation, or the allocation of a used claim, was removed */
        SHARED_CLAIM_UNFIT_PAUSE_S =
                30 /* after an unused claim was deallocated: no node with the device fits */
};

struct shared_claim_facts {
        bool device; /* the cache shows the complete ResourceSlice of the device */
        bool lives;  /* its ComputeDomain exists, is not being deleted, was formed in this mode, and asks for
                        this claim or for claims like it */
        bool deleted, allocated;
        bool finalizer;                         /* the claim has the driver's finalizer */
        const struct claim_consumer *consumers; /* status.reservedFor */
        size_t n_consumers;
        const struct claim_consumer *groups; /* PodGroups that exist and share this claim */
        size_t n_groups;
        /* When another client removed the allocation, or the reservation of a PodGroup; 0: not seen. */
        int64_t deallocated, unreserved;
        bool was_used; /* the claim was reserved until it was deallocated */
        int64_t now;   /* by the same clock */
};

enum shared_claim_step {
        SHARED_CLAIM_KEEP,
        SHARED_CLAIM_ALLOCATE, /* and reserve */
        SHARED_CLAIM_RESERVE,
        SHARED_CLAIM_RELEASE, /* remove the driver's finalizer */
};

struct shared_claim_decision {
        enum shared_claim_step step;
        const struct claim_consumer *reserved; /* ALLOCATE, RESERVE: status.reservedFor as it should be */
        size_t n_reserved;
        int64_t recheck_s; /* decide again after this time; 0: no need */
};

void shared_claim_decide(const struct shared_claim_facts *f, struct arena *a,
                         struct shared_claim_decision *ret);

/* Whether a node offers the shared device, so that the scheduler can place a pod that uses it. */
enum shared_claim_reach {
        SHARED_REACH_UNKNOWN, /* its ResourceSlice is new, or the Nodes have lost the label just now */
        SHARED_REACH_NODES,   /* a Node has the label CD_LABEL_SHARED */
        SHARED_REACH_NONE     /* no Node has had it for some seconds */
};

/* Returns the condition SharedClaimAvailable in the status of the ComputeDomain; NULL: none. */
const struct cd_condition *shared_claim_condition(const struct compute_domain *cd);
/* Returns whether a pod that uses an existing claim can get a node. If not, sets the reason and the message
 * of the condition, which are static. While that is not known, the result follows from the present condition.
 */
bool shared_claim_is_reachable(const struct compute_domain *cd, enum shared_claim_reach reach,
                               const char **ret_reason, const char **ret_message);

/* Describes why the Pods of a PodGroup can only run on one node: its claim is for a channel device of a node.
 * `claim` and `group` are names; group NULL: the text is for the PodGroup itself. `shares` is true if
 * ComputeDomains can have claims for Pods on several nodes (imex.isolation=channel). The text ends with the
 * remedy, and is in the arena. */
const char *shared_claim_on_one_node(const struct compute_domain *cd, const char *claim, const char *group,
                                     bool shares, struct arena *a);

/* Describes what keeps a claim with the name of a shared claim from being deleted: pods, and the finalizers.
 * Kubernetes removes its own finalizer when no pod uses the claim. The text is in the arena. */
const char *shared_claim_terminating(const char *ns, const char *name, const char *const *finalizers,
                                     size_t n_finalizers, struct arena *a);
