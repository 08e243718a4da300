/* SPDX-License-Identifier: Apache-2.0 */
/* world: all that moves in the cluster beside our controllers: nodes with their kubelets and the IMEX daemons
 * on them, the DaemonSet controller, the scheduler and the collection of garbage, users. Each does what it
 * does in Kubernetes, in an order and at times that are drawn. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "store.h"

#define DRIVER_NS "driver"
#define USER_NS "users"

enum { NODES_OF_CLIQUE = 8 };

void world_begin(uv_loop_t *loop, unsigned n_nodes, unsigned n_domains);
unsigned world_nodes(void);
unsigned world_number(const char *node); /* by its name */
void world_end(void);
/* Something goes wrong in it: "power", "cut_off", "node_deleted", "daemon_killed", "daemon_deleted",
 * "objects_deleted", "plugin_killed", "plugin_stopped", "imex_killed", and those of racks. */
void world_fault(const char *name);
/* All nodes are there again and stay, each user makes a domain and keeps it. */
void world_calm(void);
/* In the calm one node stays without power, and the rest has to be served all the same. */
void world_leave_one_off(void);
/* Users delete everything. */
void world_empty(void);
/* All nodes go, for good. */
void world_dismantle(void);

/* Its Node has been gone for a minute, so that nothing runs on it by the rules of Kubernetes. */
bool world_is_given_up(unsigned node);
bool world_is_calm(void); /* nothing goes wrong any more */
bool world_same_clique(unsigned node, unsigned other);
/* A plugin sees the daemon with that claim READY. */
void world_pod_serves(unsigned node, const char *claim_uid, const char *domain_uid);
/* The daemon of the Pod with that address starts an nvidia-imex. */
void world_begins_imex(unsigned node, const char *ip, const char *domain_uid);
/* An nvidia-imex that serves ends, because its daemon wants that or is killed. */
void world_ends_imex(unsigned node, const char *domain_uid);
/* The domain whose nvidia-imex lives on that node; NULL: none does. */
const char *world_runs_imex(const char *node);
/* A pod of a user runs on that node since so many milliseconds with that IMEX domain; -1: none does.
 */
int64_t world_runs_ms(const char *node, const char *domain_uid);
/* NULL: all domains have formed and their pods run, and no node has a label without a pod. Else what is
 * missing. */
const char *world_misses(void);
/* NULL: nothing of any domain is left. Else what is. */
const char *world_leftover(void);
