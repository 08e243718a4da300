/* SPDX-License-Identifier: Apache-2.0 */
/* grants: the files that report to the daemon that runs IMEX for a domain on this node that a channel is, or
 * will soon be, in use here (imex/imex_grants.h): one file for each channel claim that is prepared or is
 * being prepared.
 *
 * The grant of a claim that waits is `waiting`. It is `granting` from before the last judgement of the claim
 * until the claim is unprepared. The files follow the table of prepared claims: at the start, the files of an
 * earlier process are brought in line with it. A thread makes all changes. Loop thread only. */
#pragma once

#include <stdbool.h>

#include "imex/imex_grants.h"
#include "node/ops.h"

struct grants;

/* The IMEX domain that a recorded claim's channel depends on. False: not known; existing grants then stay. */
typedef bool grants_domain_fn(void *u, const struct checkpoint_claim *entry, const struct node_device *d,
                              char ret[static 37]);

/* `settled`: the results of grants_get() and grants_renewed() may have changed. `domain_of` NULL: no daemon
 * of ours runs IMEX for new claims. Grants from before a change of the mode, which an old daemon may wait
 * for, are still removed with their claims. */
struct grants *grants_new(uv_loop_t *loop, const struct claims *c, const char *plugin_dir,
                          grants_domain_fn *domain_of, void (*settled)(void *u), void *u);
void grants_free(struct grants *g);

/* Requests the file of this claim in the folder of this domain, in this state. Both must be UIDs. */
void grants_put(struct grants *g, const char *domain_uid, const char *claim_uid, enum imex_grant_state state);
/* Sets the grant of a claim that is not prepared from `granting` back to `waiting`. */
void grants_wait(struct grants *g, const char *claim_uid);

enum grant_state {
        GRANT_ABSENT,  /* not requested */
        GRANT_PENDING, /* not on the disk yet */
        GRANT_WAITING,
        GRANT_GRANTING,
        GRANT_FAILED /* *ret_why has the reason; grants_put() tries again */
};
enum grant_state grants_get(const struct grants *g, const char *domain_uid, const char *claim_uid,
                            const char **ret_why);

/* Rewrites the files of all prepared claims: a daemon that has ended may have removed them. */
void grants_renew(struct grants *g);
/* GRANT_GRANTING: all these files exist. Otherwise GRANT_PENDING or GRANT_FAILED, as above. */
enum grant_state grants_renewed(const struct grants *g, const char **ret_why);

/* The table of the claims, or their operations, have changed: removes the files of claims that are neither
 * recorded nor being prepared. The first call also reads the existing files. */
void grants_follow(struct grants *g);
/* The domains for which a claim is prepared or is being prepared, possibly with duplicates, and `also` if it
 * is not NULL; in the arena, NULL-terminated. */
const char *const *grants_domains(const struct grants *g, const char *also, struct arena *a);
/* The folder of this domain may be removed at this moment: code that needs it must wait. */
bool grants_clearing(const struct grants *g, const char *domain_uid);
