/* SPDX-License-Identifier: Apache-2.0 */
/* resident: what the daemon of a node does: it follows the object of its node's partition, and runs
 * nvidia-imex for whichever domain assigns the node an index, one domain at a time (daemon/decision). */
#pragma once

#include "imex/imex_runner.h"

/* The strings are borrowed until resident_free(). */
struct resident_config {
        const char *dir;       /* shared with the kubelet plugin: the domains' folders, daemon/folder */
        const char *cdi_dir;   /* the node's CDI files */
        const char *claim_uid; /* of the daemon's claim */
        const char *edits;     /* the name of the CDI edits that this container has; "": not known */
        const char *node, *pod_uid, *pod, *pod_ns;
        const char *kubeconfig;          /* "": in the cluster */
        struct imex_runner_options imex; /* its address is the Pod's; without assignment and callbacks */
};

struct resident;

/* `done`: the process is to end: after resident_stop(), or because the node is in another partition or a
 * container gets something else of the node now, and no IMEX runs. */
int resident_new(uv_loop_t *loop, const struct resident_config *c, const char *boot_id, void (*done)(void *u),
                 void *u, struct resident **ret, struct err *e);
/* SIGTERM: the Pod is deleted. It takes no assignment any more, serves on until no claim of its domain is
 * prepared here, and is done then; at once, if IMEX has never been READY in its assignment. */
void resident_stop(struct resident *r);
void resident_dump(const struct resident *r);
/* Not from inside `done`. */
void resident_free(struct resident *r);
