/* metrics: the series of the kubelet plugin (reference section 5.7, and three of our own). */
#ifndef PLUGIN_METRICS_H
#define PLUGIN_METRICS_H

#include "base/metrics.h"
#include "plugin/checkpoint.h"
#include "plugin/host_status.h"

struct plugin_metrics {
        struct metrics *registry;
        const char *node;
        struct metric *requests, *duration, *inflight, *prepared, *prepare_errors, *unprepare_errors;
        struct metric *offered, *not_offered, *inside;
        struct metric *host_state, *host_info, *host_nodes;
        struct host_imex_status host; /* of which host_info has a series */
};

void plugin_metrics_init(struct plugin_metrics *m, const char *node);
void plugin_metrics_done(struct plugin_metrics *m);

void plugin_metrics_begin(struct plugin_metrics *m, bool prepare);
/* ok: counted with its whole time; inside_s is that time without the claim's GET and without waiting. */
void plugin_metrics_end(struct plugin_metrics *m, bool prepare, bool ok, double total_s, double inside_s);
/* lock: the node lock could not be had; otherwise the devices could not be prepared or unprepared. */
void plugin_metrics_error(struct plugin_metrics *m, bool prepare, bool lock);
void plugin_metrics_prepared(struct plugin_metrics *m, const struct checkpoint *table);
/* reason "": devices are offered. */
void plugin_metrics_offered(struct plugin_metrics *m, const char *reason);
void plugin_metrics_host(struct plugin_metrics *m, const struct host_imex_status *s);

#endif
