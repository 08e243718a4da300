/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: the series that any DRA plugin on a node has (reference section 5.7, and our own). */
#pragma once

#include "base/metrics.h"
#include "node/checkpoint.h"

/* What differs from driver to driver. */
struct node_metrics_options {
        const char *node, *driver;
        const char *const *types; /* of its devices, the usual one first; NULL-terminated */
        /* Names of series of our own. */
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

/* The Go driver's series count attempts, as it makes them: what happens while the node lock is held. A
 * Prepare that waits is an attempt each time that it is looked at with the lock, and each that does not
 * succeed an error. */
void node_metrics_attempt(struct node_metrics *m, bool prepare, int change);
void node_metrics_succeeded(struct node_metrics *m, bool prepare, double attempt_s);
/* lock: the node lock could not be had; otherwise the devices could not be prepared or unprepared. */
void node_metrics_error(struct node_metrics *m, bool prepare, bool lock);
/* Ours count what the kubelet asks for and when it is answered: total_s with all waiting, inside_s without it
 * and without the claim's GET. */
void node_metrics_pending(struct node_metrics *m, bool prepare, int change);
void node_metrics_answered(struct node_metrics *m, bool prepare, bool ok, double total_s, double inside_s);
void node_metrics_prepared(struct node_metrics *m, const struct checkpoint *table);
