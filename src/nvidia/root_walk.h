/* SPDX-License-Identifier: Apache-2.0 */
/* root_walk: finds files below a root folder, and resolves all links as if the root were "/": neither an
 * absolute link nor ".." leads out of it. The kernel resolves the whole path (openat2), so this also holds if
 * the tree changes at the same time. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/mem.h"

struct root_walk {
        int fd;           /* -1: not open */
        const char *name; /* the path on the host, for messages; borrowed */
};
/* Opens the root. `here` is the path in our container. root_walk_done() closes descriptor 0 of a zeroed
 * struct; a struct that was never initialized must be { .fd = -1 }. */
int root_walk_init(struct root_walk *w, const char *here, const char *name, struct err *e);
void root_walk_done(struct root_walk *w);

struct root_file {
        const char *real; /* the path below the root, without links; in the arena */
        struct stat st;
};
/* Returns 1 if the file exists, 0 if it does not exist, and -1 if this is unknown (a folder that may not be
 * entered, no descriptor left). Also returns 0 if the path leaves the root while the kernel resolves it,
 * because a folder was moved. */
int root_walk_find(const struct root_walk *w, const char *path, struct arena *a, struct root_file *ret,
                   struct err *e);
/* Like root_walk_find(), but returns only the status of the file, not its path. */
int root_walk_stat(const struct root_walk *w, const char *path, struct stat *ret, struct err *e);
/* Opens a regular file for reading. Returns the descriptor, or -1. ERR_NOT_FOUND: there is no such file. */
int root_walk_read(const struct root_walk *w, const char *path, struct err *e);
/* Returns true if this name in the folder is a link. Also returns false if the name cannot be read. */
bool root_walk_is_link(const struct root_walk *w, const char *dir, const char *name);

/* Lists the names in a folder that match a shell pattern, sorted; NULL-terminated, in the arena. For a
 * missing folder the list is empty. */
int root_walk_names(const struct root_walk *w, const char *dir, const char *pattern, struct arena *a,
                    const char ***ret, struct err *e);

/* Joins root and path, without a double slash if the root is "/". */
char *root_walk_below(const char *root, const char *path, struct arena *a);
