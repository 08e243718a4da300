/* SPDX-License-Identifier: Apache-2.0 */
/* gojson: JSON as Go's encoding/json writes it and Kubernetes' checkpoint manager sums it up. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/str.h"

/* What Go writes of a member that is not there, or has nothing in it. */
enum gojson_empty {
        GOJSON_LEFT_OUT,     /* nothing: not of null, "" or []; {} and false are something (a pointer) */
        GOJSON_MAP_LEFT_OUT, /* nothing, also not of {} */
        GOJSON_TEXT,         /* "" */
        GOJSON_OBJECT,       /* {} with what it always has */
        GOJSON_ANY,          /* null */
};

/* Members of an object, and of the objects in a list, in the order in which Go writes them. A table of them
 * ends with a name that is NULL. */
struct gojson_member {
        const char *name;
        enum gojson_empty empty;
        const struct gojson_member *inside; /* NULL: whatever there is */
};

/* A JSON value in the form that the checksums cover: no white space, Go's escapes. Of objects the members of
 * the table only, in its order; NULL: all, in theirs. False when it nests too deep. */
bool gojson_canonical(yyjson_val *v, const struct gojson_member *known, struct buf *out);

/* The checksum of the JSON text that the parts make together: FNV-1a over Go's print form of its bytes. */
uint32_t gojson_checksum(const struct str *parts, size_t n);

/* Cuts `"key":value,` pairs off the inside of an object whose text is known to be valid JSON: yyjson does not
 * tell where in the text a value stands, and a checksum covers the text. */
bool gojson_next_member(struct str *rest, struct str *ret_key, struct str *ret_value);
/* What stands between the braces. */
struct str gojson_inside(struct str object);
