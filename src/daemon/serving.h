/* SPDX-License-Identifier: Apache-2.0 */
/* serving: nvidia-imex in one assignment: the domain's folder, the process, and the state file by which the
 * kubelet plugin sees whether IMEX is ready. What is to be done decides daemon/decision. Loop thread only. */
#pragma once

#include "daemon/decision.h"
#include "daemon/state_file.h"
#include "imex/imex_runner.h"
#include "imex/imex_state.h"

struct serving;

struct serving_options {     /* the strings are borrowed until serving_free(), except the assignment's */
        const char *dir;     /* holds a folder for each domain */
        const char *cdi_dir; /* the CDI files of the node */
        const char *fabric;  /* the clique's id */
        const char *boot_id, *claim_uid, *pod_uid;
        const struct decision_assignment *assignment;
        bool terminating;                /* as after serving_terminate() */
        struct imex_runner_options imex; /* except what the assignment has, and the callbacks */
        /* IMEX is READY for the first time: others may map this node's memory from here on. 0: that is
         * remembered, so that readiness may be shown; -1: not yet, it is asked again. */
        int (*ready)(void *u);
        /* Something has changed: the report, which claims use it, or that it has ended. Never from inside a
         * call. */
        void (*changed)(void *u);
        void (*output)(void *u, struct str line);
        void (*failing)(void *u, const struct err *e);
        void *u;
};

int serving_new(uv_loop_t *loop, const struct serving_options *o, struct serving **ret, struct err *e);
/* What the partition's object has about the others; peers NULL: nothing. `current` as for
 * imex_runner_set_current(). */
void serving_set_peers(struct serving *s, const struct imex_peer *peers, size_t n, bool current);
void serving_report(const struct serving *s, struct imex_report *ret);
/* Why the kubelet plugin cannot see the state; NULL: it can. */
const char *serving_state_error(const struct serving *s);

/* SIGTERM: the state file says so from now on, so that the kubelet plugin sends no new pods. */
void serving_terminate(struct serving *s);

/* The state file does not show readiness any more, until serving_show(). When that cannot be written, it is
 * tried again. */
void serving_withdraw(struct serving *s);
void serving_show(struct serving *s);
/* Nobody can see readiness: it is withdrawn, and the file in place is read to be so. */
bool serving_withdrawn(const struct serving *s);

/* Withdraws readiness and stops nvidia-imex. This is not taken back. */
void serving_stop(struct serving *s);
bool serving_stopping(const struct serving *s);
/* nvidia-imex is gone after serving_stop(). *ret_clean: in order, so that its peers know of it. */
bool serving_ended(const struct serving *s, bool *ret_clean);
/* Removes what it leaves behind, except the folder of the grants. */
int serving_clear(struct serving *s, struct err *e);
/* The same of what an earlier Pod has left behind in that domain. `dir` holds a folder for each. */
int serving_clear_after(const char *dir, const char *domain, struct err *e);
/* Kills what runs. Not from inside a callback. NULL is allowed. */
void serving_free(struct serving *s);
