/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: counters, gauges and histograms in the Prometheus text format. Loop thread only.
 *
 * A family is registered once, at start. Series are created on first use, and live as long as the
 * registry. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct metrics;
struct metric;

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* A counter or a gauge. `labels` are at most 4 label names, NULL-terminated, or NULL. The name is
 * copied. All other strings are static. */
struct metric *metric_add(struct metrics *m, enum metric_type t, const char *name, const char *help,
                          const char *const *labels);
/* `buckets` are ascending, and static. */
struct metric *metric_add_histogram(struct metrics *m, const char *name, const char *help,
                                    const char *const *labels, const double *buckets, size_t n_buckets);
/* `values` are the label values in the order of the names, NULL-terminated; copied. metric_touch() creates
 * the series with nothing counted yet: a rate over a series that appears late misses its first event. */
void metric_touch(struct metric *m, const char *const *values);
void metric_inc(struct metric *m, double by, const char *const *values);
void metric_set(struct metric *m, double to, const char *const *values);
void metric_observe(struct metric *m, double v, const char *const *values);
void metric_forget(struct metric *m, const char *const *values); /* removes the series */
void metric_clear(struct metric *m);                             /* removes all series */
#define LABELS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* Appends all families, and process_* (resident memory, CPU seconds, open descriptors, start time). */
void metrics_render(const struct metrics *m, struct buf *out);
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
