/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_shutdown: decides when a plugin that has been asked to end really ends. The plugin stays while
 * claims of workloads are prepared, but only if its Node no longer matches the selector of its Pods. In that
 * case no other plugin will start there to unprepare the claims, and their pods would stay Terminating.
 * NVIDIA's driver manager causes this: it changes the label first, and evicts the workload afterwards
 * (NVIDIA/k8s-driver-manager). In every other case, such as an upgrade, the plugin ends at once. Loop thread
 * only. */
#pragma once

#include <stdbool.h>

#include "api/node_selector.h"
#include "base/loop.h"
#include "kube/event_recorder.h"
#include "kube/kube_client.h"
#include "node/checkpoint.h"

struct plugin_shutdown;

struct plugin_shutdown_options {
        uv_loop_t *loop;
        struct kube_client *kube;
        struct event_recorder *events;
        const char *node, *driver;
        const char *own_device; /* name of the device of the driver's own pods, for which the plugin does not
                                   wait; NULL: none */
        const struct checkpoint *table;
        const struct node_selector *selector; /* borrowed, like all pointers here */
        void (*stays)(void *u);               /* called once, if the plugin stays */
        void (*ends)(void *u);                /* called once, as the last call, when the plugin is to end; may
                                                 free this module's state */
        void *u;
};

/* Returns whether a claim that a workload uses is prepared. */
bool plugin_shutdown_is_used(const struct checkpoint *table, const char *own_device);
/* The plugin ends if the API server does not answer within PLUGIN_SHUTDOWN_ASK_MS. */
enum { PLUGIN_SHUTDOWN_ASK_MS = 10000 };
struct plugin_shutdown *plugin_shutdown_new(const struct plugin_shutdown_options *o);
void plugin_shutdown_claims(struct plugin_shutdown *l); /* the table has changed; NULL is allowed */
void plugin_shutdown_free(struct plugin_shutdown *l);   /* NULL is allowed */
