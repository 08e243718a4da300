/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: keeps counters, gauges and histograms, and renders them in the Prometheus text format. Loop thread
 * only.
 *
 * The program registers each family once, at start. A series is created on first use, and lives as long as
 * the registry, unless metric_forget() or metric_clear() removes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct metrics;
struct metric;

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* Registers a counter or a gauge. `labels` are at most 4 label names, NULL-terminated, or NULL. The name is
 * copied. All other strings must be static. */
struct metric *metric_add(struct metrics *m, enum metric_type t, const char *name, const char *help,
                          const char *const *labels);
/* Registers a histogram. `buckets` must be ascending and static. */
struct metric *metric_add_histogram(struct metrics *m, const char *name, const char *help,
                                    const char *const *labels, const double *buckets, size_t n_buckets);
/* `values` are the label values in the order of the label names, NULL-terminated; copied. metric_touch()
 * creates the series before its first event: a rate over a series that appears with its first event misses
 * that event. */
void metric_touch(struct metric *m, const char *const *values);
void metric_inc(struct metric *m, double by, const char *const *values);
void metric_set(struct metric *m, double to, const char *const *values);
void metric_observe(struct metric *m, double v, const char *const *values);
void metric_forget(struct metric *m, const char *const *values); /* removes the series */
void metric_clear(struct metric *m);                             /* removes all series */
#define LABELS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* Appends all families, and the families process_* (resident memory, CPU seconds, open descriptors, start
 * time). */
void metrics_render(const struct metrics *m, struct buf *out);
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
