/* SPDX-License-Identifier: Apache-2.0 */
/* memo: caches the results of a pure function. Keys and values are blocks of bytes of fixed sizes, and
 * keys are compared in full. When the cache is full, it drops all entries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct memo;

struct memo *memo_new(size_t key_size, size_t value_size, size_t bytes);
void memo_free(struct memo *m);
/* Returns the value of a key, valid until the next memo_put(), or NULL if the key is not found. */
const void *memo_get(const struct memo *m, const void *key);
void memo_put(struct memo *m, const void *key, const void *value);
