/* SPDX-License-Identifier: Apache-2.0 */
/* root_walk: looking at files below a root folder, with all links resolved as if the root were "/": an
 * absolute link stays in it, and ".." cannot leave it. The kernel does the whole walk (openat2), so a tree
 * that changes meanwhile cannot cheat it. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/mem.h"

struct root_walk {
        int fd;           /* -1: not open */
        const char *name; /* for messages: as it is called on the host; borrowed */
};
/* `here`: as it is seen by us. root_walk_done() takes what is zeroed for open; what was never begun is { .fd
 * = -1 }. */
int root_walk_init(struct root_walk *w, const char *here, const char *name, struct err *e);
void root_walk_done(struct root_walk *w);

struct root_file {
        const char *real; /* its path below the root, without links; in the arena */
        struct stat st;
};
/* 1: there it is; 0: there is nothing; -1: nobody knows (a folder that may not be entered, no descriptor
 * left). A path that leads out of the root on the way (another tree was moved there) is nothing. */
int root_walk_look(const struct root_walk *w, const char *path, struct arena *a, struct root_file *ret,
                   struct err *e);
/* The same, without the path. */
int root_walk_stat(const struct root_walk *w, const char *path, struct stat *ret, struct err *e);
/* A regular file, open for reading: the descriptor, or -1; ERR_NOT_FOUND: there is none. */
int root_walk_read(const struct root_walk *w, const char *path, struct err *e);
/* Is this name in that folder a link? What cannot be looked at is none. */
bool root_walk_is_link(const struct root_walk *w, const char *dir, const char *name);

/* The names in a folder that match a pattern of the shell's, sorted; NULL-terminated, in the arena. A folder
 * that is not there has none. */
int root_walk_names(const struct root_walk *w, const char *dir, const char *pattern, struct arena *a,
                    const char ***ret, struct err *e);

/* root + path, without a doubled slash when the root is "/". */
char *root_walk_below(const char *root, const char *path, struct arena *a);
