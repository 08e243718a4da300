/* SPDX-License-Identifier: Apache-2.0 */
/* kube_error: what an answer means. The one place that says ERR_NOT_FOUND, ERR_GONE, ERR_CONFLICT, ERR_DENIED
 * and ERR_INVALID of the API server's answers.
 *
 * Only Kubernetes itself can say something about an object, and it says it in a Status (kind Status,
 * apiVersion v1). Between us and it are load balancers, proxies and a mux that answers "404 page not found"
 * for a version that is not served. So an answer without a Status, or a success that is not what was asked
 * for, is a failure on the way: ERR_RETRY with a code below 0 (minus the HTTP status), which kube_away()
 * knows.
 *
 * - NOT_FOUND: a Status with reason NotFound whose details name the object asked for: its name, its resource
 * and its group; or, for what may create, the namespace that it was to be created in. With a subresource it
 * may as well be that one which is missing (the API server names the object then too): ERR_CONFLICT, look
 * again.
 * - GONE: a Status with reason Expired or Gone. CONFLICT: Conflict or AlreadyExists. DENIED: Forbidden or
 *   Unauthorized. INVALID: the other 4xx that no repetition changes. Admission webhooks write their own
 * Status and may leave the reason out: then its HTTP status says it, but never NOT_FOUND or GONE.
 * - Everything else is RETRY. */
#pragma once

#include <yyjson.h>

#include "base/http_client.h"
#include "kube/kube_client.h"

/* Reads the answer to what was asked for (of an object or a list; res NULL: of the versions of the API group
 * that `name` is): 0 and its document, or -1 and what it means. *ret_wait_s is the time the server
 * asks to wait, -1 when it does not; what only stands in its place is believed for ten seconds at most. */
int kube_answer(const struct http_response *r, const struct kube_request *asked, yyjson_doc **ret,
                struct err *e, int *ret_wait_s);

/* *e of a watch that ended otherwise than with a 2xx. */
void kube_error_watch(const struct http_response *r, const struct kube_resource *res, struct err *e,
                      int *ret_wait_s);
/* *e of a watch that was answered with a 2xx and something else than events. */
void kube_error_page(struct err *e, const char *content_type);
/* *e of the object in an ERROR event of a watch. */
void kube_error_event(yyjson_val *object, struct err *e, int *ret_wait_s);

/* Whether the answer may mean that the version of the API group is not served (any more): a 404 that is not
 * about an object. */
bool kube_error_unserved(const struct err *e);

/* The answer is larger than we take (ERR_INVALID). */
bool kube_error_too_large(const struct err *e);

/* Milliseconds to wait when the back-off says `ms` and the server asks for wait_s: never earlier than it
 * asks, not all at the same moment, and at most a minute: maintenance pages ask for an hour. */
uint64_t kube_wait_ms(uint64_t ms, int wait_s);
