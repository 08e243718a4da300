/* SPDX-License-Identifier: Apache-2.0 */
/* pairs: what the two servers chose for themselves, one to one: UIDs, versions, tokens of lists. `sim` is the
 * simulated server's word, `real` the other's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* NULL: not known. */
const char *pairs_real_uid(const char *sim);
/* Whether they may be one object's: both known as that, or neither. New ones are noted. */
bool pairs_match_uid(const char *sim, const char *real);
/* Whether either of them is known as a UID. */
bool pairs_know_uid(const char *sim, const char *real);

/* Of a write: exactly this one, and later than all that came before it. */
bool pairs_match_version(int64_t sim, int64_t real);
/* Of a list, which may be any version since the last write that it shows. */
bool pairs_match_list(int64_t sim, int64_t real);
/* A write or a list has shown which it is. */
bool pairs_know_version(int64_t sim);
/* That of the write itself, if it is known, or else pairs_real_version(). */
int64_t pairs_real_write(int64_t sim);
/* The latest of the real server that is known not to be later. */
int64_t pairs_real_version(int64_t sim);
/* That of any write; 0: there was none. */
int64_t pairs_some_version(uint64_t draw);

void pairs_note_token(const char *sim, const char *real);
const char *pairs_real_token(const char *sim);

/* etcd was restored: versions behind this one have not happened, and come again. */
void pairs_restore(int64_t sim);
void pairs_done(void);
