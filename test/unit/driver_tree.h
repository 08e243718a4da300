/* SPDX-License-Identifier: Apache-2.0 */
/* driver_tree: the root of an NVIDIA driver, with just enough content for code that looks for its files. */
#pragma once

#include <stdbool.h>

/* Creates below root (tree.h): a 64-bit library with this soname (NULL: none), a link, and a character
 * device; false: this machine does not permit device nodes. */
void driver_tree_library(const char *root, const char *path, const char *soname);
void driver_tree_link(const char *root, const char *path, const char *to);
bool driver_tree_node(const char *root, const char *path, unsigned major, unsigned minor, unsigned mode,
                      unsigned gid);

/* The root from which the Go driver made gpu_plugin/golden/cdi-*.json, version 550.163.01. */
#define DRIVER_TREE_VERSION "550.163.01"
bool driver_tree_of_golden(const char *root);
