/* SPDX-License-Identifier: Apache-2.0 */
/* gone: since when something has been seen to be missing. Remembers nothing across a restart, so that a
 * minute begins anew then. */
#pragma once

#include <stdint.h>

struct gone;

struct gone *gone_new(void);
void gone_free(struct gone *g);
/* It is missing now, in seconds since 1970: since when? */
int64_t gone_since(struct gone *g, const char *name, int64_t now);
void gone_is_back(struct gone *g, const char *name);
