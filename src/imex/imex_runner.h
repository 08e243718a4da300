/* SPDX-License-Identifier: Apache-2.0 */
/* imex_runner: runs nvidia-imex for one domain on this node: membership, configuration files, supervision,
 * readiness.
 *
 * It has no notion of a pod: its owner says which slot this node has and who the peers are, and hears what
 * the IMEX process does. Level-triggered:
 * every input is "what should be", repeated freely. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"
#include "imex/imex_recovery.h"
#include "imex/imex_settings.h"
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
        bool ready;                            /* IMEX says READY and its own id is our index */
        const char *status;                    /* IMEX's last word, or STARTING / STOPPED / BACKOFF; static */
        char reason[IMEX_REASON_MAX];          /* when not ready: cause and remedy for people; "" otherwise */
        int64_t index;                         /* the slot it runs with, -1 without */
        int64_t node_id;                       /* the id that IMEX found for itself, -1 unknown */
        char version[IMEX_VERSION_MAX];        /* that it says it is of; "" unknown */
        unsigned peers_known, peers_connected; /* without ourselves; connected is a lower bound from -N -j */
        unsigned restarts;
        /* When a recovery takes longer than recovery_ms: the nodes that it waits for, for people; "" for
         * none. */
        char awaited[IMEX_AWAITED_MAX];
        unsigned renewals; /* how often it was restarted because nobody was left to wait for */
        /* Whose change is told to nobody: */
        const struct imex_members *members; /* as they were told last; NULL: never */
        uint64_t informed_ms;    /* for so long they have been known to be those of now; 0: they may be old */
        uint64_t waited_ms;      /* how long nvidia-imex has waited for a recovery; 0: it does not */
        const char *const *seen; /* nodes that were connected since */
        size_t n_seen;
};

struct imex_runner_options {    /* the strings are borrowed until imex_runner_free() */
        const char *dir;        /* "/imexd": imexd.cfg, nodes.cfg, members.json */
        const char *hosts_path; /* "/etc/hosts" */
        const char *run_dir;    /* "/var/run/nvidia-imex": what nvidia-imex remembers over its end */
        const char *imex_path, *ctl_path; /* looked up in PATH when they hold no slash */
        const char *own_ip;
        const char *identity; /* whose members.json may be loaded: see imex_members.h */
        unsigned max_nodes;
        const struct imex_settings *settings; /* of the operator; borrowed as the strings are; NULL: none */

        /* Of nvidia-imex, for the kernel's choice of whom to end when memory is short (proc(5)); not below
         * what ours began with. NULL: it has ours. */
        const char *oom_score_adj;

        /* 0: the default in brackets */
        unsigned server_port;      /* [50000] the same in the whole domain */
        unsigned term_grace_ms;    /* [10000] SIGTERM, then SIGKILL after this */
        unsigned usr1_interval_ms; /* [5500] IMEX ignores a SIGUSR1 within 5 s of the last one, by its own
                                      clock */
        unsigned backoff_first_ms, backoff_max_ms, stable_ms; /* [100, 30000, 60000] pause before a restart */
        unsigned ask_first_ms, ask_slow_ms,
                ask_idle_ms;     /* [20, 1000, 30000] distance of questions to nvidia-imex-ctl */
        unsigned ask_timeout_ms; /* [5000] */
        unsigned recovery_ms;    /* [60000] patience with a recovery: see imex_recovery.h */

        /* Never from inside a call of ours; each change once. */
        void (*changed)(void *u, const struct imex_report *r);
        void (*stopped)(void *u);                 /* after imex_runner_stop: the process is gone */
        void (*output)(void *u, struct str line); /* a line that nvidia-imex printed */
        /* Something to log that is no state of IMEX; it is tried again. */
        void (*failing)(void *u, const struct err *e);
        void *u;
};

/* Starts at once from members.json, if it is ours: *ret_members then tells which (borrowed until the next
 * change), else NULL. */
int imex_runner_new(uv_loop_t *loop, const struct imex_runner_options *o, struct imex_runner **ret,
                    const struct imex_members **ret_members, struct err *e);
/* What should be; copied. own_index < 0: not a member (yet): the process is stopped. Remembered in
 * members.json, so that a restarted owner starts from it without asking anybody. */
void imex_runner_set_members(struct imex_runner *a, const struct imex_members *m);
/* Whether the members are known to be those of now, as far as the owner knows. False at first, and
 * while the owner does not know: then nobody counts as rebooted or gone. */
void imex_runner_set_current(struct imex_runner *a, bool current);
/* What it points to is valid until the next turn. */
void imex_runner_report(struct imex_runner *a, struct imex_report *ret);
/* Withdraws readiness at once (changed is called first), then SIGTERM, SIGKILL; `stopped` at the end. */
void imex_runner_stop(struct imex_runner *a);
/* nvidia-imex had to be killed when it was to end last, so that its peers do not know of the end. */
bool imex_runner_killed(const struct imex_runner *a);
/* Not from inside a callback. NULL is allowed. */
void imex_runner_free(struct imex_runner *a);
