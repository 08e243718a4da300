/* SPDX-License-Identifier: Apache-2.0 */
/* node_metrics: maintains the metrics that every DRA plugin on a node has: those that the Go driver also has,
 * and our own (docs/reference/metrics.md). */
#pragma once

#include "base/metrics.h"
#include "node/checkpoint.h"

/* The differences between drivers. */
struct node_metrics_options {
        const char *node, *driver;
        const char *const *types; /* types of its devices, the usual type first; NULL-terminated */
        /* The names of the metrics that the Go driver does not have. */
        const char *inside, *pending, *total, *failures;
};

struct node_metrics {
        struct metrics *registry;
        struct node_metrics_options o;
        struct metric *requests, *duration, *inflight, *prepared, *prepare_errors, *unprepare_errors;
        struct metric *inside, *pending, *total, *failures;
};

/* Creates the registry with these metrics, and returns it for those of the driver. The strings of the options
 * are borrowed. */
struct metrics *node_metrics_init(struct node_metrics *m, const struct node_metrics_options *o);
void node_metrics_done(struct node_metrics *m);

/* The Go driver's metrics count attempts, each of which takes the node lock. attempt_s includes the wait for
 * the lock, as there, and the driver's work. Each time that a waiting Prepare is judged with the lock counts
 * as one attempt. An attempt without success counts as an error. */
void node_metrics_attempt(struct node_metrics *m, bool prepare, int change);
void node_metrics_succeeded(struct node_metrics *m, bool prepare, double attempt_s);
/* Counts an error. `lock`: the node lock timed out; otherwise the devices could not be prepared or
 * unprepared. */
void node_metrics_error(struct node_metrics *m, bool prepare, bool lock);
/* Our metrics count requests of the kubelet and their answers. total_s includes all waiting; inside_s
 * excludes the waiting and the claim's GET request. */
void node_metrics_pending(struct node_metrics *m, bool prepare, int change);
void node_metrics_answered(struct node_metrics *m, bool prepare, bool ok, double total_s, double inside_s);
void node_metrics_prepared(struct node_metrics *m, const struct checkpoint *table);
