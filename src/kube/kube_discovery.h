/* SPDX-License-Identifier: Apache-2.0 */
/* kube_discovery: which version of an API group the server serves.
 *
 * For resources without a fixed version: their group is asked for (GET /apis/GROUP), and of the versions that
 * it offers the first of the resource's own list is taken, for all resources of the group. That holds until
 * an answer of the group says that a version is not served (kube_error_unserved): then the group is asked
 * again, at most once a second, and the old version stays in use until it answers. Only an APIGroup object
 * counts as an answer; anything else is asked again, for ever, with the client's back-off. So is a group that
 * offers no version that we know, or is refused, while none is in use. Otherwise nothing is polled. */
#pragma once

#include <uv.h>
#include <yyjson.h>

#include "kube/kube_resource.h"

struct kube_discovery;
struct kube_discovery_group;

/* Has GET /apis/<name> made, in `ms` from now, and again while it fails. `g` is told what comes of it, never
 * from inside this call: each failure by kube_discovery_refused(), the end by kube_discovery_answered(). */
typedef void(kube_discovery_question_fn)(void *u, const char *name, unsigned ms,
                                         struct kube_discovery_group *g);

struct kube_discovery *kube_discovery_new(uv_loop_t *loop, kube_discovery_question_fn *put, void *u);
/* No question is under way any more, or will be answered. Calls nobody. */
void kube_discovery_free(struct kube_discovery *d);

/* A kube_retry_fn: an attempt failed, and another one will be made. */
void kube_discovery_refused(void *group, const struct err *e);
/* A kube_done_fn: the question is over: `obj` is the APIGroup, or *e says that there will be none. */
void kube_discovery_answered(void *group, yyjson_val *obj, const struct err *e);

/* The version that requests for this resource use, NULL while it is not known. */
const char *kube_discovery_version(const struct kube_discovery *d, const struct kube_resource *res);
/* Asks, unless the version is known, and tells fn in a later turn: see kube_client.h. */
void kube_discovery_ask(struct kube_discovery *d, const struct kube_resource *res, kube_ready_fn *fn,
                        void *u);
void kube_discovery_unask(struct kube_discovery *d, const struct kube_resource *res, kube_ready_fn *fn,
                          void *u);
/* An answer says that the version is not served. Of no effect for resources with a fixed one. */
void kube_discovery_doubt(struct kube_discovery *d, const struct kube_resource *res);
