/* SPDX-License-Identifier: Apache-2.0 */
/* workloads: simulates workloads for which the controllers create the ComputeDomain: labelled pods of a Job
 * or a JobSet, the admission policy that adds the claim to them, and the garbage collector, which deletes
 * pods and ComputeDomains after their owner. The owners are no objects of the store. A tenant of another
 * namespace creates a pod that names such an owner. */
#pragma once

#include <stdbool.h>

#include "store.h"

struct domain;
struct user_pod;

/* Lets most users create such workloads. Call it before the world begins; without it, the other functions do
 * nothing. */
void workloads_use(void);
bool workloads_used(void);
void workloads_done(void);

/* Creates the owner of the pods. Sometimes a user has created a ComputeDomain with the name before. */
void workloads_begin(struct domain *d);
/* Makes a step of the users: they see a new ComputeDomain of the workload, and delete the pods of one that is
 * being deleted. Sometimes they delete it themselves. */
void workloads_step(struct domain *d);

/* The object of a pod in the store. */
void workloads_create_pod(const struct domain *d, struct user_pod *p);
void workloads_bind_pod(const struct user_pod *p);
void workloads_end_pod(const struct user_pod *p);
/* `forced`: the object is deleted, and the containers may still run. */
void workloads_pod_gone(const struct user_pod *p, bool forced);

/* Makes a step of the garbage collector, and of the tenant. */
void workloads_collect(void);
/* Checks the promises about this change. */
void workloads_look(enum kind k, const struct change *c);
