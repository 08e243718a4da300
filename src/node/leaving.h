/* SPDX-License-Identifier: Apache-2.0 */
/* leaving: a plugin has been asked to end. It stays while workloads' claims are prepared, but only if its
 * Node does not match the selector of its Pods any more: then no other plugin will come and unprepare them,
 * and their pods would stay Terminating. NVIDIA's driver manager does this: it changes the label first, and
 * evicts the workload afterwards (NVIDIA/k8s-driver-manager). In every other case, an upgrade for example,
 * the plugin ends at once. Loop thread only. */
#pragma once

#include <stdbool.h>

#include "base/loop.h"
#include "kube/event_recorder.h"
#include "kube/kube_client.h"
#include "node/checkpoint.h"
#include "node/node_selector.h"

struct leaving;

struct leaving_options {
        uv_loop_t *loop;
        struct kube_client *kube;
        struct event_recorder *events;
        const char *node, *driver;
        const char *own_device; /* device of the driver's own pods, which nobody waits for; NULL: none */
        const struct checkpoint *table;
        const struct node_selector *selector; /* borrowed, as all of this */
        void (*stays)(void *u);               /* once, when it is known that it stays */
        void (*ends)(void *u);                /* once, and nothing follows; it may free this */
        void *u;
};

/* Is a claim prepared that a workload uses? */
bool leaving_is_used(const struct checkpoint *table, const char *own_device);
/* When the API server does not say within LEAVING_ASK_MS how the Node is, the plugin ends. */
enum { LEAVING_ASK_MS = 10000 };
struct leaving *leaving_new(const struct leaving_options *o);
void leaving_claims(struct leaving *l); /* the table has changed; NULL is allowed */
void leaving_free(struct leaving *l);   /* NULL is allowed */
