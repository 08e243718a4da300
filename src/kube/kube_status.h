/* SPDX-License-Identifier: Apache-2.0 */
/* kube_status: reads the object Status, with which Kubernetes reports failures. Pure. kube_error.h describes
 * what the kinds of errors mean; it adds what depends on the request. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"

/* The HTTP status with which the API server refuses an eviction that a PodDisruptionBudget does not allow
 * now. */
enum { KUBE_STATUS_TOO_MANY_REQUESTS = 429 };

/* Returns whether the document is a Status of Kubernetes. `root` may be NULL. */
bool kube_status_is(yyjson_val *root);
/* Returns the kind of error of a Status with this HTTP status. For 404 it is ERR_RETRY, because only the
 * request shows which object is missing. */
enum err_kind kube_status_kind(yyjson_val *status, int code);
/* Returns whether an answer with this HTTP status and body means that the API server does not serve the
 * version of the API group: a 404 of the API server itself that is not about an object, and not a load
 * balancer's page. */
bool kube_status_unserved(int code, struct str body);
