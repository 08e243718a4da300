/* SPDX-License-Identifier: Apache-2.0 */
/* isolation: what it takes on a node that each ComputeDomain has an IMEX channel of its own: the node's
 * fabric is watched, what it holds is told, and its devices are offered only where a channel keeps others
 * out. */
#pragma once

#include "cd_plugin/fabric_watch.h"
#include "cd_plugin/holdings.h"
#include "cd_plugin/host_imex.h"
#include "cd_plugin/metrics.h"
#include "cd_plugin/standing.h"
#include "cd_plugin/toolkit_watch.h"
#include "cd_plugin/withhold.h"
#include "kube/event_recorder.h"

struct isolation;

struct isolation_options { /* the strings are borrowed until isolation_free() */
        uv_loop_t *loop;
        struct kube_client *kube;
        struct event_recorder *events;
        struct plugin_metrics *metrics;
        const char *node;
        struct own_pod *own_pod; /* borrowed, too */
        const char *cdi_root;
        struct driver_root root; /* of the driver */
        const char *host_root;   /* where the host's own root is seen; "": it is not */
        bool trust_toolkit;      /* whatever the container toolkit is told */
        const struct facts_sampler *facts;
        struct host_imex *host; /* where IMEX is the host's; NULL: it is not asked */
        /* Where our daemon runs it; NULL: it does not. */
        void (*standing)(void *u, struct standing *ret);
        /* What the devices depend on; or what waiting claims may wait for. Never from inside a call of ours.
         */
        void (*changed)(void *u);
        void *u;
};

struct isolation *isolation_new(const struct isolation_options *o);
void isolation_free(struct isolation *i); /* after the claims; NULL is allowed */
struct fabric_watch *isolation_fabric(const struct isolation *i);
struct holdings *isolation_holdings(const struct isolation *i);
/* What `standing` says may have changed: `changed` follows, and not from inside. */
void isolation_standing(struct isolation *i);
/* The facts have changed. */
void isolation_facts(struct isolation *i);
/* Whether the devices are offered; `i` NULL: by the facts alone. False: IMEX or the fabric's
 * object are still being asked for, which takes a few seconds at most, and what an earlier process has
 * published stays: a restart must not offer for a moment what had to be withheld. */
bool isolation_judge(struct isolation *i, const struct facts *f, struct offering *ret);
