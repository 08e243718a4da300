/* SPDX-License-Identifier: Apache-2.0 */
/* root_walk: finds files below a root folder, with all links resolved as if the root were "/": an absolute
 * link stays in it, and ".." cannot leave it. The kernel does the whole walk (openat2), so a tree that
 * changes meanwhile cannot break this rule. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/mem.h"

struct root_walk {
        int fd;           /* -1: not open */
        const char *name; /* the path on the host, for messages; borrowed */
};
/* `here` is the path in our container. root_walk_done() closes descriptor 0 of a zeroed struct; a struct that
 * was never initialized must be { .fd = -1 }. */
int root_walk_init(struct root_walk *w, const char *here, const char *name, struct err *e);
void root_walk_done(struct root_walk *w);

struct root_file {
        const char *real; /* its path below the root, without links; in the arena */
        struct stat st;
};
/* 1: the file exists. 0: it does not exist. -1: unknown (a folder that may not be entered, no descriptor
 * left). A path that leaves the root on the way (another tree was moved there) does not exist. */
int root_walk_find(const struct root_walk *w, const char *path, struct arena *a, struct root_file *ret,
                   struct err *e);
/* As root_walk_find(), without the path. */
int root_walk_stat(const struct root_walk *w, const char *path, struct stat *ret, struct err *e);
/* Opens a regular file for reading. Returns the descriptor, or -1. ERR_NOT_FOUND: there is no such file. */
int root_walk_read(const struct root_walk *w, const char *path, struct err *e);
/* True if this name in the folder is a link. False also if that cannot be read. */
bool root_walk_is_link(const struct root_walk *w, const char *dir, const char *name);

/* Lists the names in a folder that match a shell pattern, sorted; NULL-terminated, in the arena. A missing
 * folder has none. */
int root_walk_names(const struct root_walk *w, const char *dir, const char *pattern, struct arena *a,
                    const char ***ret, struct err *e);

/* Joins root and path, without a double slash if the root is "/". */
char *root_walk_below(const char *root, const char *path, struct arena *a);
