/* SPDX-License-Identifier: Apache-2.0 */
/* kube_error: what an answer means. Only this module returns ERR_NOT_FOUND, ERR_GONE, ERR_CONFLICT,
 * ERR_DENIED and ERR_INVALID for answers of the API server.
 *
 * Only Kubernetes itself can report the state of an object, and it does so in a Status (kind Status,
 * apiVersion v1). Load balancers, proxies and a mux that answers "404 page not found" for a version that is
 * not served are between us and it. So an answer without a Status, or a success with other content than
 * requested, is a failure on the way: ERR_RETRY with a code below 0 (minus the HTTP status), which
 * kube_unreachable() recognises.
 *
 * - NOT_FOUND: a Status with reason NotFound whose details name the requested object: its name, its resource
 *   and its group; or, for a request that may create an object, the namespace for it. With a subresource, the
 *   subresource itself may be missing (the API server then names the object, too): ERR_CONFLICT, look again.
 * - GONE: a Status with reason Expired or Gone. CONFLICT: Conflict or AlreadyExists. DENIED: Forbidden or
 *   Unauthorized. INVALID: the other 4xx that no retry changes. Admission webhooks write their own
 *   Status and may leave the reason out: then its HTTP status counts, but never as NOT_FOUND or GONE.
 * - Everything else is RETRY. */
#pragma once

#include <yyjson.h>

#include "base/http_client.h"
#include "kube/kube_client.h"

/* Reads the answer to a request for an object or a list: 0 and its document, or -1 and the error. *ret_wait_s
 * is the time that the server asks to wait, -1 if it does not. Of an answer that is not from an API server at
 * most ten seconds count. */
int kube_answer(const struct http_response *r, const struct kube_request *asked, yyjson_doc **ret,
                struct err *e, int *ret_wait_s);

/* Sets *e for a watch that ended with a status other than 2xx. */
void kube_error_watch(const struct http_response *r, const struct kube_resource *res, struct err *e,
                      int *ret_wait_s);
/* Sets *e for a watch whose 2xx answer is not a stream of events. */
void kube_error_page(struct err *e, const char *content_type);
/* Sets *e from the object in an ERROR event of a watch. */
void kube_error_event(yyjson_val *object, struct err *e, int *ret_wait_s);

/* Whether the API server does not serve the version of the API group, or no longer: its own 404 that is not
 * about an object, and no page of a load balancer. */
bool kube_error_unserved(const struct http_response *r);

/* The answer exceeds our limit (ERR_INVALID). */
bool kube_error_too_large(const struct err *e);

/* Milliseconds to wait when the back-off is `ms` and the server asks for wait_s: never less than it asks for,
 * spread by jitter, and at most a minute, because maintenance pages ask for an hour. */
uint64_t kube_wait_ms(uint64_t ms, int wait_s);
