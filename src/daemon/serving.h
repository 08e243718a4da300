/* SPDX-License-Identifier: Apache-2.0 */
/* serving: nvidia-imex in one assignment: the domain's folder, the process, and the state file by which the
 * kubelet plugin sees whether IMEX is ready. daemon/decision decides the steps. Loop thread only. */
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
        bool terminating;                /* as after serving_terminate() */
        struct imex_runner_options imex; /* except the fields of the assignment, and the callbacks */
        /* IMEX is READY for the first time: from now on other nodes may map this node's memory. 0: that is
         * remembered, so readiness may be shown; -1: not yet, call again. */
        int (*ready)(void *u);
        /* Something has changed: the report, which claims use it, or it has ended. Never from inside a
         * call. */
        void (*changed)(void *u);
        void (*output)(void *u, struct str line);
        void (*failing)(void *u, const struct err *e);
        void *u;
};

int serving_new(uv_loop_t *loop, const struct serving_options *o, struct serving **ret, struct err *e);
/* Sets the other nodes of the fabric object; peers NULL: not known, the earlier ones stay. `current` as for
 * imex_runner_set_current(). */
void serving_set_peers(struct serving *s, const struct imex_peer *peers, size_t n, bool current);
void serving_report(const struct serving *s, struct imex_report *ret);
/* Why the kubelet plugin cannot see the state; NULL: it can. */
const char *serving_state_error(const struct serving *s);

/* SIGTERM: from now on the state file shows it, so that the kubelet plugin releases no new pods. */
void serving_terminate(struct serving *s);

/* The state file does not show readiness until serving_show(). If it cannot be written, that is retried. */
void serving_withdraw(struct serving *s);
void serving_show(struct serving *s);
/* Readiness cannot be seen: it is withdrawn, and the file in place has been read to check this. */
bool serving_withdrawn(const struct serving *s);

/* Withdraws readiness and stops nvidia-imex. This is final. */
void serving_stop(struct serving *s);
bool serving_stopping(const struct serving *s);
/* nvidia-imex has ended after serving_stop(). *ret_clean: cleanly, so its peers know that. */
bool serving_ended(const struct serving *s, bool *ret_clean);
/* Removes its files, except the folder of the grants. */
int serving_clear(struct serving *s, struct err *e);
/* The same for the files of an earlier Pod in that domain. `dir` contains a folder for each domain. */
int serving_clear_after(const char *dir, const char *domain, struct err *e);
/* Kills nvidia-imex if it runs. Not from inside a callback. NULL is allowed. */
void serving_free(struct serving *s);
