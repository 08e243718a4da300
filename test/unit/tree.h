/* SPDX-License-Identifier: Apache-2.0 */
/* tree: a folder of a test's own under /tmp, and files in it. A failure fails the test. */
#pragma once

/* The caller gives it to tree_remove(), which removes all that is in it and frees the name. */
char *tree_new(void);
void tree_remove(char *root);

/* Writes root/path with mode 0755; makes the folders on the way. */
void tree_put(const char *root, const char *path, const char *text);

/* How many names the folder root/path has, "." and ".." among them. */
unsigned tree_entries(const char *root, const char *path);
