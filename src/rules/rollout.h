/* SPDX-License-Identifier: Apache-2.0 */
/* rollout: decides which daemons are replaced so that they run the newest template. Pure.
 *
 * Only idle daemons are replaced. A new template is first tried on one node, then on a tenth of the idle
 * nodes. When these daemons are healthy, it reaches the other idle nodes. So an image that crashes reaches at
 * most a tenth of the idle nodes (at least one). Every daemon with the newest template counts, even if the
 * DaemonSet controller created it for another reason. The module remembers nothing, so a controller that has
 * just started decides the same. Daemons on nodes that are not ready are not replaced, and the rollout does
 * not wait for them. Daemons on nodes that withhold their devices are not replaced.
 *
 * A daemon with the newest template is replaced if it has served an IMEX domain (`fresh_wanted`). Until a
 * tenth of the idle daemons are healthy or have served with the template, at most a tenth is replaced at a
 * time, and none while a rollout waits until the daemons with the newest template are healthy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A daemon is healthy when it has run for this time without a restart. */
enum {
        ROLLOUT_HEALTHY_S = 60,
        ROLLOUT_PATIENCE_S = 600 /* a node on which no daemon with the newest template has started within this
                                    time counts like one that crashes */
};

struct rollout_daemon {
        bool outdated;   /* it does not run the newest template */
        bool node_ready; /* its Node exists and is Ready */
        bool withheld;   /* its node withholds the device of the daemon, so no other daemon can start there */
        bool spent;      /* its claim was unprepared, so none of its containers can start again */
        bool removed;    /* its Pod is being deleted, or the fabric object marks it for removal */
        bool asked;      /* the controller has requested its mark; the write may be under way */
        bool idle;       /* it has no assignment, or IMEX has never been READY in it */
        bool reported;   /* it has reported in this Pod */
        bool crashing;   /* its container has ended, and waits or was restarted before the first report */
        bool hangs;      /* it does not end, or the next one does not start, for ROLLOUT_PATIENCE_S */
        bool imex_starts;  /* `nvidia-imex --version` ran in it */
        bool served;       /* it has served an IMEX domain in this Pod */
        bool fresh_wanted; /* it has served an IMEX domain, and must be replaced before the node joins
                              another */
        int64_t started;   /* when its container was first seen running; 0: it is not running */
};

enum rollout_choice {
        ROLLOUT_KEEP,    /* it runs the newest template, or is being removed */
        ROLLOUT_REPLACE, /* replace it now */
        ROLLOUT_WAIT,    /* wait until other daemons are healthy, or have been replaced */
        ROLLOUT_BUSY,    /* wait until it is idle */
        ROLLOUT_SKIP     /* its node is not ready, or withholds its devices */
};

struct rollout {
        bool proven;       /* enough daemons are healthy, so the template may reach every node */
        size_t n_outdated; /* outdated daemons on ready nodes, including those that are being removed */
        size_t n_busy;     /* the outdated daemons that are not idle */
        size_t n_crashing; /* daemons for which rollout_fails() is true, on ready nodes */
        int64_t recheck_s; /* decide again after this time, when a daemon may be healthy; 0: no need */
};

/* Sets choices[i] for list[i]. Among equal daemons, those with a requested mark are replaced first, and the
 * others in the order of the list. */
void rollout_make(const struct rollout_daemon *list, size_t n, int64_t now, enum rollout_choice *choices,
                  struct rollout *ret);

/* The daemon is being replaced. A daemon that terminates and still serves does not count yet, because a pod
 * may use it for weeks. */
bool rollout_is_replaced(const struct rollout_daemon *d);

/* The node has not started a daemon with the newest template in time, or that daemon crashes. */
bool rollout_fails(const struct rollout_daemon *d);
