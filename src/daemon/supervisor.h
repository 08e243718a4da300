/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor: what `compute-domain-daemon run` does: membership from the clique, IMEX by the agent, its state
 * to the plugin and to the own Pod. */
#pragma once

#include "imex/imex_agent.h"

/* The strings are borrowed until supervisor_free(). */
struct supervisor_config {
        const char *clique_id; /* "": a node without fabric */
        const char *domain_uid;
        const char *claim_uid; /* of the daemon's claim; "" when the plugin does not tell */
        const char *node, *pod_uid, *pod, *pod_ns;
        const char *kubeconfig;         /* "": in the cluster */
        struct imex_agent_options imex; /* but for the identity and the callbacks; its address is the pod's */
};

struct supervisor;

/* boot_id is copied. `stopped`: what supervisor_stop() began has come to its end; without fabric from inside
 * of it. */
int supervisor_new(uv_loop_t *loop, const struct supervisor_config *c, const char *boot_id,
                   void (*stopped)(void *u), void *u, struct supervisor **ret, struct err *e);
/* Withdraws readiness, and ends nvidia-imex. */
void supervisor_stop(struct supervisor *s);
/* Logs what is known. */
void supervisor_dump(struct supervisor *s);
/* Ends all that goes on, in two steps: the lock of the state file, by which the plugin knows that we live,
 * lasts until the second, which is for when nvidia-imex has ended. Not from inside `stopped`. */
void supervisor_end(struct supervisor *s);
void supervisor_free(struct supervisor *s);

/* Returns after SIGTERM or SIGINT, when nvidia-imex has ended: 0. -1: it could not start. */
int supervisor_run(const struct supervisor_config *c, struct err *e);
