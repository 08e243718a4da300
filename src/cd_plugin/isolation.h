/* SPDX-License-Identifier: Apache-2.0 */
/* isolation: the work on a node for isolation by channel (assigned channels): it watches the node's
 * fabric object, reports the held channels, and lets the node offer devices only where a channel isolates. */
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
        struct own_pod *own_pod; /* borrowed, too */
        const char *cdi_root;
        struct driver_root root; /* of the NVIDIA driver */
        const char *host_root;   /* where the host's root is mounted; "": nowhere */
        bool trust_toolkit;      /* whatever the container toolkit's configuration is */
        const struct facts_sampler *facts;
        struct host_imex *host; /* host-managed; NULL: not queried */
        /* Driver-managed; otherwise NULL. */
        void (*standing)(void *u, struct standing *ret);
        /* The offering, or a state that waiting claims may wait for. Never from inside a call of this module.
         */
        void (*changed)(void *u);
        void *u;
};

struct isolation *isolation_new(const struct isolation_options *o);
void isolation_free(struct isolation *i); /* after the claims; NULL is allowed */
struct fabric_watch *isolation_fabric(const struct isolation *i);
struct holdings *isolation_holdings(const struct isolation *i);
/* The result of `standing` may have changed: `changed` follows, but not from inside. */
void isolation_standing(struct isolation *i);
/* The facts have changed. */
void isolation_facts(struct isolation *i);
/* Whether the devices are offered; `i` NULL: by the facts alone. False: IMEX or the fabric object is still
 * being queried, for a few seconds at most. Until then the devices that an earlier process published stay: a
 * restart must not briefly offer devices that were withheld. */
bool isolation_evaluate(struct isolation *i, const struct facts *f, struct offering *ret);
