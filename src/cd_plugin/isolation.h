/* SPDX-License-Identifier: Apache-2.0 */
/* isolation: runs isolation by channel (assigned channels) on a node. It watches the node's fabric object,
 * reports the held channels, and makes the node offer devices only if its channels isolate ComputeDomains. */
#pragma once

#include "cd_plugin/fabric_watch.h"
#include "cd_plugin/holdings.h"
#include "cd_plugin/host_imex.h"
#include "cd_plugin/cd_metrics.h"
#include "cd_plugin/standing.h"
#include "cd_plugin/toolkit_watch.h"
#include "cd_plugin/withhold.h"
#include "kube/event_recorder.h"

struct isolation;

struct isolation_options { /* the strings are borrowed until isolation_free() */
        uv_loop_t *loop;
        struct kube_client *kube;
        struct event_recorder *events;
        struct cd_metrics *metrics;
        const char *node;
        struct own_pod *own_pod; /* borrowed until isolation_free() */
        const char *cdi_root;
        struct driver_root root; /* of the NVIDIA driver */
        const char *host_root;   /* where the host's root is mounted; "": nowhere */
        bool trust_toolkit;      /* offer devices regardless of the container toolkit's configuration */
        const struct facts_sampler *facts;
        struct host_imex *host; /* in the host-managed mode; NULL: not queried */
        /* Returns the state of the standing domain in the driver-managed mode; otherwise NULL. */
        void (*standing)(void *u, struct standing *ret);
        /* Called when the offering has changed, or a state that waiting claims may depend on; never from
         * inside a function of this module. */
        void (*changed)(void *u);
        void *u;
};

struct isolation *isolation_new(const struct isolation_options *o);
void isolation_free(struct isolation *i); /* only after claims_free(); NULL is allowed */
struct fabric_watch *isolation_fabric(const struct isolation *i);
struct holdings *isolation_holdings(const struct isolation *i);
/* Handles a possible change of the result of `standing`: schedules a call of `changed`, which is never made
 * from inside this call. */
void isolation_standing(struct isolation *i);
/* Handles a change of the facts. */
void isolation_facts(struct isolation *i);
/* Determines whether the devices are offered; `i` NULL: from the facts alone. Returns false while IMEX or the
 * fabric object is still being queried, for a few seconds at most. Until then the caller keeps the devices
 * that an earlier process published, because a restart must not briefly offer devices that were withheld. */
bool isolation_evaluate(struct isolation *i, const struct facts *f, struct offering *ret);
