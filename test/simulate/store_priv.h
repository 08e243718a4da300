/* SPDX-License-Identifier: Apache-2.0 */
/* store_priv: declares the functions that store.c, which keeps the objects, and writes.c, which decides about
 * writes, share. */
#pragma once

#include "store.h"

static inline const char *member_text(yyjson_val *object, const char *key) {
        return yyjson_get_str(yyjson_obj_get(object, key));
}

static inline void set_text(yyjson_mut_doc *d, yyjson_mut_val *object, const char *key, const char *value) {
        yyjson_mut_obj_remove_key(object, key);
        yyjson_mut_obj_add_strcpy(d, object, key, value);
}

struct version *version_new(enum kind k, yyjson_mut_doc *doc);
/* Sets kind and apiVersion as the first members, so that a list can omit them. Returns how many bytes they
 * take. */
size_t version_name_kind(enum kind k, yyjson_mut_doc *d);

/* Returns true if clients apply objects of this kind, so that the owners of their fields must be recorded. */
bool store_is_applied(enum kind k);
/* Stores the next version of the object whose name is in the document. Takes ownership of the document and of
 * `owners`. owners NULL: the write is not an apply. */
const struct version *store_put(enum kind k, yyjson_mut_doc *d, struct owners *owners);
/* Deletes an object. Its last version is `v` with the resource version of the deletion. */
const struct version *store_remove(enum kind k, const struct version *v);

void writes_done(void);
