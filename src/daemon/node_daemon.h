/* SPDX-License-Identifier: Apache-2.0 */
/* The resident daemon of a node: it follows the fabric object of its node's partition, and runs
 * nvidia-imex for the domain that assigns the node an index, one domain at a time (daemon/decision). */
#pragma once

#include "imex/imex_runner.h"

/* The strings are borrowed until node_daemon_free(). */
struct node_daemon_config {
        const char *dir;       /* shared with the kubelet plugin: the domains' folders, daemon/folder */
        const char *cdi_dir;   /* the node's CDI files */
        const char *claim_uid; /* of the daemon's claim */
        const char *edits;     /* the name of the CDI edits that this container has; "": not known */
        const char *node, *pod_uid, *pod, *pod_ns;
        const char *kubeconfig;          /* "": in the cluster */
        const char *boot_id;             /* of the node */
        struct imex_runner_options
                imex; /* own_ip is the Pod's; the fields of the assignment and the callbacks are not set */
};

struct node_daemon;

/* `done`: the process must end, after node_daemon_stop(), or because the node is in another partition, or
 * because a new container would get other device nodes or files of the node; and IMEX does not run. */
int node_daemon_new(uv_loop_t *loop, const struct node_daemon_config *c, void (*done)(void *u), void *u,
                    struct node_daemon **ret, struct err *e);
/* SIGTERM: the Pod is deleted. The daemon accepts no assignment any longer, and serves until no claim of its
 * domain is prepared here. Then it calls `done`; at once, if IMEX has never been READY in its assignment. */
void node_daemon_stop(struct node_daemon *r);
void node_daemon_dump(const struct node_daemon *r);
/* Not from inside `done`. */
void node_daemon_free(struct node_daemon *r);
