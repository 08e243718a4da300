/* SPDX-License-Identifier: Apache-2.0 */
/* node_reads: reads a whole Node again when its taints, unschedulable, boot ID or conditions may have
 * changed.
 *
 * A Node has 20 to 100 KiB, and its kubelet reports its status at least every five minutes. So the cache of
 * Nodes lists whole Nodes, but watches only their metadata. The metadata shows in managedFields who wrote
 * spec.taints and spec.unschedulable, and when. The controller manager taints each Node that is not Ready. So
 * the module reads a Node when these writers change. It also reads a Node
 * - at each of its changes, while it is not Ready or out of service, or has never been read;
 * - at each of its changes, while a fabric object lists an assignment on it and its daemon's Pod is not
 * Ready, and when this Pod ceases to be Ready or its container restarts: the node may have rebooted;
 * - when its daemon reports another boot ID than the Node.
 *
 * The times of managedFields are whole seconds, and nothing shows a boot ID that changes without its daemon.
 * So the module also lists all Nodes every 30 minutes.
 *
 * Until the answer, the cached Node has the earlier spec and status, as if the watch were late, and `partial`
 * is set. So the out-of-service taint of a partial Node proves nothing. A read that fails is retried as long
 * as the Node exists. If many Nodes have to be read, the module lists all. Followers read, too, so that their
 * caches are complete when they begin to lead. Loop thread only. */
#pragma once

#include "controller/records.h"

struct node_reads *node_reads_new(struct controller *c);
void node_reads_free(struct node_reads *r); /* cancels the requests; NULL is allowed */

/* Call these when a Node or a daemon's Pod in the cache was added (`was` NULL), changed, or deleted (`is`
 * NULL). */
void node_reads_node_changed(struct controller *c, const struct node *was, const struct node *is);
void node_reads_daemon_changed(struct controller *c, const struct daemon_pod *was,
                               const struct daemon_pod *is);
size_t node_reads_count(const struct node_reads *r); /* Nodes that wait for an answer */
