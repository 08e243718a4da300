/* SPDX-License-Identifier: Apache-2.0 */
/* in_root: accesses files below the root of a container, whose owner may change them at the same time.
 *
 * No path is checked first and used later: each path is resolved once to a descriptor, and all further steps
 * use the descriptor. The kernel resolves each path as if the root were "/" (openat2, Linux 5.6), so no link
 * and no ".." of the container leads out of the root. Each function prints the reason of a failure once. */
#pragma once

#include <sys/types.h>

/* Opens the root itself. Returns the descriptor, or -1. Rejects the host's own root, and anything except a
 * folder. */
int in_root_open(const char *path);

/* Returns a descriptor for an absolute path of the container, or -1 with errno. `resolve`: additional
 * RESOLVE_* flags of openat2. Prints nothing. */
int in_root(int root, const char *path, unsigned flags, unsigned resolve);

/* Opens the folder, and creates it and its parents if they are missing (0755). Follows links in existing
 * folders, inside the root, but not in folders that it creates. Rejects "..". */
int in_root_folder(int root, const char *path);

/* Creates a link or a file with that text in the folder. Replaces an existing file atomically. */
int in_root_place_link(int folder, const char *name, const char *text);
int in_root_place_file(int folder, const char *name, const char *text, mode_t mode);

/* Makes a random name between `before` and `after`, for temporary files and for names that must not collide.
 * `ret` must have at least 40 bytes more than both. */
int in_root_random_name(const char *before, const char *after, char *ret, size_t size);
