/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: the series of the kubelet plugin (reference section 5.7, and our own). */
#ifndef CD_PLUGIN_METRICS_H
#define CD_PLUGIN_METRICS_H

#include "base/metrics.h"
#include "node/checkpoint.h"
#include "cd_plugin/host_status.h"

struct plugin_metrics {
        struct metrics *registry;
        const char *node;
        struct metric *requests, *duration, *inflight, *prepared, *prepare_errors, *unprepare_errors;
        struct metric *offered, *not_offered, *inside, *pending, *total, *failures;
        struct metric *host_state, *host_info, *host_nodes;
        struct host_imex_status host; /* of which host_info has a series */
};

void plugin_metrics_init(struct plugin_metrics *m, const char *node);
void plugin_metrics_done(struct plugin_metrics *m);

/* The Go driver's series count attempts, as it makes them: what happens while the node lock is held. A
 * Prepare that waits is an attempt each time that it is looked at with the lock, and each that does not
 * succeed an error. */
void plugin_metrics_attempt(struct plugin_metrics *m, bool prepare, int change);
void plugin_metrics_succeeded(struct plugin_metrics *m, bool prepare, double attempt_s);
/* lock: the node lock could not be had; otherwise the devices could not be prepared or unprepared. */
void plugin_metrics_error(struct plugin_metrics *m, bool prepare, bool lock);
/* Ours count what the kubelet asks for and when it is answered: total_s with all waiting, inside_s without it
 * and without the claim's GET. */
void plugin_metrics_pending(struct plugin_metrics *m, bool prepare, int change);
void plugin_metrics_answered(struct plugin_metrics *m, bool prepare, bool ok, double total_s,
                             double inside_s);
void plugin_metrics_prepared(struct plugin_metrics *m, const struct checkpoint *table);
/* reason "": devices are offered. */
void plugin_metrics_offered(struct plugin_metrics *m, const char *reason);
void plugin_metrics_host(struct plugin_metrics *m, const struct host_imex_status *s);

#endif
