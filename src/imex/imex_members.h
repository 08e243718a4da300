/* SPDX-License-Identifier: Apache-2.0 */
/* imex_members: the members of the domain, as the owner last set them, and the file that keeps them when the
 * container restarts.
 *
 * The file is valid for one `identity`: a text by which the owner recognises the file of its
 * earlier process (boot, claim, domain, address). Members of another identity are never loaded, because an
 * index belongs to one daemon only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "imex/imex_files.h"

#define IMEX_MEMBERS_FILE "members.json"
/* More than any domain has: a limit for input from outside. */
#define IMEX_MEMBERS_MAX 4096

/* A copy in the arena, including strings. */
struct imex_members *imex_members_copy(struct arena *a, const struct imex_members *m);
/* Compares boot IDs, too, which the file does not have. A text that is NULL equals an empty one. */
bool imex_members_equal(const struct imex_members *x, const struct imex_members *y);

/* Boot IDs are not saved: they count only if the owner has set them since the start. */
int imex_members_save(const char *dir, const char *identity, const struct imex_members *m, struct err *e);
/* ERR_NOT_FOUND: there is no file, or it has another identity. *ret lives in the arena. */
int imex_members_load(const char *dir, const char *identity, struct arena *a, struct imex_members **ret,
                      struct err *e);
/* The pure part of imex_members_load(). */
int imex_members_parse(struct str text, const char *identity, struct arena *a, struct imex_members **ret,
                       struct err *e);
