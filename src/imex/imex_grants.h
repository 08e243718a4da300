/* SPDX-License-Identifier: Apache-2.0 */
/* imex_grants: writes and reads the files with which the kubelet plugin shows the daemon which claims use a
 * domain on this node: "<folder of the domain>/grants/<UID of the claim>", with one word as content.
 *
 * The plugin
 *   1. holds the lock of imex_grants_lock() from before its first write here until its process ends;
 *   2. writes "granting" before it checks whether IMEX is ready;
 *   3. if IMEX is ready, writes the CDI file of the claim, and leaves "granting" in place;
 *      if not, writes "waiting", and returns to 2 before it checks again. The plugin does not wait for
 *      anything between 2 and 3, because a claim that is "granting" delays the daemon;
 *   4. removes the file after the CDI file, when the claim is unprepared.
 * The daemon withdraws readiness before it checks for grants, and keeps IMEX running while a claim uses the
 * domain. So either the plugin sees that readiness is withdrawn, or the daemon sees the claim. No claim gets
 * a channel while the IMEX process is about to stop.
 *
 * A claim with a grant uses the domain if its CDI file exists, regardless of the word in the grant, or if the
 * word is "granting" and a plugin process is alive. So these do not keep IMEX running: a claim that waits;
 * the grant of a plugin that was killed before it wrote the CDI file; and a claim that another driver has
 * unprepared, because that driver removes the CDI file but does not know these files. A grant that cannot be
 * read or has other content counts as use. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/file.h"

#define IMEX_GRANTS_DIR "grants"
/* The name of the lock file in the folder that contains the domains' folders. */
#define IMEX_GRANTS_LOCK "plugin.lock"

enum imex_grant_state {
        IMEX_GRANT_WAITING, /* the claim waits for IMEX */
        IMEX_GRANT_GRANTING /* the claim is prepared, or is about to be */
};

/* Writes a grant. `dir` is the folder of the domain, and is created if it does not exist. The UID must be
 * valid (str_is_uuid), because it becomes part of a path. Neither the folder of the domain nor the folder
 * "grants" may be a link, here and below: the daemon's container can create links there. A rename replaces an
 * earlier state. The file is not
 * synced to disk, because after a reboot no claim is prepared. */
int imex_grants_put(const char *dir, const char *claim_uid, enum imex_grant_state state, struct err *e);
/* Removes a grant. A missing file is success. Removes the folder "grants" together with the last file. If
 * `folder` is true, also removes the domain's folder if it is then empty. */
int imex_grants_remove(const char *dir, const char *claim_uid, bool folder, struct err *e);
/* Removes the folder "grants" if it is empty, as a process leaves it that is killed between the two steps of
 * imex_grants_remove(). Has no other effect, and does not report errors. */
void imex_grants_remove_empty(const char *dir);
/* Calls fn for each grant, like file_each() for the folder "grants". Skips names that are not UIDs. A missing
 * folder means that there are no grants. */
int imex_grants_each(const char *dir, file_entry_fn *fn, void *u, struct err *e);

/* Takes the plugin's lock. The plugin counts as alive while the descriptor *ret is open; the caller owns it.
 * Several processes may hold the lock at once, as during an update. `domains_dir` must exist. */
int imex_grants_lock(const char *domains_dir, int *ret, struct err *e);
/* Returns whether another process holds the lock, too. `lock` is the result of imex_grants_lock(). */
bool imex_grants_lock_shared(int lock);

/* How claims use a domain. If claims use it in different ways, the last value in this list counts. */
enum imex_use {
        IMEX_USE_NONE,     /* no claim uses the domain; claims may wait */
        IMEX_USE_GRANTING, /* a claim is being prepared. If the plugin dies then, no file changes, so
                              check again after a while */
        IMEX_USE_PREPARED, /* a claim is prepared */
        IMEX_USE_UNKNOWN   /* the use cannot be determined */
};

/* The claims of one domain that imex_grants_use() has seen prepared, zero-initialised. They count until their
 * CDI file is removed, even if their grant was removed before, for example by an administrator. The caller
 * frees `uids`, and sets n to 0 before it asks about another domain. */
struct imex_grants_seen {
        char (*uids)[37];
        size_t n, cap;
};

/* Where the daemon finds the grants; borrowed. */
struct imex_grants_folder {
        const char *domains_dir; /* contains a folder for each domain, and the lock */
        const char *cdi_dir;
        const char *cdi_prefix;        /* names of CDI files are "<prefix><UID of the claim>.yaml" */
        struct imex_grants_seen *seen; /* NULL: only claims with a grant count */
};

/* Returns how claims use the domain. IMEX_USE_UNKNOWN: *e contains the reason. */
enum imex_use imex_grants_use(const struct imex_grants_folder *p, const char *domain_uid, struct err *e);
