/* SPDX-License-Identifier: Apache-2.0 */
/* imex_grants: the files by which the kubelet plugin shows the daemon which claims use a domain on this node:
 * "<folder of the domain>/grants/<UID of the claim>", with one word as content.
 *
 * The plugin
 *   1. holds the lock of imex_grants_lock() from before its first write here until its process ends;
 *   2. writes "granting" before it checks whether IMEX is ready;
 *   3. if IMEX is ready, writes the CDI file of the claim, and leaves "granting" in place;
 *      if not, writes "waiting", and returns to 2 before it checks again. It does not wait for anything in
 *      between, because a claim that is "granting" delays the daemon;
 *   4. removes the file after the CDI file, when the claim is unprepared.
 * The daemon withdraws readiness before it checks for grants, and continues while a claim uses the domain. So
 * either the plugin sees that readiness is withdrawn, or the daemon sees the claim. No claim gets a channel
 * on an IMEX that is about to stop.
 *
 * A claim uses the domain if its CDI file exists, with any content of the grant, or if it is "granting" and a
 * plugin process is alive. So these do not keep IMEX running: a claim that waits; the grant of a plugin that
 * was killed before it wrote the CDI file; and a claim that another driver has unprepared, which removes the
 * CDI file but does not know these files. Anything that cannot be read counts as use, and so does a file with
 * other content. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/file.h"

#define IMEX_GRANTS_DIR "grants"
/* In the folder that contains the domains' folders. */
#define IMEX_GRANTS_LOCK "plugin.lock"

enum imex_grant_state {
        IMEX_GRANT_WAITING, /* the claim waits for IMEX */
        IMEX_GRANT_GRANTING /* the claim is prepared, or is about to be */
};

/* `dir` is the folder of the domain, which is created if it does not exist. The UID must be valid
 * (str_is_uuid), because it becomes part of a path. A rename replaces an earlier state. Nothing is synced:
 * after a reboot no claim is prepared. */
int imex_grants_put(const char *dir, const char *claim_uid, enum imex_grant_state state, struct err *e);
/* A missing file is success. Removes the folder "grants" together with the last file. With `folder`, removes
 * the domain's folder, too, if it is empty then. */
int imex_grants_remove(const char *dir, const char *claim_uid, bool folder, struct err *e);
/* file_each() for the folder "grants". Skips names that are not UIDs. If there is no folder, there are no
 * grants. */
int imex_grants_each(const char *dir, file_entry_fn *fn, void *u, struct err *e);

/* The plugin counts as alive while *ret is open, which the caller owns. Several processes may hold the lock
 * at once, as during an update. `domains_dir` must exist. */
int imex_grants_lock(const char *domains_dir, int *ret, struct err *e);

/* Ordered by weight: of several claims, the heaviest one counts. */
enum imex_use {
        IMEX_USE_NONE,     /* there are at most claims that wait */
        IMEX_USE_GRANTING, /* a claim is being prepared. Nothing reports if the plugin dies in between, so
                              look again after a while */
        IMEX_USE_PREPARED, /* a claim is prepared */
        IMEX_USE_UNKNOWN   /* the use cannot be determined */
};

/* Where the daemon finds the grants; borrowed. */
struct imex_grants_folder {
        const char *domains_dir; /* contains a folder for each domain, and the lock */
        const char *cdi_dir;
        const char *cdi_prefix; /* names of CDI files are "<prefix><UID of the claim>.yaml" */
};

/* IMEX_USE_UNKNOWN: *e has the reason. */
enum imex_use imex_grants_use(const struct imex_grants_folder *p, const char *domain_uid, struct err *e);
