/* SPDX-License-Identifier: Apache-2.0 */
/* kube_client_priv: functions of the client for the informer. */
#pragma once

#include <sys/queue.h>

#include "base/http_client.h"
#include "kube/kube_client.h"

/* Starts a watch of the objects that `r` would list; `query` of `r` makes it a watch. One attempt, no rate
 * limit, no time-out: the caller judges silence and retries. NULL and *e when it cannot start. Cancel with
 * http_cancel(). */
struct http_call *kube_client__watch(struct kube_client *c, const struct kube_request *r, http_head_fn *head,
                                     http_data_fn *data, http_done_fn *done, struct err *e);

/* For the metrics: a watch has begun, or could not. `status` is 200, or as in struct http_response. */
void kube_client__watched(struct kube_client *c, const struct kube_resource *res, int status);
/* The server answered 401: reads the token file again before the next request. False: there is none. */
bool kube_client__refresh_token(struct kube_client *c);

/* For a component that waits in its back-off because no server answered. When a server answers any request,
 * fn is called from inside that answer, so it may only set a timer, which lets the component retry early. It
 * is called once for each back-off that the component has waited to the end: a server that answers others may
 * continue to reject it. */
struct kube__on_recovery {
        TAILQ_ENTRY(kube__on_recovery) entry;
        void (*fn)(struct kube__on_recovery *h);
        bool waits;
        bool called; /* and has not waited a back-off to the end since */
};
/* Reports a failure of the component. away: no server answered, so it must be called. */
void kube_client__on_recovery(struct kube_client *c, struct kube__on_recovery *h, bool away);
void kube_client__off_recovery(struct kube_client *c, struct kube__on_recovery *h);
/* The server answered. For answers that the client does not see: those of watches. */
void kube_client__answered(struct kube_client *c);

/* The answer to a request that used `version` is an error. If the server does not serve the version, the next
 * one is used. */
void kube_client__unserved(struct kube_client *c, const struct kube_resource *res, const char *version,
                           const struct http_response *r);
