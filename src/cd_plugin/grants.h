/* SPDX-License-Identifier: Apache-2.0 */
/* grants: the files by which whatever runs IMEX for a domain on this node knows that its channel is, or is
 * about to be, given out here (imex/imex_grants.h): one for each channel claim that is being prepared or is
 * prepared.
 *
 * A claim that waits is noted as waiting, and as being granted from before its last judgement on, until it is
 * unprepared. The files follow the table of prepared claims: at the start, what an earlier process left is
 * made equal to it. All changes are made in a thread. Loop thread only. */
#pragma once

#include <stdbool.h>

#include "imex/imex_grants.h"
#include "node/ops.h"

struct grants;

/* The IMEX domain that a recorded claim's channel counts on. False: it is not known; then what is noted
 * already stays. */
typedef bool grants_domain_fn(void *u, const struct checkpoint_claim *entry, const struct node_device *d,
                              char ret[static 37]);

/* `settled`: what grants_get() and grants_renewed() answer may have changed. `domain_of` NULL: no daemon of
 * ours runs IMEX for the claims that come now; what a daemon of before the mode changed waits for is removed
 * with its claim all the same. */
struct grants *grants_new(uv_loop_t *loop, const struct claims *c, const char *plugin_dir,
                          grants_domain_fn *domain_of, void (*settled)(void *u), void *u);
void grants_free(struct grants *g);

/* The file of this claim in the folder of this domain shall be there, in this state. Both must be UIDs. */
void grants_put(struct grants *g, const char *domain_uid, const char *claim_uid, enum imex_grant_state state);
/* A claim that is being granted, and is not prepared, waits again. */
void grants_wait(struct grants *g, const char *claim_uid);

enum grant_state {
        GRANT_ABSENT,  /* nobody asked for it */
        GRANT_PENDING, /* not on the disk yet */
        GRANT_WAITING,
        GRANT_GRANTING,
        GRANT_FAILED /* *ret_why is why it could not be written; grants_put() tries again */
};
enum grant_state grants_get(const struct grants *g, const char *domain_uid, const char *claim_uid,
                            const char **ret_why);

/* Writes the files of all prepared claims once more: a daemon that has ended may have removed them. */
void grants_renew(struct grants *g);
/* GRANT_GRANTING: all of them are there. Else GRANT_PENDING or GRANT_FAILED, as above. */
enum grant_state grants_renewed(const struct grants *g, const char **ret_why);

/* The table of the claims, or their operations, have changed: files of claims that are neither recorded nor
 * being prepared are removed. The first time it also looks what is there. */
void grants_follow(struct grants *g);
/* The domains of which a claim is being prepared or is prepared, some more than once, and `also`, when it is
 * not NULL; in the arena, NULL-terminated. */
const char *const *grants_domains(const struct grants *g, const char *also, struct arena *a);
/* The folder of this domain may be removed at this moment: whoever needs it waits. */
bool grants_clearing(const struct grants *g, const char *domain_uid);
