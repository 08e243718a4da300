/* SPDX-License-Identifier: Apache-2.0 */
/* kube_client_priv: declares the functions of the client that only the informer uses. */
#pragma once

#include <sys/queue.h>

#include "base/http_client.h"
#include "kube/kube_client.h"

/* Starts a watch of the objects that `r` would list; r->query makes the request a watch. Makes one attempt,
 * without rate limit and time-out: the caller detects a silent watch and retries. Returns NULL and sets *e if
 * the watch cannot start. Cancel the watch with http_cancel(). */
struct http_call *kube_client__watch(struct kube_client *c, const struct kube_request *r, http_head_fn *head,
                                     http_data_fn *data, http_done_fn *done, struct err *e);

/* Counts in the metrics that a watch has begun (`status` is 200) or could not begin (`status` as in struct
 * http_response). */
void kube_client__watched(struct kube_client *c, const struct kube_resource *res, int status);
/* Call it when the server answered 401: the token file is read again before the next request. Returns false
 * if there is no token file. */
bool kube_client__refresh_token(struct kube_client *c);

/* For a component that waits in its back-off because no server answered. When a server answers any request,
 * the client calls fn while it processes that answer, so fn may only set a timer, with which the component
 * retries early. After such a call, fn is called again only when the component has waited a whole back-off,
 * because a server that answers other requests may continue to reject those of the component. */
struct kube__on_recovery {
        TAILQ_ENTRY(kube__on_recovery) entry;
        void (*fn)(struct kube__on_recovery *h);
        bool waits;
        bool called; /* fn was called, and the component has not waited a whole back-off since */
};
/* Reports a failure of the component. `away`: no server answered, so fn must be called when one does. */
void kube_client__on_recovery(struct kube_client *c, struct kube__on_recovery *h, bool away);
void kube_client__off_recovery(struct kube_client *c, struct kube__on_recovery *h);
/* Reports that the server answered a watch, because the client does not see the answers to watches. */
void kube_client__answered(struct kube_client *c);

/* Reports an error answer to a request that used `version`. If the answer means that the server does not
 * serve the version, the client uses the next version. */
void kube_client__unserved(struct kube_client *c, const struct kube_resource *res, const char *version,
                           const struct http_response *r);
