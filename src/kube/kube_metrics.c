/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_metrics.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/stderr.h"

static const double buckets[] = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30 };

const char *kube_verb_name(enum kube_verb verb) {
        static const char *const names[] = {
                [KUBE_GET] = "get",       [KUBE_LIST] = "list",         [KUBE_CREATE] = "create",
                [KUBE_APPLY] = "apply",   [KUBE_MERGE_PATCH] = "patch", [KUBE_UPDATE] = "update",
                [KUBE_DELETE] = "delete",
        };
        BUG_ON(verb >= ARRAY_LEN(names));
        return names[verb];
}

static const char *const lanes[] = {
        [KUBE_LANE_URGENT] = "urgent",
        [KUBE_LANE_READ] = "read",
        [KUBE_LANE_WRITE] = "write",
        [KUBE_LANE_BULK] = "bulk",
};

static struct metric *kube_metrics_add(const struct kube_client_options *o, enum metric_type type,
                                       const char *name, const char *help, const char *const *labels) {
        _cleanup_(freep) char *full = xasprintf("%s_%s", o->metrics_prefix, name);
        return type == METRIC_HISTOGRAM
                       ? metric_add_histogram(o->metrics, full, help, labels, buckets, ARRAY_LEN(buckets))
                       : metric_add(o->metrics, type, full, help, labels);
}

void kube_metrics_init(struct kube_metrics *m, const struct kube_client_options *o) {
        static const char *const by_code[] = { "verb", "resource", "code", NULL };
        static const char *const by_verb[] = { "verb", "resource", NULL }, *const by_lane[] = { "lane",
                                                                                                NULL };
        *m = (struct kube_metrics){
                .requests = kube_metrics_add(o, METRIC_COUNTER, "kube_requests_total",
                                             "Requests to the API server, one for each attempt. code is the "
                                             "HTTP status of the answer, or error without an answer. A "
                                             "subresource follows its resource (computedomains/status).",
                                             by_code),
                .seconds = kube_metrics_add(o, METRIC_HISTOGRAM, "kube_request_duration_seconds",
                                            "Time from sending a request until its answer, except watches.",
                                            by_verb),
                .waiting = kube_metrics_add(
                        o, METRIC_GAUGE, "kube_requests_waiting",
                        "Requests that wait for their turn, or for their next attempt, by lane: "
                        "urgent (Leases), read, write, bulk (writes of the controller).",
                        by_lane),
                .in_flight = kube_metrics_add(
                        o, METRIC_GAUGE, "kube_requests_in_flight",
                        "Requests that were sent and are not answered yet, except watches.", by_lane),
        };
}

/* The status is outside input: a series for each number that a server could invent would be many. */
static const char *code_of(int status, char text[static 8]) {
        if (status < 100 || status > 599)
                return "error";
        snprintf(text, 8, "%d", status);
        return text;
}

static void kube_metrics_count(struct kube_metrics *m, const char *verb, const char *resource, int status) {
        char code[8];
        metric_inc(m->requests, 1, LABELS(verb, resource, code_of(status, code)));
}

void kube_metrics_answered(struct kube_metrics *m, enum kube_verb verb, const struct kube_resource *res,
                           const char *subresource, int status, double seconds) {
        char text[64];
        const char *resource = res ? res->plural : "apis";
        if (!m->requests)
                return;
        if (subresource) {
                snprintf(text, sizeof text, "%s/%s", resource, subresource);
                resource = text;
        }
        kube_metrics_count(m, kube_verb_name(verb), resource, status);
        metric_observe(m->seconds, seconds, LABELS(kube_verb_name(verb), resource));
}

void kube_metrics_watched(struct kube_metrics *m, const struct kube_resource *res, int status) {
        if (m->requests)
                kube_metrics_count(m, "watch", res->plural, status);
}

void kube_metrics_lane(struct kube_metrics *m, enum kube_lane lane, unsigned waiting, unsigned in_flight) {
        metric_set(m->waiting, waiting, LABELS(lanes[lane]));
        metric_set(m->in_flight, in_flight, LABELS(lanes[lane]));
}
