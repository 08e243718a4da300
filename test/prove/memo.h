/* SPDX-License-Identifier: Apache-2.0 */
/* memo: a cache of the results of a pure function. Keys and values are blocks of bytes of fixed sizes, and a
 * key is compared in full. A full cache is emptied. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct memo;

struct memo *memo_new(size_t key_size, size_t value_size, size_t bytes);
void memo_free(struct memo *m);
/* NULL: not found. The value is valid until the next memo_put(). */
const void *memo_get(const struct memo *m, const void *key);
void memo_put(struct memo *m, const void *key, const void *value);
