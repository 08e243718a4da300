/* SPDX-License-Identifier: Apache-2.0 */
/* first_seen: tracks for how long facts have been true, as observed by this process. Times are
 * clock_mono_s(), because the clocks of other machines may be wrong, and the clock of this machine may be
 * set. The records do not survive a restart, so no fact is older than the process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct first_seen;

struct first_seen *first_seen_new(void);
void first_seen_free(struct first_seen *s);
/* Records that the fact `what` is true at `now`. Returns since when it has been true. */
int64_t first_seen_at(struct first_seen *s, const char *what, int64_t now);
/* Records that the fact is true at `now`. Returns whether it has been true for at least `seconds`. If not,
 * lowers *recheck_s (0: unset) to the number of seconds that remain. */
bool first_seen_for(struct first_seen *s, const char *what, int64_t seconds, int64_t now, int64_t *recheck_s);
/* Returns in how many seconds all recorded facts will have been true for `seconds`; 0: they already have
 * been. */
int64_t first_seen_left(const struct first_seen *s, int64_t seconds, int64_t now);
/* Records that the fact is no longer true. */
void first_seen_forget(struct first_seen *s, const char *what);
