/* SPDX-License-Identifier: Apache-2.0 */
/* oci_state: finds the container's root from the state that the runtime writes to standard input (OCI runtime
 * spec, "State") and from the container's config.json. Both are untrusted: names and annotations come from a
 * user. Fuzzed. */
#pragma once

#include <stddef.h>

enum { OCI_STATE_MAX = 1 << 20, OCI_CONFIG_MAX = 32 << 20, OCI_PATH_MAX = 4096 };

/* Reads the string at member b of member a of a JSON object (b NULL: at member a). Returns 1 if it exists, 0
 * if it is missing or not a string, and -1 if the text is not JSON, or if the string does not fit or contains
 * a NUL byte. Pure. */
int oci_json_find(const char *text, size_t n, const char *a, const char *b, char *ret, size_t size);

/* Reads the state from `fd`, and the config.json that the state refers to. Sets `ret` to the absolute path of
 * the container's root on the host. Prints the reason of a failure. */
int oci_state_root(int fd, char ret[static OCI_PATH_MAX]);
