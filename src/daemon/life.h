/* SPDX-License-Identifier: Apache-2.0 */
/* life: nvidia-imex in one seat, for a resident agent: the seat's folder, the process, the state file, and
 * who uses it.
 *
 * It ends only when nobody on the node uses it: readiness is withdrawn, then the grants are looked for, and
 * it goes on when there is one (imex/imex_grants.h). Loop thread only. */
#pragma once

#include "daemon/state_file.h"
#include "daemon/turns.h"
#include "imex/imex_agent.h"
#include "imex/imex_state.h"

struct life;

struct life_options {       /* the strings are borrowed until life_free(), but for the seat's */
        const char *dir;    /* holds a folder for each domain */
        const char *fabric; /* the clique's id */
        const char *boot_id, *claim_uid, *pod_uid;
        const struct turns_seat *seat;
        struct imex_agent_options imex; /* but for what the seat says, and the callbacks */
        /* It is about to be told for the first time that IMEX is ready, so that others may map this node's
         * memory from here on: 0; -1: not yet, it is asked again. */
        int (*serves)(void *u);
        /* Something is another: the report, who uses it, or that it has ended. Never from inside a call. */
        void (*changed)(void *u);
        void (*output)(void *u, struct str line);
        void (*failing)(void *u, const struct err *e);
        void *u;
};

int life_new(uv_loop_t *loop, const struct life_options *o, struct life **ret, struct err *e);
/* What the fabric says of the others; `current` as for imex_agent_set_current(). */
void life_set_peers(struct life *l, const struct imex_peer *peers, size_t n, bool current);
void life_report(const struct life *l, struct imex_report *ret);
/* Why the kubelet plugin cannot hear of the state; NULL: it can. */
const char *life_state_error(const struct life *l);

/* Tries to end it. `whoever` uses it: the ComputeDomain is being deleted, or the Pod. True: it is ending or
 * has ended, which cannot be taken back. False: it goes on, and *ret_why, static, says why. */
bool life_leave(struct life *l, bool whoever, const char **ret_why);
bool life_leaving(const struct life *l);
/* nvidia-imex is gone. *ret_clean: in order, so that its peers know of it. */
bool life_ended(const struct life *l, bool *ret_clean);
/* Removes what it leaves behind, but for the folder of the grants. */
int life_clear(struct life *l, struct err *e);
/* The same of a life that another Pod had in that domain. `dir` holds a folder for each. */
int life_clear_after(const char *dir, const char *domain, struct err *e);
/* Kills what runs. Not from inside a callback. NULL is allowed. */
void life_free(struct life *l);
