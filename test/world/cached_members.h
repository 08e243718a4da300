/* SPDX-License-Identifier: Apache-2.0 */
/* cached_members: compares the members of a ComputeDomain that the kubectl plugin sees, from lists, with
 * those of a controller that has just started, from its caches, which keep only a part of each object. */
#pragma once

#include "cli/source.h"

enum cached_members {
        CACHED_MEMBERS_NONE, /* the ComputeDomain does not exist, a list is not complete, or the mode has no
                                members */
        CACHED_MEMBERS_EQUAL,
        CACHED_MEMBERS_DIFFER
};
/* Appends a line "NODE: MESSAGE" of each member to `members`, unless it is NULL.
 * Returns the number of members in *ret_n, and a description of the first difference in *ret_difference,
 * which the caller frees; NULL: there is none. */
enum cached_members cached_members_compare(struct source *s, const char *ns, const char *name, size_t *ret_n,
                                           struct buf *members, char **ret_difference);
