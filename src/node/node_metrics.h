/* SPDX-License-Identifier: Apache-2.0 */
/* node_metrics: the metrics that every DRA plugin on a node has: the Go driver's, and our own
 * (docs/reference/metrics.md). */
#pragma once

#include "base/metrics.h"
#include "node/checkpoint.h"

/* What differs from driver to driver. */
struct node_metrics_options {
        const char *node, *driver;
        const char *const *types; /* of its devices, the usual one first; NULL-terminated */
        /* Names of our metrics. */
        const char *inside, *pending, *total, *failures;
};

struct node_metrics {
        const struct node_metrics_options *o;
        struct metric *requests, *duration, *inflight, *prepared, *prepare_errors, *unprepare_errors;
        struct metric *inside, *pending, *total, *failures;
};

/* The options are borrowed. */
void node_metrics_init(struct node_metrics *m, struct metrics *registry,
                       const struct node_metrics_options *o);

/* The Go driver's metrics count attempts, each of which holds the node lock. A Prepare that waits is one
 * attempt each time that it is judged with the lock; an attempt without success is an error. */
void node_metrics_attempt(struct node_metrics *m, bool prepare, int change);
void node_metrics_succeeded(struct node_metrics *m, bool prepare, double attempt_s);
/* lock: the node lock timed out; otherwise the devices could not be prepared or unprepared. */
void node_metrics_error(struct node_metrics *m, bool prepare, bool lock);
/* Our metrics count requests of the kubelet and their answers: total_s includes all waiting, inside_s
 * excludes it and the claim's GET. */
void node_metrics_pending(struct node_metrics *m, bool prepare, int change);
void node_metrics_answered(struct node_metrics *m, bool prepare, bool ok, double total_s, double inside_s);
void node_metrics_prepared(struct node_metrics *m, const struct checkpoint *table);
