/* SPDX-License-Identifier: Apache-2.0 */
/* readiness: the state file of our IMEX daemon on this node, which is in the folder of the domain that it
 * serves, and is watched with inotify. may_prepare.h describes the meaning.
 *
 * A stale READY would release a pod without IMEX. So a state counts only if the daemon's claim is prepared
 * here now, the file is of this boot and of that claim, and a living process holds the file's lock. The file
 * is read again for each answer. */
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
        /* The daemon of a domain was ready and no longer is. */
        void (*lost)(void *u, const char *domain_uid);
        /* The daemon of a domain cannot start because the host runs its own nvidia-imex. */
        void (*session_taken)(void *u);
        void *u;
};

struct readiness *readiness_new(uv_loop_t *loop, const struct readiness_options *o);
/* Follows the table: while our daemon's claim is prepared here, there is one watch for each of `granted`, the
 * domains for which a claim is prepared or is being prepared (NULL-terminated; NULL: none). An empty folder
 * of a domain that is no longer followed is removed. */
void readiness_follow(struct readiness *r, const char *const *granted);
/* The present state of the daemon that is prepared here; for our daemon, its state in this domain. The
 * strings belong to the table. */
void readiness_get(const struct readiness *r, const char *domain_uid, struct prepare_daemon *ret);
/* Is it our daemon, and READY? *ret as above. False: `reason` as in may_prepare_daemon(). */
bool readiness_check(const struct readiness *r, const char *domain_uid, struct prepare_daemon *ret,
                     char *reason, size_t n);
void readiness_free(struct readiness *r);

/* "<plugin dir>/domains/<uid>", caller frees. Must be a UID (str_is_uuid), because it becomes a path. */
char *readiness_domain_dir(const char *plugin_dir, const char *domain_uid);
/* Makes the folder for a daemon of the Go driver, with the files that it needs. For node_driver. */
int readiness_prepare_dir(const char *plugin_dir, const char *domain_uid, bool again, struct err *e);
/* Removes the folder with its content, the state file first. */
int readiness_remove_dir(const char *plugin_dir, const char *domain_uid, struct err *e);
/* A living daemon holds the state file of this folder: the daemon with this claim (NULL: any). Also true if
 * that cannot be determined. */
bool readiness_has_daemon(const char *plugin_dir, const char *domain_uid, const char *claim_uid);
