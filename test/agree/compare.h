/* SPDX-License-Identifier: Apache-2.0 */
/* compare: compares two answers. UIDs and versions are equal if they are a pair (pairs.h); times that the
 * servers set are equal if they are close. Texts of messages and managedFields are ignored. For built-in
 * kinds, and in metadata, an empty member equals an absent one: Kubernetes writes their types so, and our
 * decoders read them so. */
#pragma once

#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"

/* Reads the list of members that the simulated server may lack: lines of "KIND PATH", with "*" for any name
 * or index in a path, and comments with the reasons. */
int compare_load(const char *path, struct err *e);
void compare_done(void);
/* Adds a line for each member of the list that was never missing. */
void compare_unused(struct buf *out);

enum compare_what {
        COMPARE_OBJECT, /* an object or a Status */
        COMPARE_LIST,
};

/* Adds a line for each difference. `kind` is the kind of the objects; `custom`: it has one of our schemas. */
void compare_values(enum compare_what what, const char *kind, bool custom, yyjson_val *sim, yyjson_val *real,
                    struct buf *out);
