/* SPDX-License-Identifier: Apache-2.0 */
/* serving: runs nvidia-imex for one assignment: manages the domain's folder, the process, and the state file
 * that shows the kubelet plugin whether IMEX is ready. daemon/decision decides the steps. Loop
 * thread only. */
#pragma once

#include "daemon/decision.h"
#include "daemon/state_file.h"
#include "imex/imex_runner.h"
#include "imex/imex_state.h"

struct serving;

struct serving_options {     /* the strings are borrowed until serving_free(), except the assignment's */
        const char *dir;     /* contains a folder for each domain */
        const char *cdi_dir; /* the CDI files of the node */
        const char *fabric;  /* the clique ID */
        const char *boot_id, *claim_uid, *pod_uid;
        const struct decision_assignment *assignment;
        bool terminating;                /* begin in the state after serving_terminate() */
        struct imex_runner_options imex; /* without the fields of the assignment and the callbacks */
        /* Called when IMEX is READY for the first time: from now on other nodes may map this node's memory.
         * Returns 0 if the owner has saved this fact, so readiness may be shown, or -1 if not: then it is
         * called again, and the state file shows why. */
        int (*ready)(void *u, struct err *e);
        /* Called when the report or the use of the domain by claims may have changed, or IMEX has ended.
         * Never called from inside a function of this module. */
        void (*changed)(void *u);
        void (*output)(void *u, struct str line);
        void (*failing)(void *u, const struct err *e);
        void *u;
};

int serving_new(uv_loop_t *loop, const struct serving_options *o, struct serving **ret, struct err *e);
/* Sets the other nodes of the IMEX domain. peers NULL: unknown, so the earlier peers stay. `current` has the
 * same meaning as in imex_runner_set_current(). */
void serving_set_peers(struct serving *s, const struct imex_peer *peers, size_t n, bool current);
void serving_report(const struct serving *s, struct imex_report *ret);
/* Returns the reason why the kubelet plugin cannot see the state; NULL if it can. */
const char *serving_state_error(const struct serving *s);
/* Returns why IMEX, which is READY, is not shown as ready, because the owner could not save this; otherwise
 * NULL. */
const char *serving_unsaved(const struct serving *s);

/* Call it on SIGTERM: from now on the state file shows that the daemon is terminating, so that the kubelet
 * plugin releases no new pods. */
void serving_terminate(struct serving *s);

/* Withdraws readiness from the state file until serving_show(). If the write fails, it is retried. */
void serving_withdraw(struct serving *s);
void serving_show(struct serving *s);
/* Returns whether the plugin cannot see readiness: it is withdrawn, and the module has read the present file
 * to check this. */
bool serving_withdrawn(const struct serving *s);

/* Withdraws readiness and stops nvidia-imex. This is final. */
void serving_stop(struct serving *s);
bool serving_stopping(const struct serving *s);
/* Returns whether nvidia-imex has ended after serving_stop(). *ret_clean: it ended cleanly, so its peers know
 * that it ended. */
bool serving_ended(const struct serving *s, bool *ret_clean);
/* Removes the files in the domain's folder, except the folder of the grants. */
int serving_clear(struct serving *s, struct err *e);
/* Like serving_clear(), for the files of an earlier Pod in `domain`. `dir` contains a folder for each
 * domain. */
int serving_clear_after(const char *dir, const char *domain, struct err *e);
/* Kills nvidia-imex if it is running, and frees `s`. Not allowed inside a callback. NULL is allowed. */
void serving_free(struct serving *s);
