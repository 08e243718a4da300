/* SPDX-License-Identifier: Apache-2.0 */
/* first_seen: for how long facts have been true, as this process has seen it. Times are clock_mono_s(),
 * because the clocks of other machines may be wrong, and this machine's clock may be set. Nothing survives a
 * restart, so no fact is older than the process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct first_seen;

struct first_seen *first_seen_new(void);
void first_seen_free(struct first_seen *s);
/* Records that the fact `what` is true now. Returns since when it has been true. */
int64_t first_seen_at(struct first_seen *s, const char *what, int64_t now);
/* Records that the fact is true now. Returns whether it has been true for at least `seconds`. If not,
 * *recheck_s (0: none) is lowered to the seconds that are missing. */
bool first_seen_for(struct first_seen *s, const char *what, int64_t seconds, int64_t now, int64_t *recheck_s);
/* The seconds until all recorded facts have been true for `seconds`; 0: they have been. */
int64_t first_seen_left(const struct first_seen *s, int64_t seconds, int64_t now);
/* Records that the fact is no longer true. */
void first_seen_forget(struct first_seen *s, const char *what);
