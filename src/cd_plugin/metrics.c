/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/metrics.h"

#include "api/names.h"
#include "cd_plugin/devices.h"

static const double request_buckets[] = { 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8 };
static const double total_buckets[] = { 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 45 };
static const double inside_buckets[] = { 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 1 };

static const char *operation(bool prepare) {
        return prepare ? "prepare" : "unprepare";
}

void plugin_metrics_init(struct plugin_metrics *m, const char *node) {
        static const char *const by_operation[] = { "driver", "operation", NULL }, *const by_type[] = {
                "node", "driver", "device_type", NULL
        };
        static const char *const by_error[] = { "driver", "error_type", NULL }, *const by_reason[] = {
                "reason", NULL
        };
        static const char *const by_state[] = { "state", NULL }, *const by_host[] = { "status", "domain",
                                                                                      "version", NULL };
        struct metrics *r = metrics_new();
        *m = (struct plugin_metrics){
                .registry = r,
                .node = node,
                .requests = metric_add(r, METRIC_COUNTER, "nvidia_dra_requests_total",
                                       "Claims prepared or unprepared.", by_operation, NULL, 0),
                .duration = metric_add(r, METRIC_HISTOGRAM, "nvidia_dra_request_duration_seconds",
                                       "Time of the attempt that prepared or unprepared a claim, inside the "
                                       "node lock.",
                                       by_operation, request_buckets, ARRAY_LEN(request_buckets)),
                .inflight = metric_add(r, METRIC_GAUGE, "nvidia_dra_requests_inflight",
                                       "Attempts inside the node lock.", by_operation, NULL, 0),
                .prepared = metric_add(r, METRIC_GAUGE, "nvidia_dra_prepared_devices",
                                       "Devices of prepared claims.", by_type, NULL, 0),
                .prepare_errors =
                        metric_add(r, METRIC_COUNTER, "nvidia_dra_node_prepare_errors_total",
                                   "Attempts to prepare a claim that failed, or found that it has to wait.",
                                   by_error, NULL, 0),
                .unprepare_errors =
                        metric_add(r, METRIC_COUNTER, "nvidia_dra_node_unprepare_errors_total",
                                   "Attempts to unprepare a claim that failed.", by_error, NULL, 0),
                .offered =
                        metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_devices_offered",
                                   "1 while this node offers its devices to the scheduler.", NULL, NULL, 0),
                .not_offered =
                        metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_devices_withheld",
                                   "1 for the reason why this node offers no devices.", by_reason, NULL, 0),
                .inside = metric_add(
                        r, METRIC_HISTOGRAM, "nvidia_dra_prepare_inside_seconds",
                        "Time to prepare a claim without the read of the claim and without waiting.", NULL,
                        inside_buckets, ARRAY_LEN(inside_buckets)),
                .pending = metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_claims_pending",
                                      "Claims that the kubelet waits for.", by_operation, NULL, 0),
                .total = metric_add(r, METRIC_HISTOGRAM, "nvidia_dra_compute_domain_claim_seconds",
                                    "Time until a claim was prepared or unprepared, with all waiting.",
                                    by_operation, total_buckets, ARRAY_LEN(total_buckets)),
                .failures =
                        metric_add(r, METRIC_COUNTER, "nvidia_dra_compute_domain_claim_failures_total",
                                   "Claims that the kubelet was told could not be prepared or unprepared, "
                                   "or that it gave up.",
                                   by_operation, NULL, 0),
                .host_state = metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_host_imex_state",
                                         "1 for the state of the host's own nvidia-imex and its domain.",
                                         by_state, NULL, 0),
                .host_info =
                        metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_host_imex_info",
                                   "1 for what the host's own nvidia-imex says of itself and of its domain.",
                                   by_host, NULL, 0),
                .host_nodes = metric_add(
                        r, METRIC_GAUGE, "nvidia_dra_compute_domain_host_imex_nodes",
                        "Nodes of the domain of the host's own nvidia-imex: listed, and of those ready.",
                        by_state, NULL, 0),
        };
        /* All are there from the first scrape on. */
        for (int prepare = 0; prepare < 2; prepare++) {
                struct metric *errors = prepare ? m->prepare_errors : m->unprepare_errors;
                metric_touch(m->requests, LABELS(CD_DRIVER, operation(prepare)));
                metric_touch(m->duration, LABELS(CD_DRIVER, operation(prepare)));
                metric_touch(m->inflight, LABELS(CD_DRIVER, operation(prepare)));
                metric_touch(m->pending, LABELS(CD_DRIVER, operation(prepare)));
                metric_touch(m->total, LABELS(CD_DRIVER, operation(prepare)));
                metric_touch(m->failures, LABELS(CD_DRIVER, operation(prepare)));
                metric_touch(errors, LABELS(CD_DRIVER, "lock_acquire"));
                metric_touch(errors, LABELS(CD_DRIVER, prepare ? "prepare_devices" : "unprepare_devices"));
        }
        metric_touch(m->inside, NULL);
        metric_set(m->offered, 0, NULL);
}

void plugin_metrics_done(struct plugin_metrics *m) {
        metrics_free(m->registry);
        m->registry = NULL;
}

void plugin_metrics_attempt(struct plugin_metrics *m, bool prepare, int change) {
        metric_inc(m->inflight, change, LABELS(CD_DRIVER, operation(prepare)));
}

void plugin_metrics_succeeded(struct plugin_metrics *m, bool prepare, double attempt_s) {
        metric_inc(m->requests, 1, LABELS(CD_DRIVER, operation(prepare)));
        metric_observe(m->duration, attempt_s, LABELS(CD_DRIVER, operation(prepare)));
}

void plugin_metrics_pending(struct plugin_metrics *m, bool prepare, int change) {
        metric_inc(m->pending, change, LABELS(CD_DRIVER, operation(prepare)));
}

void plugin_metrics_answered(struct plugin_metrics *m, bool prepare, bool ok, double total_s,
                             double inside_s) {
        if (!ok) {
                metric_inc(m->failures, 1, LABELS(CD_DRIVER, operation(prepare)));
                return;
        }
        metric_observe(m->total, total_s, LABELS(CD_DRIVER, operation(prepare)));
        if (prepare)
                metric_observe(m->inside, inside_s, NULL);
}

void plugin_metrics_error(struct plugin_metrics *m, bool prepare, bool lock) {
        const char *type = lock ? "lock_acquire" : prepare ? "prepare_devices" : "unprepare_devices";
        metric_inc(prepare ? m->prepare_errors : m->unprepare_errors, 1, LABELS(CD_DRIVER, type));
}

void plugin_metrics_prepared(struct plugin_metrics *m, const struct checkpoint *table) {
        double channels = 0, daemons = 0;
        for (const struct checkpoint_claim *c = table->claims; c; c = c->hh.next) {
                for (size_t i = 0; i < c->n_devices && c->state == CHECKPOINT_COMPLETED; i++)
                        *(device_is_daemon(&c->devices[i]) ? &daemons : &channels) += 1;
        }
        metric_set(m->prepared, channels, LABELS(m->node, CD_DRIVER, "channel"));
        metric_set(m->prepared, daemons, LABELS(m->node, CD_DRIVER, "daemon"));
        metric_set(m->prepared, 0, LABELS(m->node, CD_DRIVER, "unknown"));
}

void plugin_metrics_offered(struct plugin_metrics *m, const char *reason) {
        static const char *const reasons[] = { "DriverNotAskedYet", "DriverNotFound", "DriverNotReady",
                                               "DriverTooOld",      "NoIMEXChannels", "FabricRegistering",
                                               "FabricError" };
        metric_set(m->offered, *reason ? 0 : 1, NULL);
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                metric_set(m->not_offered, streq(reason, reasons[i]) ? 1 : 0, LABELS(reasons[i]));
}

void plugin_metrics_host(struct plugin_metrics *m, const struct host_imex_status *s) {
        for (int i = 0; i < HOST_IMEX_STATES; i++)
                metric_set(m->host_state, (int)s->state == i, LABELS(host_imex_state_names[i]));
        metric_forget(m->host_info, LABELS(m->host.word, m->host.domain, m->host.version));
        metric_set(m->host_info, 1, LABELS(s->word, s->domain, s->version));
        metric_set(m->host_nodes, s->nodes, LABELS("listed"));
        metric_set(m->host_nodes, s->nodes_ready, LABELS("ready"));
        m->host = *s;
}
