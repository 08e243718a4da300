/* SPDX-License-Identifier: Apache-2.0 */
/* rollout: which daemons are replaced so that they run the newest template. Pure.
 *
 * Only idle daemons are replaced. A new template is tried on one node first, then on a tenth of the idle
 * nodes, and reaches the rest when these are healthy, so that an image that crashes reaches at most a tenth
 * of the idle nodes (at least one). Every daemon with the newest template counts, also one that the DaemonSet
 * controller created for another reason. Nothing is remembered: a controller that has just started decides
 * the same. Daemons on nodes that are not ready are left alone, and nothing waits for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A daemon is healthy after this time without a restart. */
enum { ROLLOUT_HEALTHY_S = 60 };

struct rollout_daemon {
        bool outdated;     /* it does not run the newest template */
        bool node_ready;   /* its Node is there and ready */
        bool spent;        /* its claim was unprepared, so that no container of it can start again */
        bool removed;      /* its Pod is being deleted, or its removal is granted */
        bool asked;        /* its mark was asked for, and may be on its way */
        bool idle;         /* it has no assignment, or IMEX has never been READY in it */
        bool reported;     /* it has reported in this Pod */
        bool crashing;     /* its container has ended, and waits or was restarted before the first report */
        bool imex_starts;  /* `nvidia-imex --version` ran in it */
        bool fresh_wanted; /* it has served a domain, and is to be replaced before the node joins another */
        int64_t started;   /* when its container was first seen to run; 0: it does not run */
};

enum rollout_choice {
        ROLLOUT_KEEP,    /* it runs the newest template, or is being removed */
        ROLLOUT_REPLACE, /* now */
        ROLLOUT_WAIT,    /* for the daemons with the newest template to become healthy */
        ROLLOUT_BUSY,    /* until it is idle */
        ROLLOUT_SKIP     /* its node is not ready */
};

struct rollout {
        bool proven;       /* enough daemons are healthy: the template may reach every node */
        size_t n_outdated; /* on ready nodes, being removed or not */
        size_t n_busy;     /* of these, not idle */
        size_t n_crashing; /* of those with the newest template */
        int64_t recheck_s; /* a daemon may be healthy by then; 0: no need */
};

/* choices[i] is that of list[i]; of equal ones those that were asked for, then the first are replaced first.
 */
void rollout_make(const struct rollout_daemon *list, size_t n, int64_t now, enum rollout_choice *choices,
                  struct rollout *ret);
