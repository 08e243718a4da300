/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_metrics.h"

#include <string.h>

static const double request_buckets[] = { 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8 };
static const double total_buckets[] = { 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 45 };
static const double inside_buckets[] = { 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 1 };

static const char *operation(bool prepare) {
        return prepare ? "prepare" : "unprepare";
}

struct metrics *node_metrics_init(struct node_metrics *m, const struct node_metrics_options *o) {
        static const char *const by_operation[] = { "driver", "operation", NULL }, *const by_type[] = {
                "node", "driver", "device_type", NULL
        };
        static const char *const by_error[] = { "driver", "error_type", NULL };
        struct metrics *r = metrics_new();
        *m = (struct node_metrics){
                .registry = r,
                .o = *o,
                .requests = metric_add(r, METRIC_COUNTER, "nvidia_dra_requests_total",
                                       "Successful attempts to prepare or unprepare a claim.", by_operation),
                .duration =
                        metric_add_histogram(r, "nvidia_dra_request_duration_seconds",
                                             "Time of a successful attempt, with its wait for the node lock.",
                                             by_operation, request_buckets, ARRAY_LEN(request_buckets)),
                .inflight = metric_add(r, METRIC_GAUGE, "nvidia_dra_requests_inflight",
                                       "Attempts that run inside the node lock.", by_operation),
                .prepared = metric_add(r, METRIC_GAUGE, "nvidia_dra_prepared_devices",
                                       "Devices of prepared claims.", by_type),
                .prepare_errors =
                        metric_add(r, METRIC_COUNTER, "nvidia_dra_node_prepare_errors_total",
                                   "Failed attempts to prepare a claim. A claim that waits counts at each "
                                   "attempt, so do not alert on this metric alone.",
                                   by_error),
                .unprepare_errors = metric_add(r, METRIC_COUNTER, "nvidia_dra_node_unprepare_errors_total",
                                               "Failed attempts to unprepare a claim.", by_error),
                .inside = metric_add_histogram(
                        r, o->inside,
                        "Time to prepare a claim, without reading the claim and without waiting.", NULL,
                        inside_buckets, ARRAY_LEN(inside_buckets)),
                .pending = metric_add(r, METRIC_GAUGE, o->pending, "Claims for which the kubelet waits.",
                                      by_operation),
                .total = metric_add_histogram(
                        r, o->total, "Time until a claim was prepared or unprepared, including all waiting.",
                        by_operation, total_buckets, ARRAY_LEN(total_buckets)),
                .failures = metric_add(r, METRIC_COUNTER, o->failures,
                                       "Claims for which the plugin returned an error to the kubelet, or "
                                       "which the kubelet gave up.",
                                       by_operation),
        };
        /* All series exist from the first scrape on. */
        for (int prepare = 0; prepare < 2; prepare++) {
                struct metric *errors = prepare ? m->prepare_errors : m->unprepare_errors;
                metric_touch(m->requests, LABELS(m->o.driver, operation(prepare)));
                metric_touch(m->duration, LABELS(m->o.driver, operation(prepare)));
                metric_touch(m->inflight, LABELS(m->o.driver, operation(prepare)));
                metric_touch(m->pending, LABELS(m->o.driver, operation(prepare)));
                metric_touch(m->total, LABELS(m->o.driver, operation(prepare)));
                metric_touch(m->failures, LABELS(m->o.driver, operation(prepare)));
                metric_touch(errors, LABELS(m->o.driver, "lock_acquire"));
                metric_touch(errors, LABELS(m->o.driver, prepare ? "prepare_devices" : "unprepare_devices"));
        }
        metric_touch(m->inside, NULL);
        return r;
}

void node_metrics_done(struct node_metrics *m) {
        metrics_free(m->registry);
}

void node_metrics_attempt(struct node_metrics *m, bool prepare, int change) {
        metric_inc(m->inflight, change, LABELS(m->o.driver, operation(prepare)));
}

void node_metrics_succeeded(struct node_metrics *m, bool prepare, double attempt_s) {
        metric_inc(m->requests, 1, LABELS(m->o.driver, operation(prepare)));
        metric_observe(m->duration, attempt_s, LABELS(m->o.driver, operation(prepare)));
}

void node_metrics_pending(struct node_metrics *m, bool prepare, int change) {
        metric_inc(m->pending, change, LABELS(m->o.driver, operation(prepare)));
}

void node_metrics_answered(struct node_metrics *m, bool prepare, bool ok, double total_s, double inside_s) {
        if (!ok) {
                metric_inc(m->failures, 1, LABELS(m->o.driver, operation(prepare)));
                return;
        }
        metric_observe(m->total, total_s, LABELS(m->o.driver, operation(prepare)));
        if (prepare)
                metric_observe(m->inside, inside_s, NULL);
}

void node_metrics_error(struct node_metrics *m, bool prepare, bool lock) {
        const char *type = lock ? "lock_acquire" : prepare ? "prepare_devices" : "unprepare_devices";
        metric_inc(prepare ? m->prepare_errors : m->unprepare_errors, 1, LABELS(m->o.driver, type));
}

void node_metrics_prepared(struct node_metrics *m, const struct checkpoint *table) {
        for (const char *const *type = m->o.types; *type; type++) {
                double n = 0;
                CHECKPOINT_EACH_DEVICE (table, c, d)
                        n += streq(str_or(d->type, m->o.types[0]), *type);
                metric_set(m->prepared, n, LABELS(m->o.node, m->o.driver, *type));
        }
        metric_set(m->prepared, 0, LABELS(m->o.node, m->o.driver, "unknown"));
}
