/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: the metrics of this plugin: the common ones of src/node, and those of ComputeDomains. */
#pragma once

#include "cd_plugin/host_status.h"
#include "node/metrics.h"
#include "nvidia/toolkit.h"

struct plugin_metrics {
        struct metrics *registry;
        struct node_metrics_options options;
        struct node_metrics node;
        struct metric *offered, *not_offered, *host_state, *host_info, *host_nodes;
        struct metric *toolkit;       /* NULL: channels are not assigned, so the toolkit is not watched */
        struct host_imex_status host; /* the state in the series of host_info */
};

/* m must not move. */
void plugin_metrics_init(struct plugin_metrics *m, const char *node);
void plugin_metrics_done(struct plugin_metrics *m);
/* Adds the metrics for isolation by channel. */
void plugin_metrics_own_channels(struct plugin_metrics *m);

/* reason "": devices are offered. */
void plugin_metrics_offered(struct plugin_metrics *m, const char *reason);
void plugin_metrics_toolkit(struct plugin_metrics *m, enum toolkit_answer answer);
void plugin_metrics_host(struct plugin_metrics *m, const struct host_imex_status *s);
