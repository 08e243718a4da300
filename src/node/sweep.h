/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: what nobody will tell us to clean up: files of claims that no journal knows, claims of another boot,
 * claims whose object is gone.
 */
#pragma once

#include "node/ops.h"

struct sweep;

struct sweep *sweep_new(struct claims *c);
void sweep_free(struct sweep *s);

/* With the node lock held, when journal_sync() has found something. Changes the table; *ret_changed: it must
 * be written. On an error an entry may be missing from it: nothing may be done on its word. */
int sweep_after_sync(struct claims *c, enum journal_event event, const char *aside, bool *ret_changed,
                     struct err *e);
/* With the node lock held, once at the start: removes CDI files that no entry of the journal stands for,
 * and has the driver remove its things. A CDI file of this boot becomes an entry instead (the table must be
 * written). */
void sweep_files(struct claims *c);
/* Looks each recorded claim up in the API, one after the other, and unprepares those whose object is gone:
 * the kubelet has forgotten them. Every ten minutes by itself.
 *
 * Gone is what two rounds, at least SWEEP_APART_MS apart, have found so, each by the server's word that there
 * is no such object (ERR_NOT_FOUND) or that another has taken its name (another UID). A round in which one
 * answer is anything else proves nothing, nor does what was found before it. The driver has the last
 * word. now_ms: uv_now(). */
enum { SWEEP_APART_MS = 450000 /* the shortest that the spread makes of the ten minutes */ };
void sweep_gone_claims(struct sweep *s, uint64_t now_ms);

/* Pure: an entry as far as the claim's CDI file tells it. False when it is none of ours, or of another boot;
 * `undated`: a file that names no boot, as those of the Go driver, counts as one of this boot. */
bool sweep_rebuild(struct checkpoint *table, const struct node_driver *driver, const char *uid,
                   struct str cdi_file, const char *node, const char *boot_id, bool undated);
