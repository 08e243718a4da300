/* SPDX-License-Identifier: Apache-2.0 */
/* hook_install: copies our CDI hook to a place where the container runtime finds it.
 *
 * The plugins' folder has the same path on the host, so CDI files can name a copy in it. The name contains a
 * hash of the content, and an existing file is never overwritten. So a container that starts during an
 * upgrade or a downgrade, or restarts after it, runs exactly the program that its CDI file names. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

#define HOOK_PREFIX "cdi-hook-"

/* Copies `program` into `dir`. Sets *ret to the path of the copy; the caller frees it. *ret is also set if
 * only the copying failed, so that the caller can retry. */
int hook_install(const char *program, const char *dir, char **ret, struct err *e);
/* Removes copies other than `current` that no CDI file of `kind` in cdi_root names, and temporary files of a
 * process that was killed while it copied. Removes no copy if a CDI file cannot be read. Errors are only
 * logged. */
void hook_remove_old(const char *dir, const char *current, const char *cdi_root, const char *kind);
/* Returns true if the folder is on a file system that is mounted with noexec. */
bool hook_folder_is_noexec(const char *dir);
