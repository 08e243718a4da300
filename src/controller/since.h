/* SPDX-License-Identifier: Apache-2.0 */
/* since: when this process first saw that something is so. Times are clock_mono_s(): the clocks of other
 * machines may be wrong, and this machine's may be set. It remembers nothing across a restart, so that each
 * time is counted from the start at the earliest. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct since;

struct since *since_new(void);
void since_free(struct since *s);
/* It is so now: since when? */
int64_t since_first(struct since *s, const char *what, int64_t now);
/* It is so now: for at least so many seconds? If not, *recheck_s, where 0 is none, is brought forward to the
 * time that is left. */
bool since_for(struct since *s, const char *what, int64_t seconds, int64_t now, int64_t *recheck_s);
/* In how many seconds everything that is so now will have been so for that long; 0: it has been. */
int64_t since_left(const struct since *s, int64_t seconds, int64_t now);
/* It is not so any more. */
void since_forget(struct since *s, const char *what);
