/* SPDX-License-Identifier: Apache-2.0 */
/* oci_state: finds the container's root by the state that the runtime writes to standard input (OCI runtime
 * spec, "State") and by its config.json. Both are untrusted: names and annotations come from a user. Fuzzed.
 */
#pragma once

#include <stddef.h>

enum { OCI_STATE_MAX = 1 << 20, OCI_CONFIG_MAX = 32 << 20, OCI_PATH_MAX = 4096 };

/* Pure. Reads the string at members a, b (b NULL: at a) of an object. 1: found. 0: missing, or not a string.
 * -1: the text is not JSON, or the string does not fit or contains a byte 0. */
int oci_json_find(const char *text, size_t n, const char *a, const char *b, char *ret, size_t size);

/* Reads all of fd, and the config.json that it names. ret is the absolute path of the container's root on the
 * host. Prints the reason of a failure. */
int oci_state_root(int fd, char ret[static OCI_PATH_MAX]);
