/* SPDX-License-Identifier: Apache-2.0 */
/* kube_metrics: records the results and durations of a program's requests to the API server as metrics. Loop
 * thread only. */
#pragma once

#include "base/metrics.h"
#include "kube/kube_client.h"

struct kube_metrics {
        struct metric *requests, *seconds, *waiting, *in_flight;
};

/* Returns the value of the label "verb", as in "patch". Logs use it, too. */
const char *kube_verb_name(enum kube_verb verb);
/* Registers the families in o->metrics, which must outlive *m. */
void kube_metrics_init(struct kube_metrics *m, const struct kube_client_options *o);
/* Records the end of an attempt. `status` is the HTTP status, or 0 if there was no answer. */
void kube_metrics_answered(struct kube_metrics *m, enum kube_verb verb, const struct kube_resource *res,
                           const char *subresource, int status, double seconds);
/* Records that a watch has begun (`status` is 200) or could not begin. There is no duration, because the
 * duration of a watch is not a latency. */
void kube_metrics_watched(struct kube_metrics *m, const struct kube_resource *res, int status);
void kube_metrics_lane(struct kube_metrics *m, enum kube_lane lane, unsigned waiting, unsigned in_flight);
