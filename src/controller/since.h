/* SPDX-License-Identifier: Apache-2.0 */
/* since: for how long facts have been true, as this process has seen it. Times are clock_mono_s(), because
 * the clocks of other machines may be wrong, and this machine's clock may be set. Nothing survives a restart,
 * so no fact is older than the process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct since;

struct since *since_new(void);
void since_free(struct since *s);
/* Records that the fact `what` is true now. Returns since when it has been true. */
int64_t since_first(struct since *s, const char *what, int64_t now);
/* Records that the fact is true now. Returns whether it has been true for at least `seconds`. If not,
 * *recheck_s (0: none) is lowered to the seconds that are missing. */
bool since_for(struct since *s, const char *what, int64_t seconds, int64_t now, int64_t *recheck_s);
/* The seconds until all recorded facts have been true for `seconds`; 0: they have been. */
int64_t since_left(const struct since *s, int64_t seconds, int64_t now);
/* Records that the fact is no longer true. */
void since_forget(struct since *s, const char *what);
