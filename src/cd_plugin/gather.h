/* SPDX-License-Identifier: Apache-2.0 */
/* gather: what a Prepare must know beside its claim: which ComputeDomains there are. Asked for beside the
 * claim, for as long as the kubelet waits, and anew when there is doubt. For node_driver. */
#pragma once

#include "cd_plugin/state.h"

/* op->own, from gather_fetch() to gather_release(). */
struct gathered {
        struct lookup *lookup;
        struct lookup_list *domains;
        bool all;   /* what was asked for last: the domains of all namespaces, */
        bool fresh; /* and not of the API server's cache */
        struct lookup_watch *watch;
        bool noting;               /* until grants_get() says how it went */
        struct fabric_ask *fabric; /* NULL: no channel is assigned */
};

void gather_fetch(void *u, struct op *op);
void gather_start(void *u, struct op *op);
void gather_release(void *u, struct op *op);
void gather_look_closer(void *u, struct op *op);
/* What grants_get() says may have changed. */
void gather_noted(struct op *op);
/* Asks anew when the watch does not show what a list has shown. */
void gather_doubt(struct op *op);
