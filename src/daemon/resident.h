/* SPDX-License-Identifier: Apache-2.0 */
/* resident: what compute-domain-agent does: it follows the object of its node's fabric, and runs nvidia-imex
 * for whichever domain of it lists the node, one at a time (daemon/turns). */
#pragma once

#include "imex/imex_agent.h"

/* The strings are borrowed until resident_free(). */
struct resident_config {
        const char *dir;       /* shared with the kubelet plugin: the domains' folders, daemon/agent_folder */
        const char *claim_uid; /* of the agent's claim */
        const char *edits;     /* the name of the CDI edits that this container has; "": not known */
        const char *node, *pod_uid, *pod, *pod_ns;
        const char *kubeconfig;         /* "": in the cluster */
        struct imex_agent_options imex; /* its address is the Pod's; but for the seat and the callbacks */
};

struct resident;

/* `done`: what resident_stop() began has come to its end; or the fabric of the node is another one, or what a
 * container is given of the node, and nothing runs: then the process is to end. */
int resident_new(uv_loop_t *loop, const struct resident_config *c, const char *boot_id, void (*done)(void *u),
                 void *u, struct resident **ret, struct err *e);
/* Withdraws readiness, and ends nvidia-imex, whoever uses it: the Pod goes. The seat is kept. */
void resident_stop(struct resident *r);
void resident_dump(const struct resident *r);
/* Not from inside `done`. */
void resident_free(struct resident *r);
