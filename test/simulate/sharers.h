/* SPDX-License-Identifier: Apache-2.0 */
/* sharers: simulates the pods that share the claim of their ComputeDomain, and everybody who writes this
 * claim: the users with their PodGroups, the scheduler, and the claim controller. A node can have several of
 * these pods. A group has every third pod, or every second one. */
#pragma once

#include "world_state.h"

/* Makes a step of the PodGroups of the ComputeDomain. */
void sharers_step(struct domain *d);
/* Makes a step of the claim controller: removes the reservations of PodGroups that no longer exist. */
void sharers_collect(void);
/* Returns true if a PodGroup of the ComputeDomain exists. */
bool sharers_have_group(const struct domain *d);
/* Binds a waiting pod to a node, and reserves the claim for it or for its group. */
void sharers_schedule(struct domain *d, struct user_pod *p);
/* The kubelet prepares the claim, and starts the containers. */
void sharers_prepare(struct domain *d, struct user_pod *p);
void sharers_start(struct domain *d, struct user_pod *p);
/* The claim no longer names the pod. */
void sharers_unreserve(struct domain *d, struct user_pod *p);

/* Returns true if a node on which a pod of the ComputeDomain can start offers channels. */
bool sharers_can_run(const struct domain *d);
/* Returns the name of a PodGroup for which the claim is not reserved, or NULL. */
const char *sharers_unreserved_group(const struct domain *d);
