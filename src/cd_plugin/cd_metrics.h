/* SPDX-License-Identifier: Apache-2.0 */
/* cd_metrics: maintains the metrics of this plugin: those that all plugins have (node/node_metrics.h), and
 * those of ComputeDomains. */
#pragma once

#include "cd_plugin/host_status.h"
#include "node/node_metrics.h"
#include "nvidia/toolkit.h"

struct cd_metrics {
        struct node_metrics node;
        struct metric *offered, *not_offered, *host_state, *host_info, *host_nodes;
        struct metric *toolkit;       /* NULL: channels are not assigned, so the toolkit is not watched */
        struct host_imex_status host; /* the state that host_info shows */
};

/* Registers all metrics, until node_metrics_done(). */
void cd_metrics_init(struct cd_metrics *m, const char *node);
/* Adds the metrics for isolation by channel. */
void cd_metrics_own_channels(struct cd_metrics *m);

/* Records whether devices are offered. `reason` is "" if they are; otherwise it states why not. */
void cd_metrics_offered(struct cd_metrics *m, const char *reason);
void cd_metrics_toolkit(struct cd_metrics *m, enum toolkit_answer answer);
void cd_metrics_host(struct cd_metrics *m, const struct host_imex_status *s);
