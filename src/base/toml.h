/* SPDX-License-Identifier: Apache-2.0 */
/* toml: reads one setting out of a TOML document (toml.io, version 1.0). Pure; fuzzed.
 *
 * The whole document is read, so that what stands in a string, a comment or another table is not taken for
 * the setting, and a document that is broken anywhere is an error. Numbers and dates are passed over without
 * a look at their digits, and of what is defined twice only the setting itself is noticed. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* The Boolean `key` of `table`, both plain names: "[table]\nkey = true", "table.key = true" or
 * "table = { key = true }". *ret_there: it is set. ERR_INVALID says in which line what is wrong: of the
 * document, or a setting that is no Boolean, or is there twice. */
int toml_bool(struct str text, const char *table, const char *key, bool *ret_there, bool *ret, struct err *e);
