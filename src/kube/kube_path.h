/* SPDX-License-Identifier: Apache-2.0 */
/* kube_path: builds the path and query of a request to the Kubernetes API.
 *
 * The module percent-encodes all strings and rejects names that would change the resource (empty, ".", ".."),
 * so a string from an object can never change the path. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "kube/kube_object.h"

enum { KUBE_PATH_MAX = 64 << 10 };

/* Appends the beginning of the path: "/apis/apps/v1" or "/api/v1". */
void kube_path_version(struct buf *b, const struct kube_resource *res, const char *version);
/* Appends the rest of the path: "/namespaces/ns/daemonsets/name/status". ns NULL: cluster-scoped, or all
 * namespaces; name NULL: the collection. */
int kube_path_object(struct buf *b, const struct kube_resource *res, const char *ns, const char *name,
                     const char *subresource, struct err *e);

/* Appends "?key=value" or "&key=value", with the value encoded, or nothing if the value is NULL. *n_query
 * counts the parameters so far. */
void kube_path_query(struct buf *b, unsigned *n_query, const char *key, const char *value);
