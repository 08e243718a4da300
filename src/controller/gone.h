/* SPDX-License-Identifier: Apache-2.0 */
/* gone: since when something has been seen to be missing. Remembers nothing across a restart, so that a
 * minute begins anew then. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gone;

struct gone *gone_new(void);
void gone_free(struct gone *g);
/* It is missing now, in seconds since 1970: since when? */
int64_t gone_since(struct gone *g, const char *name, int64_t now);
/* It is missing now: for at least so many seconds? If not, *recheck_s, where 0 is none, is brought forward to
 * the time that is left. */
bool gone_for(struct gone *g, const char *name, int64_t seconds, int64_t now, int64_t *recheck_s);
/* In how many seconds everything that is missing now, and was not before `from`, will have been missing for
 * that long; 0: it has been. */
int64_t gone_left(const struct gone *g, int64_t from, int64_t seconds, int64_t now);
void gone_is_back(struct gone *g, const char *name);
