/* SPDX-License-Identifier: Apache-2.0 */
/* readiness: what our IMEX daemon on this node reports in its state file, which is in the folder of the
 * domain that it serves, and is watched with inotify. What it means: may_prepare.h.
 *
 * A READY that was left behind would release a pod without IMEX, so a state counts only if the daemon's claim
 * is prepared here now, the file is of this boot and of that claim, and a living process holds it locked. It
 * is read afresh for each answer. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "cd_plugin/may_prepare.h"
#include "node/checkpoint.h"

struct readiness;

struct readiness_options {      /* the strings are borrowed */
        const char *plugin_dir; /* holds domains/<uid>/ */
        const char *node, *boot_id;
        const struct checkpoint *table; /* what is prepared here; borrowed */
        void (*changed)(void *u);       /* some state file changed */
        /* The daemon of a domain was ready and no longer is. */
        void (*lost)(void *u, const char *domain_uid);
        /* The daemon of a domain cannot start because the host runs an nvidia-imex of its own. */
        void (*session_taken)(void *u);
        void *u;
};

struct readiness *readiness_new(uv_loop_t *loop, const struct readiness_options *o);
/* Follows the table: while our daemon's claim is prepared here, one watch for each of `granted`, the domains
 * of which a claim is prepared, or is being prepared (NULL-terminated; NULL: none). A domain that is not
 * followed any more leaves no empty folder. */
void readiness_follow(struct readiness *r, const char *const *granted);
/* What is seen now of the daemon that is prepared here, ours as what it is for this domain; the strings are
 * the table's. */
void readiness_look(const struct readiness *r, const char *domain_uid, struct prepare_daemon *ret);
/* Is it ours, and READY? *ret as above. False: `reason` as may_prepare_daemon() gives it. */
bool readiness_check(const struct readiness *r, const char *domain_uid, struct prepare_daemon *ret,
                     char *reason, size_t n);
void readiness_free(struct readiness *r);

/* "<plugin dir>/domains/<uid>", caller frees. The UID must be one (str_is_uuid), because it becomes a path.
 */
char *readiness_domain_dir(const char *plugin_dir, const char *domain_uid);
/* Makes the folder for a daemon of the Go driver, with what that needs of us. For node_driver. */
int readiness_prepare_dir(const char *plugin_dir, const char *domain_uid, bool again, struct err *e);
/* Removes the folder with all that is in it, the state file first. */
int readiness_remove_dir(const char *plugin_dir, const char *domain_uid, struct err *e);
/* A living daemon holds the state file of this folder: the one with this claim (NULL: any); or nobody can
 * tell. */
bool readiness_inhabited(const char *plugin_dir, const char *domain_uid, const char *claim_uid);
