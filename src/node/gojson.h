/* SPDX-License-Identifier: Apache-2.0 */
/* gojson: writes JSON as Go's encoding/json does, and computes checksums as Kubernetes' checkpoint manager
 * does. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/str.h"

/* Defines what Go writes for a member that does not exist or is empty. */
enum gojson_empty {
        GOJSON_LEFT_OUT,     /* nothing for null, "" or []; {} and false are written (a pointer) */
        GOJSON_MAP_LEFT_OUT, /* nothing, not even for {} */
        GOJSON_TEXT,         /* "" */
        GOJSON_OBJECT,       /* {} with the members that are always written */
        GOJSON_ANY,          /* null */
};

/* The members of an object, or of the objects in a list, in the order in which Go writes them. The last row
 * of a table has the name NULL. */
struct gojson_member {
        const char *name;
        enum gojson_empty empty;
        const struct gojson_member *inside; /* NULL: all members */
};

/* Writes a JSON value in the form that the checksums cover: no white space, and Go's escapes. An object is
 * written with only the members of the table `known`, in the table's order; NULL: all members, in their own
 * order. Returns false if the value is nested too deep. */
bool gojson_canonical(yyjson_val *v, const struct gojson_member *known, struct buf *out);

/* Returns the checksum of the JSON text that the parts form together: FNV-1a over Go's print form of its
 * bytes. */
uint32_t gojson_checksum(const struct str *parts, size_t n);

/* Removes the first `"key":value,` pair from *rest, which is the inside of an object; *ret_key and *ret_value
 * receive its parts. The text must be valid JSON. The function exists because yyjson does not report where in
 * the text a value is, and a checksum covers the text. */
bool gojson_next_member(struct str *rest, struct str *ret_key, struct str *ret_value);
/* Returns the text between the braces of an object. */
struct str gojson_inside(struct str object);
