/* SPDX-License-Identifier: Apache-2.0 */
/* kube_error: classifies the answers of the API server. Only this module returns ERR_NOT_FOUND, ERR_GONE,
 * ERR_CONFLICT, ERR_DENIED and ERR_INVALID for such answers.
 *
 * Only Kubernetes itself can report the state of an object, and it uses a Status for this (kind Status,
 * apiVersion v1). Other answers can come from a load balancer, a proxy, or the API server's mux, which
 * answers "404 page not found" for a version that is not served. So an answer without a Status, or a success
 * with other content than requested, proves nothing about the object: ERR_RETRY with a code below 0 (minus
 * the HTTP status), which kube_unreachable() recognises.
 *
 * - NOT_FOUND: a Status with reason NotFound whose details name the requested object: its name, its resource
 *   and its group; or, for a request that may create an object, the namespace for it. If the request has a
 *   subresource, the subresource itself may be missing (the API server then names the object, too). Then the
 *   error is ERR_CONFLICT, and the caller must read the object again.
 * - GONE: a Status with reason Expired or Gone.
 * - CONFLICT: a Status with reason Conflict or AlreadyExists.
 * - DENIED: a Status with reason Forbidden or Unauthorized.
 * - INVALID: the other 4xx answers for which a retry does not help.
 * - RETRY: everything else.
 *
 * Admission webhooks write their own Status and may omit the reason. Then the HTTP status decides, but never
 * for NOT_FOUND or GONE. */
#pragma once

#include <yyjson.h>

#include "base/http_client.h"
#include "kube/kube_client.h"

/* Reads the answer to a request for an object or a list. Returns 0 and the document, or -1 and the error.
 * *ret_wait_s is the time in seconds that the server asks to wait, or -1 if it does not ask. For an answer
 * that is not from an API server, *ret_wait_s is at most ten seconds. */
int kube_answer(const struct http_response *r, const struct kube_request *asked, yyjson_doc **ret,
                struct err *e, int *ret_wait_s);

/* Sets *e for a watch that ended with a status other than 2xx. */
void kube_error_watch(const struct http_response *r, const struct kube_resource *res, struct err *e,
                      int *ret_wait_s);
/* Sets *e for a watch whose 2xx answer is not a stream of events. */
void kube_error_page(struct err *e, const char *content_type);
/* Sets *e from the object in an ERROR event of a watch. */
void kube_error_event(yyjson_val *object, struct err *e, int *ret_wait_s);

/* Returns whether the answer means that the API server does not serve the version of the API group, or no
 * longer serves it: a 404 of the API server itself that is not about an object, and not a load balancer's
 * page. */
bool kube_error_unserved(const struct http_response *r);

/* Returns whether the answer exceeded our size limit (ERR_INVALID). */
bool kube_error_too_large(const struct err *e);

/* Returns the milliseconds to wait if the back-off is `ms` and the server asks for wait_s seconds: at least
 * the time that the server asks for, with jitter, but at most a minute, because maintenance pages ask for an
 * hour. */
uint64_t kube_wait_ms(uint64_t ms, int wait_s);
