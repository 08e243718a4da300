/* SPDX-License-Identifier: Apache-2.0 */
/* imex_supervision: decides from the facts about one nvidia-imex whether it is ready, what is reported about
 * it, and what happens to its process. Pure: no I/O and no clock. imex_recovery decides when a recovery
 * ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/states.h"
#include "imex/imex_ctl.h"
#include "imex/imex_process.h"
#include "imex/imex_version.h"

enum { IMEX_REASON_MAX = 400 };

enum imex_phase {
        IMEX_IDLE /* no index yet */,
        IMEX_STARTING,
        IMEX_READY,
        IMEX_BACKOFF,
        IMEX_STOPPING,
        IMEX_STOPPED
};

/* What nvidia-imex has printed and answered since it was started. */
struct imex_answers {
        enum imex_status status; /* IMEX_STATE_NONE: no answer yet, or none any more */
        int64_t node_id;         /* the ID that it determined for itself; -1: unknown */
        bool id_asked;           /* the domain was queried for the ID */
        unsigned unanswered;     /* queries of the status, in a row */
        unsigned connected;      /* to how many peers */
        bool connections_known;
        const char *fault; /* see imex_log_fault(); NULL: none. Static */
        char version[IMEX_VERSION_MAX];
        char silence[IMEX_REASON_MAX]; /* why the status is not known */
        /* Why the connected nodes are not known: no answer to -N has reported them. "": one has, or there was
         * no query. */
        char unseen[160];
};

/* Empties the answers, for a new process. */
void imex_supervision_begin(struct imex_answers *x);
/* Records the answer to a query of the status: a status, or IMEX_STATE_NONE and the reason. Returns false if
 * it must not change anything yet: on a busy machine a single failed query proves little, and two in a row
 * withdraw readiness. */
bool imex_supervision_note_status(struct imex_answers *x, enum imex_status status, const char *why);
/* Records the answer to a query of the domain, or NULL and the reason. `ip` and `name` identify this node.
 * Returns the entry of this node; NULL: there is none. */
const struct imex_ctl_node *imex_supervision_note_domain(struct imex_answers *x,
                                                         const struct imex_ctl_domain *d, const char *ip,
                                                         const char *name, const char *why);
/* Returns whether nvidia-imex with this status has installed its signal handlers, because its command service
 * answers. */
bool imex_supervision_takes_signals(enum imex_status status);
/* Returns whether nvidia-imex waits for a recovery, and the nodes that it has connected to are not known.
 * Then no node counts as connected, but the nodes must not be reported as missing. */
bool imex_supervision_connections_unknown(const struct imex_answers *x);

struct imex_supervision_facts {
        bool stopping; /* imex_runner_stop() was called */
        bool member;   /* this node has an index */
        enum imex_process_state process;
        bool identity_current; /* the process was started with the present index and infix; implies `member`
                                */
        int64_t index;         /* with which the process was started; used only with identity_current */
        bool usable;           /* the files of the present members can be written */
        const char *refused;   /* why the present members cannot be used; "": they can, or they only concern
                                  the peers of a process that works */
        const char *ended;     /* why the last process ended, a sentence; "": it was stopped */
        const char *awaited;   /* the nodes that a recovery waits for, for people; "": none */
        const struct imex_answers *answers;
        bool was_ready; /* as last reported */
};

/* What to do with the process when anything has changed. */
enum imex_step {
        IMEX_STEP_NONE,
        IMEX_STEP_STOP,
        IMEX_STEP_START,
        IMEX_STEP_RESTART, /* with the present index and infix */
        IMEX_STEP_UPDATE,  /* the peers of the running process */
};

/* What to do after an answer of nvidia-imex. */
enum imex_reaction {
        IMEX_REACTION_NONE,
        IMEX_REACTION_RESTART,   /* after a pause: it has a wrong ID */
        IMEX_REACTION_ASK_ID,    /* query the domain for its ID */
        IMEX_REACTION_SLOW_DOWN, /* it has become ready: query it rarely */
        IMEX_REACTION_SPEED_UP,  /* it is no longer ready: query it often */
};

struct imex_supervision_verdict {
        enum imex_phase phase;   /* IMEX_READY: nvidia-imex is READY, and its own ID is our index */
        enum imex_status status; /* for the report: the last status, STARTING, STOPPED or BACKOFF */
        enum imex_step step;
        enum imex_reaction reaction;
        char reason[IMEX_REASON_MAX]; /* when not ready: cause and remedy for people; "" otherwise */
};

void imex_supervision_evaluate(const struct imex_supervision_facts *f, struct imex_supervision_verdict *ret);

/* Writes the most useful explanation why the process ended: its own log, its ID, or how it ended, which `why`
 * describes; "" if `why` is "". */
void imex_supervision_explain_end(const struct imex_supervision_facts *f, enum imex_process_end end,
                                  const char *why, char *ret, size_t n);
