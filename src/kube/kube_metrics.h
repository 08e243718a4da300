/* SPDX-License-Identifier: Apache-2.0 */
/* kube_metrics: metrics of a program's requests to the API server: their results and durations. Loop thread
 * only. */
#pragma once

#include "base/metrics.h"
#include "kube/kube_client.h"

struct kube_metrics {
        struct metric *requests, *seconds, *waiting, *in_flight;
};

/* Registers the families in o->metrics, which must outlive *m. */
void kube_metrics_init(struct kube_metrics *m, const struct kube_client_options *o);
/* An attempt got an answer, or none: `status` is the HTTP status, 0 when there was none. `res` NULL: a query
 * for the versions that the server offers. */
void kube_metrics_answered(struct kube_metrics *m, enum kube_verb verb, const struct kube_resource *res,
                           const char *subresource, int status, double seconds);
/* A watch has begun (200), or could not. The duration of a watch is not a latency: the side that ends it
 * decides it. */
void kube_metrics_watched(struct kube_metrics *m, const struct kube_resource *res, int status);
void kube_metrics_lane(struct kube_metrics *m, enum kube_lane lane, unsigned waiting, unsigned in_flight);
