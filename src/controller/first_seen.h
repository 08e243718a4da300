/* SPDX-License-Identifier: Apache-2.0 */
/* first_seen: tracks for how long facts have been true, as observed by this process. Times are
 * clock_mono_s(), because the clocks of other machines may be wrong, and the clock of this machine may be
 * set. The records do not survive a restart, so no fact is older than the process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct first_seen;

/* A fact that no caller has recorded for `forget_s` seconds is forgotten; 0: the callers forget it with
 * first_seen_forget(). */
struct first_seen *first_seen_new(int64_t forget_s);
void first_seen_free(struct first_seen *s);
/* Records that the fact `what` is true at `now`. Returns since when it has been true. */
int64_t first_seen_at(struct first_seen *s, const char *what, int64_t now);
/* Records that the fact is true at `now`. Returns whether it has been true for at least `seconds`. If not,
 * lowers *recheck_s (0: unset) to the number of seconds that remain. */
bool first_seen_for(struct first_seen *s, const char *what, int64_t seconds, int64_t now, int64_t *recheck_s);
/* Returns in how many seconds all recorded facts that begin with `prefix` will have been true for `seconds`;
 * 0: they already have been. */
int64_t first_seen_left(const struct first_seen *s, const char *prefix, int64_t seconds, int64_t now);
/* Returns since when the fact has been true; 0: it is not recorded. */
int64_t first_seen_get(const struct first_seen *s, const char *what);
/* Returns the number of recorded facts that begin with `prefix`, and are not to be forgotten at `now`. */
size_t first_seen_count(const struct first_seen *s, const char *prefix, int64_t now);
/* Records that the fact is no longer true. */
void first_seen_forget(struct first_seen *s, const char *what);
