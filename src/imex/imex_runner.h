/* SPDX-License-Identifier: Apache-2.0 */
/* imex_runner: runs nvidia-imex for one domain on this node: writes its configuration files, supervises the
 * process, and reports whether it is ready.
 *
 * The runner knows nothing about pods: its owner sets this node's slot and the peers, and gets reports about
 * the IMEX process. Level-triggered: every input is a desired state, and may be repeated. Loop
 * thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"
#include "imex/imex_files.h"
#include "imex/imex_links.h"
#include "imex/imex_recovery.h"
#include "imex/imex_supervision.h"
#include "imex/imex_version.h"

struct imex_runner;

struct imex_report {
        enum imex_phase phase;
        bool ready;         /* IMEX is READY, and its own ID is our index */
        enum imex_status status; /* the last state that IMEX printed, or STARTING, STOPPED or BACKOFF */
        char reason[IMEX_REASON_MAX];          /* when not ready: cause and remedy for people; "" otherwise */
        int64_t index;                         /* the index with which IMEX runs; -1: none */
        int64_t node_id;                       /* the ID that IMEX determined for itself; -1: unknown */
        char version[IMEX_VERSION_MAX];        /* as nvidia-imex reports it; "": unknown */
        unsigned peers_known, peers_connected; /* without this node; connected is a lower bound from -N -j */
        bool lost_known; /* false: `lost` may lack peers, because IMEX is not ready or has not answered yet */
        char lost[IMEX_LOST_MAX]; /* the lost peers, as imex_links_lost() lists them */
        unsigned restarts;
        /* If a recovery takes longer than recovery_ms: the nodes that nvidia-imex waits for, for people; ""
         * for none. */
        char awaited[IMEX_AWAITED_MAX];
        unsigned renewals; /* how often IMEX was restarted because there was no node left to wait for */
        /* Changes of the following members are not reported: */
        const struct imex_members *members; /* as last set; NULL: never set */
        uint64_t informed_ms;    /* for how long the members have been known to be current; 0: may be old */
        uint64_t waited_ms;      /* how long nvidia-imex has waited for a recovery; 0: it does not wait */
        const char *const *seen; /* nodes that were connected during this wait */
        size_t n_seen;
};

struct imex_runner_options {    /* the strings are borrowed until imex_runner_free() */
        const char *dir;        /* "/imexd": imexd.cfg, nodes.cfg, members.json */
        const char *hosts_path; /* "/etc/hosts" */
        const char *run_dir;    /* "/var/run/nvidia-imex": the saved state of nvidia-imex */
        const char *imex_path, *ctl_path; /* looked up in PATH when they contain no slash */
        const char *own_ip;
        const char *identity; /* members.json is loaded only if it has this identity: see imex_members.h */
        unsigned max_nodes;
        /* The content of imexd.cfg, borrowed like the strings. The runner sets cmd_bind_ip and nodes_file.
         * domain.port must be the same in the whole domain; 0: 50000. */
        struct imex_config config;

        /* The oom_score_adj of nvidia-imex, by which the kernel chooses the process to kill when memory is
         * short (proc(5)). It must not be below our own initial value. NULL: the same as ours. */
        const char *oom_score_adj;

        /* For each of these, 0 means the default in brackets. */
        unsigned term_grace_ms;    /* [10000] time between SIGTERM and SIGKILL */
        unsigned usr1_interval_ms; /* IMEX ignores a SIGUSR1 within 5 s of the last one, measured by its own
                                      clock */
        unsigned backoff_first_ms, backoff_max_ms, stable_ms; /* [100, 30000, 60000] pause before a restart */
        unsigned ask_first_ms, ask_slow_ms,
                ask_idle_ms;     /* [20, 1000, 30000] interval of queries with nvidia-imex-ctl */
        unsigned ask_timeout_ms; /* [5000] */
        unsigned recovery_ms;    /* [60000] patience with a recovery: limit_ms in imex_recovery.h */

        /* Called for each change, never from inside a call of this module. */
        void (*changed)(void *u, const struct imex_report *r);
        void (*stopped)(void *u); /* called after imex_runner_stop(), when the process has ended */
        void (*output)(void *u, struct str line); /* called for each line that nvidia-imex prints */
        /* Called with an error that the owner should log and that is not a state of IMEX. The runner
         * retries. */
        void (*failing)(void *u, const struct err *e);
        void *u;
};

/* Creates a runner. If members.json has our identity, starts nvidia-imex at once with these members, and
 * returns them in *ret_members (borrowed until the next change); otherwise *ret_members is NULL. */
int imex_runner_new(uv_loop_t *loop, const struct imex_runner_options *o, struct imex_runner **ret,
                    const struct imex_members **ret_members, struct err *e);
/* Sets the desired members; copied. own_index < 0: the node is not a member (yet), so the runner stops the
 * process. The runner saves the members in members.json, so that a restarted owner can start with them
 * without the API server. */
void imex_runner_set_members(struct imex_runner *a, const struct imex_members *m);
/* Sets whether the owner knows that the members are current. False at first. While it is false, no node
 * counts as rebooted or removed. */
void imex_runner_set_current(struct imex_runner *a, bool current);
/* Fills *ret with the present report. Pointers in the report are valid until the next turn. */
void imex_runner_report(struct imex_runner *a, struct imex_report *ret);
/* Withdraws readiness at once (calls `changed` first), then ends the process with SIGTERM, later SIGKILL, and
 * calls `stopped` at the end. */
void imex_runner_stop(struct imex_runner *a);
/* Returns whether nvidia-imex was killed, or crashed, when it was last stopped. Then its peers do not know
 * that it ended. */
bool imex_runner_killed(const struct imex_runner *a);
/* Frees the runner. Not allowed inside a callback. NULL is allowed. */
void imex_runner_free(struct imex_runner *a);
