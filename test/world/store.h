/* SPDX-License-Identifier: Apache-2.0 */
/* store: what an API server stores: objects as JSON, and what a server does with each write. A failure
 * fails the test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "kube/kube_resource.h"

enum { STORE_MAX = 64 };

struct object {
        const struct kube_resource *res;
        char *ns, *name, *json; /* json NULL: a free place */
};

struct store {
        struct object items[STORE_MAX];
        int64_t version; /* resourceVersion of the last write */
};

void store_done(struct store *s); /* removes all */
/* The first one of these; ns or name NULL: any. NULL: none. */
struct object *store_find(struct store *s, const struct kube_resource *res, const char *ns, const char *name);
/* Stores a text as it is, in place of what has this name; json NULL: removes it. */
void store_set(struct store *s, const struct kube_resource *res, const char *ns, const char *name,
               const char *json);
/* The writes of the API. They set uid, generation and resourceVersion; what has a deletionTimestamp and no
 * finalizers is removed. */
void store_create(struct store *s, const struct kube_resource *res, const char *ns, const char *name,
                  const char *json);
/* False, and no change: the patch names another resourceVersion or uid. The status changes only by a patch of
 * the status. */
bool store_patch(struct store *s, struct object *x, const char *body, bool status);
void store_delete(struct store *s, struct object *x, int64_t now_s);
/* It is gone without a trace, finalizers or not. */
void object_vanish(struct object *x);
/* Parses a text of the server, also when a test lets one call fail (unit/faults.h): that is for the code
 * under test. NULL: not JSON. The caller frees it. */
yyjson_doc *store_read(const char *json, size_t n);
