/* SPDX-License-Identifier: Apache-2.0 */
/* store: keeps the objects of an API server as JSON, and executes writes as an API server does. A failure
 * fails the test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "kube/kube_object.h"

enum { STORE_MAX = 64 };

struct object {
        const struct kube_resource *res;
        char *ns, *name, *json; /* json NULL: a free entry */
};

struct store {
        struct object items[STORE_MAX];
        int64_t version; /* resourceVersion of the last write */
};

void store_done(struct store *s); /* removes all objects */
/* Finds the first object of this kind; ns or name NULL: any. Returns NULL if there is none. */
struct object *store_find(struct store *s, const struct kube_resource *res, const char *ns, const char *name);
/* Stores a text unchanged, and replaces an object of the same name. json NULL: removes that object. */
void store_set(struct store *s, const struct kube_resource *res, const char *ns, const char *name,
               const char *json);
/* Writes through the API. They set uid, generation and resourceVersion. An object with a deletionTimestamp
 * and without finalizers is removed. */
void store_create(struct store *s, const struct kube_resource *res, const char *ns, const char *name,
                  const char *json);
/* Returns false and changes nothing if the patch names another resourceVersion or uid. Only a patch of the
 * status changes the status. */
bool store_patch(struct store *s, struct object *x, const char *body, bool status);
void store_delete(struct store *s, struct object *x, int64_t now_s);
/* Removes the object, even with finalizers. */
void object_vanish(struct object *x);
/* Parses a text of the server. A failure that a test injects (unit/faults.h) does not affect it, because it
 * concerns only the code under test. Returns NULL if the text is not JSON. The caller frees the document. */
yyjson_doc *store_read(const char *json, size_t n);
