/* SPDX-License-Identifier: Apache-2.0 */
/* sha256: computes SHA-256 (FIPS 180-4), for names that are derived from other names. It does not protect
 * secrets. Programs that must not link OpenSSL can use it. Pure. */
#pragma once

#include <stddef.h>

enum { SHA256_SIZE = 32 };

void sha256(const void *p, size_t n, unsigned char ret[static SHA256_SIZE]);
