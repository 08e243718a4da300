/* SPDX-License-Identifier: Apache-2.0 */
/* node_daemon: runs the daemon of a node: watches the fabric object of the node's partition, and runs
 * nvidia-imex for the IMEX domain in which the node has an index, one domain at a time (daemon/decision). */
#pragma once

#include "imex/imex_runner.h"

/* The strings are borrowed until node_daemon_free(). */
struct node_daemon_config {
        const char *dir;       /* shared with the kubelet plugin: the domains' folders, daemon/folder */
        const char *cdi_dir;   /* the node's CDI files */
        const char *claim_uid; /* UID of the daemon's claim */
        const char *edits;     /* the name of the CDI edits that this container has; "": unknown */
        const char *node, *pod_uid, *pod, *pod_ns;
        const char *kubeconfig;          /* "": in the cluster */
        const char *boot_id;             /* the node's boot ID */
        /* own_ip is the Pod's address; assignment fields and callbacks are not set. */
        struct imex_runner_options imex;
};

struct node_daemon;

/* Creates the daemon. It calls `done` when the process must end and IMEX does not run: after
 * node_daemon_stop(), or because the node is in another partition, or because a new container would get other
 * device nodes or files of the node. */
int node_daemon_new(uv_loop_t *loop, const struct node_daemon_config *c, void (*done)(void *u), void *u,
                    struct node_daemon **ret, struct err *e);
/* Call it on SIGTERM: the Pod is deleted. The daemon accepts no assignment any longer, and keeps IMEX running
 * until no claim of its domain is prepared on this node. Then the daemon calls `done`. If IMEX has never been
 * READY in the assignment, the daemon does not wait for claims. */
void node_daemon_stop(struct node_daemon *r);
void node_daemon_dump(const struct node_daemon *r);
/* Frees the daemon. Not allowed inside `done`. */
void node_daemon_free(struct node_daemon *r);
