/* SPDX-License-Identifier: Apache-2.0 */
/* toml: reads one setting of a TOML document (toml.io, version 1.0). Pure; fuzzed (fuzz_toolkit).
 *
 * The parser reads the whole document. So text in a string, a comment or another table is not mistaken for
 * the setting, and a syntax error anywhere is an error. The parser does not check the digits of numbers and
 * dates, and detects a duplicate only of the setting itself. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* Reads the Boolean `key` of `table`, both plain names: "[table]\nkey = true", "table.key = true" or
 * "table = { key = true }". *ret_there: the document contains the setting. ERR_INVALID names the line: the
 * document has a syntax error, or the setting is not a Boolean or occurs twice. */
int toml_bool(struct str text, const char *table, const char *key, bool *ret_there, bool *ret, struct err *e);

/* toml_find() reads the setting at a path of names, NULL-terminated: { "a", "b", NULL } is "[a]\nb = ..." in
 * any of its spellings. TOML_OTHER: the value is a number, a date, a list or a table, or a string that is too
 * long. ERR_INVALID as for toml_bool(). */
enum toml_kind { TOML_ABSENT, TOML_BOOL, TOML_STRING, TOML_OTHER };
enum { TOML_TEXT_MAX = 256 };
struct toml_value {
        enum toml_kind kind;
        bool truth;               /* the value of a TOML_BOOL */
        char text[TOML_TEXT_MAX]; /* the value of a TOML_STRING */
        struct str raw;           /* the source text of a list or table, in the document; otherwise empty */
        unsigned line;
};
int toml_find(struct str text, const char *const *path, struct toml_value *ret, struct err *e);
