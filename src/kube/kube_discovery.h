/* SPDX-License-Identifier: Apache-2.0 */
/* kube_discovery: which version of an API group the server serves.
 *
 * For resources without a fixed version: the server is asked for their group (GET /apis/GROUP). All resources
 * of the group then use the first version of the resource's own list that the server offers. When an answer
 * shows that a version is not served (kube_error_unserved), the group is queried again, at most once a
 * second, and the old version stays in use until the answer. Only an APIGroup object counts as an answer;
 * after anything else the query is retried forever, with the client's back-off. While no version is in use,
 * the same holds if the group is refused or offers no version that we support. Otherwise nothing is
 * polled. */
#pragma once

#include <uv.h>
#include <yyjson.h>

#include "kube/kube_resource.h"

struct kube_discovery;
struct kube_discovery_group;

/* Requests GET /apis/<name>, `ms` from now, and again while it fails. Reports to `g`, never from inside this
 * call: each failure by kube_discovery_refused(), the end by kube_discovery_answered(). */
typedef void(kube_discovery_question_fn)(void *u, const char *name, unsigned ms,
                                         struct kube_discovery_group *g);

struct kube_discovery *kube_discovery_new(uv_loop_t *loop, kube_discovery_question_fn *put, void *u);
/* Drops all queries. Nothing is called back. */
void kube_discovery_free(struct kube_discovery *d);

/* A kube_retry_fn: an attempt failed, and another one will follow. */
void kube_discovery_refused(void *group, const struct err *e);
/* A kube_done_fn: the query has ended. `obj` is the APIGroup, or *e is the reason why there is none. */
void kube_discovery_answered(void *group, yyjson_val *obj, const struct err *e);

/* The version that requests for this resource use; NULL while it is not known. */
const char *kube_discovery_version(const struct kube_discovery *d, const struct kube_resource *res);
/* Queries the group, unless the version is known, and calls fn in a later turn: see kube_client.h. */
void kube_discovery_ask(struct kube_discovery *d, const struct kube_resource *res, kube_ready_fn *fn,
                        void *u);
void kube_discovery_unask(struct kube_discovery *d, const struct kube_resource *res, kube_ready_fn *fn,
                          void *u);
/* An answer shows that the version is not served. No effect for resources with a fixed version. */
void kube_discovery_doubt(struct kube_discovery *d, const struct kube_resource *res);
