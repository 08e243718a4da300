/* SPDX-License-Identifier: Apache-2.0 */
/* imex_grants: the files by which the kubelet plugin shows the daemon which claims use a domain on this node:
 * "<folder of the domain>/grants/<UID of the claim>", with one word as content.
 *
 * The plugin
 *   1. holds the lock of imex_grants_lock() from before its first write here until its process ends;
 *   2. writes "granting" before it looks whether IMEX is ready;
 *   3. if IMEX is ready, writes the CDI file of the claim, and leaves "granting" in place;
 *      if not, writes "waiting", and goes back to 2 before it looks again. It does not wait for anything in
 *      between, because a claim that is "granting" delays the daemon;
 *   4. removes the file after the CDI file, when the claim is unprepared.
 * The daemon withdraws readiness before it looks, and goes on while a claim uses the domain. So either the
 * plugin sees that readiness is withdrawn, or the daemon sees the claim: no channel is given out on an IMEX
 * that is about to stop.
 *
 * A claim uses the domain if it has its CDI file, in whatever state it is, or if it is "granting" and a
 * plugin process is alive. So a claim that waits keeps no IMEX alive, nor does what a plugin left that was
 * killed before it wrote the CDI file, nor a claim that another driver has unprepared, which removes the CDI
 * file but knows nothing of the files here. What cannot be seen counts as use, and so does a file with any
 * other content. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/file.h"

#define IMEX_GRANTS_DIR "grants"
/* In the folder that holds the domains' folders. */
#define IMEX_GRANTS_LOCK "plugin.lock"

enum imex_grant_state {
        IMEX_GRANT_WAITING, /* the claim waits for IMEX */
        IMEX_GRANT_GRANTING /* the claim is prepared, or is about to be */
};

/* `dir` is the folder of the domain, which is made when it is not there. The UID must be one (str_is_uuid),
 * because it becomes a path. Another state is replaced by a rename. Nothing is synced: after a reboot
 * nobody holds anything. */
int imex_grants_put(const char *dir, const char *claim_uid, enum imex_grant_state state, struct err *e);
/* One that is not there is removed. The folder "grants" goes with the last, and with `folder` so does the
 * domain's, when nothing else is in it. */
int imex_grants_remove(const char *dir, const char *claim_uid, bool folder, struct err *e);
/* As file_each(), of the folder "grants"; what is not named by a UID is left out. No folder: none. */
int imex_grants_each(const char *dir, file_entry_fn *fn, void *u, struct err *e);

/* The plugin is alive for as long as *ret is open, which the caller owns. Several processes may hold the lock
 * at once, as during an update. `domains_dir` must exist. */
int imex_grants_lock(const char *domains_dir, int *ret, struct err *e);

/* In the order of their weight: of several claims the heaviest one counts. */
enum imex_use {
        IMEX_USE_NONE,     /* at most claims that wait */
        IMEX_USE_GRANTING, /* a claim is being prepared. Nothing reports the death of the plugin in between,
                              so look again after a while */
        IMEX_USE_PREPARED, /* a claim is prepared */
        IMEX_USE_UNKNOWN   /* that cannot be seen */
};

/* Where the daemon looks; borrowed. */
struct imex_grants_place {
        const char *domains_dir; /* holds a folder for each domain, and the lock */
        const char *cdi_dir;
        const char *cdi_prefix; /* of the names of the CDI files: "<prefix><UID of the claim>.yaml" */
};

/* IMEX_USE_UNKNOWN: *e has the reason. */
enum imex_use imex_grants_use(const struct imex_grants_place *p, const char *domain_uid, struct err *e);
