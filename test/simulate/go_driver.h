/* SPDX-License-Identifier: Apache-2.0 */
/* go_driver: simulates ComputeDomains that the Go driver formed before this driver took over, as
 * docs/how-to/migrate.md describes: their objects, their daemons on the labelled nodes, and the
 * ComputeDomainClique in which these daemons list themselves. The plugins and controllers of this driver run
 * from the beginning. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

struct node; /* of world_state.h */

/* Enables such ComputeDomains. Call it before the world begins. */
void go_driver_use(void);
bool go_driver_used(void);
/* Creates the objects that the Go driver has created for a ComputeDomain. */
void go_driver_form(const char *uid, const char *name, const char *template);
/* Labels a node, so that it gets a daemon. Returns false if it has a label already. */
bool go_driver_label(const struct node *n, const char *uid);
/* Returns true while objects of the Go driver make this a ComputeDomain of the Go driver: no node can join
 * it. */
bool go_driver_has(const char *uid);
/* Returns true while a daemon's Pod of the Go driver exists for this ComputeDomain. */
bool go_driver_runs(const char *uid);
/* Returns true if the object belongs to the Go driver: a DaemonSet, a daemon's Pod, or a template. */
bool go_driver_owns(const struct version *v);

/* Checks a change of a Node. */
void go_driver_look(const struct change *c);
/* Checks a claim that the plugin has prepared for a pod; began_ms: when the kubelet called Prepare. */
void go_driver_prepared(unsigned node, const char *uid, int64_t began_ms);

/* Do the work of the DaemonSet controller, the claim controllers, and the kubelet of the node. */
void go_driver_step_cluster(void);
void go_driver_step(struct node *n);
/* The node loses power: its daemon ends. */
void go_driver_lose_power(struct node *n);
