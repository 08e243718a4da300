/* SPDX-License-Identifier: Apache-2.0 */
/* compare: whether two answers say the same. UIDs and versions do when they are a pair (pairs.h), times that
 * the servers chose when they are close. Texts of messages and managedFields are not looked at. For built-in
 * kinds, and in metadata, what is empty is the same as what is not there: Kubernetes writes their types so,
 * and our decoders read them so. */
#pragma once

#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"

/* Reads which members the simulated server may lack: "KIND PATH" a line, "*" for any name or index in a path,
 * and comments, which say why. */
int compare_load(const char *path, struct err *e);
void compare_done(void);
/* Members that the list has and that never were missing: a line each. */
void compare_unused(struct buf *out);

enum compare_what {
        COMPARE_OBJECT, /* or a Status */
        COMPARE_LIST,
};

/* Adds a line for each difference. `kind` is that of the objects, `custom` whether it has a schema of ours.
 */
void compare_values(enum compare_what what, const char *kind, bool custom, yyjson_val *sim, yyjson_val *real,
                    struct buf *out);
