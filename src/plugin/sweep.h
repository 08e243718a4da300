/* sweep: what nobody will tell us to clean up: files of claims that no journal knows, claims of another boot,
 * claims whose object is gone.
 */
#ifndef PLUGIN_SWEEP_H
#define PLUGIN_SWEEP_H

#include <stdbool.h>

#include "base/err.h"
#include "plugin/checkpoint.h"
#include "plugin/journal.h"

struct claims;
struct sweep;

struct sweep *sweep_new(struct claims *c);
void sweep_free(struct sweep *s);

/* With the node lock held, when journal_sync() has found something. Changes the table; *ret_changed: it must
 * be written. On an error an entry may be missing from it: nothing may be done on its word. */
int sweep_after_sync(struct claims *c, enum journal_event event, const char *aside, bool *ret_changed,
                     struct err *e);
/* With the node lock held, once at the start: CDI files and domain folders that no entry of the journal
 * stands for. */
void sweep_files(struct claims *c);
/* Looks each recorded claim up in the API, one after the other, and unprepares those whose object is gone:
 * the kubelet has forgotten them. Now and then by itself. */
void sweep_gone_claims(struct sweep *s);

/* Pure: an entry as far as the claim's CDI file tells it. False when it is none of ours, or of another boot;
 * `undated`: a file that names no boot, as those of the Go driver, counts as one of this boot. */
bool sweep_rebuild(struct checkpoint *table, const char *uid, struct str cdi_file, const char *node,
                   const char *boot_id, bool undated);

#endif
