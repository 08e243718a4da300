/* SPDX-License-Identifier: Apache-2.0 */
/* in_root: files below the root of a container, whose owner may change them while we look.
 *
 * No path is looked at and then used: what was resolved is a descriptor, and all that follows is done with
 * that. The kernel resolves each path as if the root were "/" (openat2, Linux 5.6), so that no link and no
 * ".." of the container leads out of it. Functions say why they fail, once. */
#pragma once

#include <sys/types.h>

/* The root itself. Refuses the host's own, and what is no folder. */
int in_root_open(const char *path);

/* A descriptor of an absolute path of the container, or -1 with errno; `resolve` adds to the flags of
 * openat2. Says nothing. */
int in_root(int root, const char *path, unsigned flags, unsigned resolve);

/* The folder, made with its parents where it is missing (0755). In what is there links are followed, in the
 * root; in what is made nothing is. ".." is refused. */
int in_root_folder(int root, const char *path);

/* Replaces what has that name in the folder, at once: by a link with that text, by a file with that text. */
int in_root_place_link(int folder, const char *name, const char *text);
int in_root_place_file(int folder, const char *name, const char *text, mode_t mode);

/* ".<name>.<random>" for temporary names, and names of our own that hit nobody's: ret has at least 40 bytes
 * more than `before` and `after`. */
int in_root_random_name(const char *before, const char *after, char *ret, size_t size);
