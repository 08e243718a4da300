/* SPDX-License-Identifier: Apache-2.0 */
/* world: simulates everything that acts in the cluster except our controllers: nodes with their kubelets and
 * daemons, the DaemonSet controller, the scheduler, the garbage collector, and users. Each acts as in
 * Kubernetes, in a random order and at random times. */
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
unsigned world_number(const char *node); /* returns the number of the node with this name */
void world_end(void);
/* Causes a fault in the world: "power", "cut_off", "node_deleted", "daemon_killed", "daemon_deleted",
 * "objects_deleted", "plugin_killed", "plugin_stopped", "imex_killed", and those of racks. */
void world_fault(const char *name);
/* Begins the calm: all nodes return and stay, and each user creates a ComputeDomain and keeps it. */
void world_calm(void);
/* Lets one node stay without power in the calm. The other nodes must be served nevertheless. */
void world_leave_one_off(void);
/* Lets the users delete all their objects. */
void world_empty(void);
/* Deletes all nodes permanently. */
void world_dismantle(void);

/* Returns true if the Node has not existed for a minute, so that by the rules of Kubernetes nothing runs on
 * it. */
bool world_is_given_up(unsigned node);
bool world_is_calm(void); /* there are no more faults */
bool world_same_clique(unsigned node, unsigned other);
/* Call it when a plugin sees the daemon with that claim READY. */
void world_pod_serves(unsigned node, const char *claim_uid, const char *domain_uid);
/* Call it when the daemon of the Pod with that address starts an nvidia-imex. */
void world_begins_imex(unsigned node, const char *ip, const char *domain_uid);
/* Call it when a READY nvidia-imex ends, because its daemon stops it or is killed. */
void world_ends_imex(unsigned node, const char *domain_uid);
/* Returns the IMEX domain whose nvidia-imex runs on that node, or NULL if there is none. */
const char *world_runs_imex(const char *node);
/* Returns for how many milliseconds a pod of a user has run on that node with that IMEX domain, or -1 if none
 * runs. */
int64_t world_runs_ms(const char *node, const char *domain_uid);
/* Returns NULL if all ComputeDomains have formed, their pods run, and no node has a label without a pod;
 * otherwise a description of what is missing. */
const char *world_misses(void);
/* Returns true if the daemon of the node runs, but its Pod no longer exists, so that it cannot report, or if
 * its partition waits for such a report. */
bool world_daemon_may_be_unknown(const char *node);
/* Returns true if a pod of a shared claim waits for a node. world_misses() excuses it while no node on which
 * it can start offers channels, for example until all nodes have reported after the fabric object was lost.
 */
bool world_shares_wait(void);
/* Returns true if the Pod of a daemon is being deleted. */
bool world_daemon_ends(void);
/* Returns NULL if no object of any ComputeDomain is left, otherwise a description of such an object. */
const char *world_leftover(void);
