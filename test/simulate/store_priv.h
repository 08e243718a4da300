/* SPDX-License-Identifier: Apache-2.0 */
/* store_priv: between store.c, which keeps objects, and writes.c, which says what may become of them. */
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
/* Sets kind and apiVersion, first of all, where a list can leave them out: how many bytes they take. */
size_t version_name_kind(enum kind k, yyjson_mut_doc *d);

/* Who owns its fields is known of what is applied. */
bool store_is_applied(enum kind k);
/* The next version of what has the name in the document. Takes the document, and the owners; NULL: who writes
 * is nobody who applies. */
const struct version *store_put(enum kind k, yyjson_mut_doc *d, struct owners *owners);
/* The last version of what is deleted is the one before, with the version of the deletion. */
const struct version *store_remove(enum kind k, const struct version *v);

void writes_done(void);
