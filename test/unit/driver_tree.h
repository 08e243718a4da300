/* SPDX-License-Identifier: Apache-2.0 */
/* driver_tree: the root of an NVIDIA driver, made of as little as whoever looks for its files can see. */
#pragma once

#include <stdbool.h>

/* Below root (tree.h): a library of 64 bits whose programs ask for it as `soname` (NULL: it does not say), a
 * link, and a character device; false: this machine does not let us make one. */
void driver_tree_library(const char *root, const char *path, const char *soname);
void driver_tree_link(const char *root, const char *path, const char *to);
bool driver_tree_node(const char *root, const char *path, unsigned major, unsigned minor, unsigned mode,
                      unsigned gid);

/* The root from which the Go driver has made gpu_plugin/golden/cdi-*.json, version 550.163.01. */
#define DRIVER_TREE_VERSION "550.163.01"
bool driver_tree_of_golden(const char *root);
