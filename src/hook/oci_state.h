/* SPDX-License-Identifier: Apache-2.0 */
/* oci_state: where the container is, by what the runtime says on standard input (OCI runtime spec, "State")
 * and by its config.json. Foreign bytes: names and annotations in both are a tenant's. Fuzzed. */
#pragma once

#include <stddef.h>

enum { OCI_STATE_MAX = 1 << 20, OCI_CONFIG_MAX = 32 << 20, OCI_PATH_MAX = 4096 };

/* Pure. The string at members a, b (NULL: at a) of an object. 1: it is there; 0: it is not, or no string; -1:
 * this is no JSON, or the string does not fit, or has a byte 0. */
int oci_json_find(const char *text, size_t n, const char *a, const char *b, char *ret, size_t size);

/* Reads all of fd, and the config.json that it leads to: the root of the container on the host, an absolute
 * path. Says why not. */
int oci_state_root(int fd, char ret[static OCI_PATH_MAX]);
