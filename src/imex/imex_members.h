/* SPDX-License-Identifier: Apache-2.0 */
/* imex_members: copies and compares the members of a domain, and saves them in a file, so that they are known
 * when the container restarts.
 *
 * The file is valid for one `identity`: a text with which the owner recognises the file of its earlier
 * process (boot, claim, domain, address). Members of another identity are never loaded, because an index
 * belongs to one daemon only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "imex/imex_files.h"

#define IMEX_MEMBERS_FILE "members.json"

/* Copies the members into the arena, including strings. */
struct imex_members *imex_members_copy(struct arena *a, const struct imex_members *m);
/* Compares all fields, including the boot IDs, which the file does not contain. A text that is NULL equals an
 * empty text. */
bool imex_members_equal(const struct imex_members *x, const struct imex_members *y);

/* Saves the members without their boot IDs: a boot ID counts only if the owner has set it since the start. */
int imex_members_save(const char *dir, const char *identity, const struct imex_members *m, struct err *e);
/* Loads the members. ERR_NOT_FOUND: there is no file, or it has another identity. *ret is allocated in the
 * arena. */
int imex_members_load(const char *dir, const char *identity, struct arena *a, struct imex_members **ret,
                      struct err *e);
/* The pure part of imex_members_load(). */
int imex_members_parse(struct str text, const char *identity, struct arena *a, struct imex_members **ret,
                       struct err *e);
