/* SPDX-License-Identifier: Apache-2.0 */
/* tree: a test's own folder under /tmp, and files in it. A failure fails the test. */
#pragma once

/* Free it with tree_remove(), which removes the folder and its content, and frees the name. */
char *tree_new(void);
void tree_remove(char *root);

/* Writes root/path with mode 0755. Creates missing folders. */
void tree_put(const char *root, const char *path, const char *text);

/* The number of entries of the folder root/path, including "." and "..". */
unsigned tree_entries(const char *root, const char *path);
