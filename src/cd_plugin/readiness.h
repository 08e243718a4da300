/* SPDX-License-Identifier: Apache-2.0 */
/* readiness: reads the state file of our IMEX daemon on this node. The file is in the folder of the domain
 * that the daemon serves, and is watched with inotify. may_prepare.h describes the meaning of the state.
 *
 * A stale READY would start a pod without IMEX. So a state counts only if the daemon's claim is prepared here
 * now, the file was written in this boot and for that claim, and a living process holds the file's lock. The
 * module reads the file again for each answer. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "cd_plugin/may_prepare.h"
#include "node/checkpoint.h"

struct readiness;

struct readiness_options {      /* the strings are borrowed */
        const char *plugin_dir; /* holds domains/<uid>/ */
        const char *node, *boot_id;
        const struct checkpoint *table; /* the claims that are prepared here; borrowed */
        void (*changed)(void *u);       /* a state file has changed */
        /* Called when the daemon of a domain was READY and no longer is. */
        void (*lost)(void *u, const char *domain_uid);
        /* Called when the daemon of a domain cannot start because the host runs its own nvidia-imex. */
        void (*session_taken)(void *u);
        void *u;
};

struct readiness *readiness_new(uv_loop_t *loop, const struct readiness_options *o);
/* Updates the watches from the table. While our daemon's claim is prepared here, there is one watch for each
 * domain in `granted`. These are the domains for which a claim is prepared or is being prepared
 * (NULL-terminated; NULL: none). Removes the empty folder of a domain that is no longer watched. */
void readiness_follow(struct readiness *r, const char *const *granted);
/* Returns the present state of the daemon that is prepared here. For our daemon, it is the state in this
 * domain. The strings belong to the table. */
void readiness_get(const struct readiness *r, const char *domain_uid, struct prepare_daemon *ret);
/* Returns whether the daemon is ours and READY. *ret is set as by readiness_get(). False: `reason` is set as
 * by may_prepare_daemon(). */
bool readiness_check(const struct readiness *r, const char *domain_uid, struct prepare_daemon *ret,
                     char *reason, size_t n);
void readiness_free(struct readiness *r);

/* Returns "<plugin dir>/domains/<uid>"; the caller frees it. domain_uid must be a UID (str_is_uuid), because
 * it becomes a path. */
char *readiness_domain_dir(const char *plugin_dir, const char *domain_uid);
/* Creates the folder for a daemon of the Go driver, with the files that the daemon needs. For struct
 * node_driver. */
int readiness_prepare_dir(const char *plugin_dir, const char *domain_uid, bool again, struct err *e);
/* Removes the folder and its content, the state file first. */
int readiness_remove_dir(const char *plugin_dir, const char *domain_uid, struct err *e);
/* Returns whether a living daemon with this claim (NULL: with any claim) holds the state file of this folder.
 * Also returns true if that cannot be determined. */
bool readiness_has_daemon(const char *plugin_dir, const char *domain_uid, const char *claim_uid);
