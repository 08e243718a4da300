/* SPDX-License-Identifier: Apache-2.0 */
/* kube_client_priv: what the informer needs of the client beyond its public face. */
#pragma once

#include <sys/queue.h>

#include "base/http_client.h"
#include "kube/kube_client.h"

/* A watch stream of what `r` would list, whose `query` makes it one. One attempt, no rate limit, no time-out:
 * the caller judges silence and retries. NULL and *e when it cannot begin. Cancel with http_cancel(). */
struct http_call *kube_client__watch(struct kube_client *c, const struct kube_request *r, http_head_fn *head,
                                     http_data_fn *data, http_done_fn *done, struct err *e);

/* A watch has begun, or could not: for the metrics. `status` 200, or as in struct http_response. */
void kube_client__watched(struct kube_client *c, const struct kube_resource *res, int status);
/* The server said 401: the token file is read again before the next request. False: there is none. */
bool kube_client__refresh_token(struct kube_client *c);

/* Somebody who waits out his back-off because the server was away, and would rather come at once when it is
 * back. The first answer to anybody calls them all, from inside that answer: fn only sets a timer. Once for
 * each time that he waited his back-off out: what answers others may go on refusing him. */
struct kube__on_recovery {
        TAILQ_ENTRY(kube__on_recovery) entry;
        void (*fn)(struct kube__on_recovery *h);
        bool waits;
        bool called; /* and has not waited his time out since */
};
/* He has failed; away: because no server answered, so that he wants to be called. */
void kube_client__on_recovery(struct kube_client *c, struct kube__on_recovery *h, bool away);
void kube_client__off_recovery(struct kube_client *c, struct kube__on_recovery *h);
/* The server answered; for answers that the client does not see, those of watches. */
void kube_client__answered(struct kube_client *c);

/* A watch was answered with this error: it may say that the version is not served. */
void kube_client__doubt(struct kube_client *c, const struct kube_resource *res, const struct err *e);
