/* SPDX-License-Identifier: Apache-2.0 */
/* readiness: is the IMEX daemon of a domain on this node ready? Told by the state file in the domain
 * directory, watched with inotify.
 *
 * A READY that was left behind would release a pod without IMEX, so a state counts only if the daemon's claim
 * is prepared here now, the file is of this boot and of that claim, and a living process holds it locked. It
 * is read afresh for each answer. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "model/agent_seat.h"
#include "node/checkpoint.h"

struct readiness;

struct readiness_options {      /* the strings are borrowed */
        const char *plugin_dir; /* holds domains/<uid>/ */
        const char *node, *boot_id;
        void (*changed)(void *u); /* some state file changed */
        /* The daemon of a domain was ready and no longer is. */
        void (*lost)(void *u, const char *domain_uid);
        /* The daemon of a domain cannot start because the host runs an nvidia-imex of its own. */
        void (*session_taken)(void *u);
        void *u;
};

struct readiness *readiness_new(uv_loop_t *loop, const struct readiness_options *o);
/* Follows the table: one watch for each daemon claim that is prepared here; where that is an agent's, for
 * each of `granted`, the domains of which a claim is prepared, or is being prepared (NULL-terminated; NULL:
 * none). An agent's domain that is not followed any more leaves no empty folder. */
void readiness_follow(struct readiness *r, const struct checkpoint *table, const char *const *granted);
/* True: it is ready, an agent in the seat *ret_seat, of which the fabric's object must be asked then. False:
 * `reason` says why, beginning with the node's name, and *ret_in_the_way whether it is because another
 * domain's daemon is still here. */
bool readiness_check(const struct readiness *r, const struct checkpoint *table, const char *domain_uid,
                     bool *ret_in_the_way, struct agent_seat *ret_seat, char *reason, size_t n);
void readiness_free(struct readiness *r);

/* "<plugin dir>/domains/<uid>", caller frees. The UID must be one (str_is_uuid), because it becomes a path.
 */
char *readiness_domain_dir(const char *plugin_dir, const char *domain_uid);
/* Makes the folder and removes a state file that an earlier daemon left in it (unless keep_state: that daemon
 * may be alive). */
int readiness_prepare_dir(const char *plugin_dir, const char *domain_uid, bool keep_state, struct err *e);
/* Removes the folder with all that is in it, the state file first. */
int readiness_remove_dir(const char *plugin_dir, const char *domain_uid, struct err *e);
/* A living daemon holds the state file of this folder: the one with this claim (NULL: any); or nobody can
 * tell. */
bool readiness_inhabited(const char *plugin_dir, const char *domain_uid, const char *claim_uid);
