/* SPDX-License-Identifier: Apache-2.0 */
/* imex_runner: runs nvidia-imex for one domain on this node: membership, configuration files, supervision,
 * readiness.
 *
 * It does not know pods: its owner sets this node's slot and the peers, and gets reports about the IMEX
 * process. Level-triggered: every input is a desired state, and may be repeated. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"
#include "imex/imex_files.h"
#include "imex/imex_recovery.h"
#include "imex/imex_version.h"

struct imex_runner;

enum imex_phase {
        IMEX_IDLE /* no index yet */,
        IMEX_STARTING,
        IMEX_READY,
        IMEX_BACKOFF,
        IMEX_STOPPING,
        IMEX_STOPPED
};

enum { IMEX_REASON_MAX = 400 };

struct imex_report {
        enum imex_phase phase;
        bool ready;         /* IMEX is READY, and its own ID is our index */
        const char *status; /* the last state that IMEX printed, or STARTING / STOPPED / BACKOFF; static */
        char reason[IMEX_REASON_MAX];          /* when not ready: cause and remedy for people; "" otherwise */
        int64_t index;                         /* the slot it runs with, -1 without */
        int64_t node_id;                       /* the ID that IMEX found for itself, -1 unknown */
        char version[IMEX_VERSION_MAX];        /* as it reports it; "" unknown */
        unsigned peers_known, peers_connected; /* without this node; connected is a lower bound from -N -j */
        unsigned restarts;
        /* If a recovery takes longer than recovery_ms: the nodes that it waits for, for people; "" for
         * none. */
        char awaited[IMEX_AWAITED_MAX];
        unsigned renewals; /* how often it was restarted because there was no node left to wait for */
        /* Changes of these are not reported: */
        const struct imex_members *members; /* as last set; NULL: never */
        uint64_t informed_ms;    /* for how long they have been known to be current; 0: they may be old */
        uint64_t waited_ms;      /* how long nvidia-imex has waited for a recovery; 0: it does not wait */
        const char *const *seen; /* nodes that were connected since then */
        size_t n_seen;
};

struct imex_runner_options {    /* the strings are borrowed until imex_runner_free() */
        const char *dir;        /* "/imexd": imexd.cfg, nodes.cfg, members.json */
        const char *hosts_path; /* "/etc/hosts" */
        const char *run_dir;    /* "/var/run/nvidia-imex": the files that nvidia-imex keeps when it ends */
        const char *imex_path, *ctl_path; /* looked up in PATH when they contain no slash */
        const char *own_ip;
        const char *identity; /* members.json is loaded only if it has this identity: see imex_members.h */
        unsigned max_nodes;
        /* Of imexd.cfg, borrowed like the strings. The runner sets cmd_bind_ip and nodes_file. server_port
         * is the same in the whole domain; 0: 50000. */
        struct imex_config config;

        /* For nvidia-imex: by this the kernel chooses the process to kill when memory is short (proc(5)). Not
         * below our own initial value. NULL: the same as ours. */
        const char *oom_score_adj;

        /* 0: the default in brackets */
        unsigned term_grace_ms;    /* [10000] SIGTERM, then SIGKILL after this */
        unsigned usr1_interval_ms; /* IMEX ignores a SIGUSR1 within 5 s of the last one, measured by its own
                                      clock */
        unsigned backoff_first_ms, backoff_max_ms, stable_ms; /* [100, 30000, 60000] pause before a restart */
        unsigned ask_first_ms, ask_slow_ms,
                ask_idle_ms;     /* [20, 1000, 30000] interval of queries with nvidia-imex-ctl */
        unsigned ask_timeout_ms; /* [5000] */
        unsigned recovery_ms;    /* [60000] patience with a recovery: see imex_recovery.h */

        /* Called for each change, never from inside a call of this module. */
        void (*changed)(void *u, const struct imex_report *r);
        void (*stopped)(void *u);                 /* after imex_runner_stop(): the process has ended */
        void (*output)(void *u, struct str line); /* a line that nvidia-imex printed */
        /* An error to log that is not a state of IMEX; the runner retries. */
        void (*failing)(void *u, const struct err *e);
        void *u;
};

/* Starts at once from members.json, if it has our identity: then *ret_members are these members (borrowed
 * until the next change), otherwise NULL. */
int imex_runner_new(uv_loop_t *loop, const struct imex_runner_options *o, struct imex_runner **ret,
                    const struct imex_members **ret_members, struct err *e);
/* The desired members; copied. own_index < 0: not a member (yet): the process is stopped. Saved in
 * members.json, so that a restarted owner can start from it without the API server. */
void imex_runner_set_members(struct imex_runner *a, const struct imex_members *m);
/* Whether the owner knows that the members are current. False at first. While it is false, no node counts as
 * rebooted or removed. */
void imex_runner_set_current(struct imex_runner *a, bool current);
/* Pointers in the report are valid until the next turn. */
void imex_runner_report(struct imex_runner *a, struct imex_report *ret);
/* Withdraws readiness at once (changed is called first), then SIGTERM, SIGKILL; `stopped` at the end. */
void imex_runner_stop(struct imex_runner *a);
/* At its last stop nvidia-imex had to be killed, so its peers do not know that it ended. */
bool imex_runner_killed(const struct imex_runner *a);
/* Not from inside a callback. NULL is allowed. */
void imex_runner_free(struct imex_runner *a);
