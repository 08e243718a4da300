/* SPDX-License-Identifier: Apache-2.0 */
/* grants: writes the files by which our daemon learns that a channel of its IMEX domain is in use on this
 * node, or will soon be (imex/imex_grants.h). There is one file for each channel claim that is prepared or is
 * being prepared.
 *
 * The grant of a claim that waits is `waiting`. It becomes `granting` before the claim is judged for the last
 * time, and stays so until the claim is unprepared. The files follow the table of prepared claims: at the
 * start, files of an earlier process are updated or removed to match the table, but not while another process
 * is alive, which may be about to write the CDI file of the claim. A thread makes all changes to the files.
 * Loop thread only. */
#pragma once

#include <stdbool.h>

#include "imex/imex_grants.h"
#include "node/ops.h"

struct grants;

/* Finds the IMEX domain that the channel of a recorded claim depends on. False: it is not known; existing
 * grants then stay. */
typedef bool grants_domain_fn(void *u, const struct checkpoint_claim *entry, const struct node_device *d,
                              char ret[static 37]);

/* Creates the module's state. `settled` is called when the results of grants_get() and grants_renewed() may
 * have changed. `domain_of` NULL: our daemons run no IMEX for new claims. Grants from before a change of the
 * mode are then still removed together with their claims, because an old daemon may wait for that. */
struct grants *grants_new(uv_loop_t *loop, const struct claims *c, const char *plugin_dir,
                          grants_domain_fn *domain_of, void (*settled)(void *u), void *u);
void grants_free(struct grants *g);

/* Requests that the claim's file exists in the folder of this domain with this state. Both arguments must be
 * UIDs. */
void grants_put(struct grants *g, const char *domain_uid, const char *claim_uid, enum imex_grant_state state);
/* Sets the grant of a claim that is not prepared from `granting` back to `waiting`. */
void grants_wait(struct grants *g, const char *claim_uid);

enum grant_state {
        GRANT_ABSENT,  /* not requested */
        GRANT_PENDING, /* not on the disk yet */
        GRANT_WAITING,
        GRANT_GRANTING,
        GRANT_FAILED /* *ret_why has the reason; grants_put() retries */
};
enum grant_state grants_get(const struct grants *g, const char *domain_uid, const char *claim_uid,
                            const char **ret_why);

/* Rewrites the files of all prepared claims where they are missing: a daemon that has ended, or an
 * administrator, may have removed them. */
void grants_renew(struct grants *g);
/* Returns GRANT_GRANTING if all these files exist. Otherwise returns GRANT_PENDING, or GRANT_FAILED with the
 * reason in *ret_why. */
enum grant_state grants_renewed(const struct grants *g, const char **ret_why);

/* Removes the files of claims that are neither recorded nor being prepared. Call it after a change of the
 * table of claims or of the operations. The first call also reads the existing files. */
void grants_follow(struct grants *g);
/* Returns the domains for which a claim is prepared or is being prepared, possibly with duplicates. The list
 * is in the arena, and has room for n_more further entries and a NULL at its end. */
const char **grants_domains(const struct grants *g, size_t n_more, struct arena *a, size_t *ret_n);
/* Returns true if the folder of this domain may be removed at this moment; code that needs the folder must
 * wait. */
bool grants_clearing(const struct grants *g, const char *domain_uid);
