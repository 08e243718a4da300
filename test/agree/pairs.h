/* SPDX-License-Identifier: Apache-2.0 */
/* pairs: pairs of values that the two servers chose: UIDs, versions, tokens of lists. `sim` is the value of
 * the simulated server, `real` that of the real one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* NULL: unknown. */
const char *pairs_real_uid(const char *sim);
/* Both may be the UID of the same object: they are a known pair, or neither is known. A new pair is
 * recorded. */
bool pairs_match_uid(const char *sim, const char *real);
/* At least one of them is known as a UID. */
bool pairs_know_uid(const char *sim, const char *real);

/* Versions of a write: they must be this pair, and higher than all earlier versions. */
bool pairs_match_version(int64_t sim, int64_t real);
/* Versions of a list, which may be any version since the last write that it shows. */
bool pairs_match_list(int64_t sim, int64_t real);
/* The real version is known from a write or a list. */
bool pairs_know_version(int64_t sim);
/* The real version of the write itself, if it is known, otherwise pairs_real_version(). */
int64_t pairs_real_write(int64_t sim);
/* The highest version of the real server that is known not to be later. */
int64_t pairs_real_version(int64_t sim);
/* The version of a random write; 0: there was none. */
int64_t pairs_some_version(uint64_t draw);

void pairs_note_token(const char *sim, const char *real);
const char *pairs_real_token(const char *sim);

/* etcd was restored: versions after this one have not happened, and will be reused. */
void pairs_restore(int64_t sim);
void pairs_done(void);
