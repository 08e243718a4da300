/* SPDX-License-Identifier: Apache-2.0 */
/* hook_install: our CDI hook where the container runtime finds it.
 *
 * The plugins' folder is the host's, under the same path, so a copy in it can be named in CDI files. The name
 * has a hash of the content and a file that is there is never written over: a container that starts at that
 * moment, or starts again after an upgrade or a way back, runs the program that its CDI file names, whole. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

#define HOOK_PREFIX "cdi-hook-"

/* Copies `program` into `dir`. *ret is the path of the copy, the caller's to free; it is set, too, when only
 * the copying failed, which may be tried again with it. */
int hook_install(const char *program, const char *dir, char **ret, struct err *e);
/* Removes copies of other content that no CDI file of `kind` in cdi_root names; where a file cannot be read,
 * none; and what a process that was killed while it copied has left. Errors are of no consequence, and
 * logged. */
void hook_sweep(const char *dir, const char *current, const char *cdi_root, const char *kind);
/* The folder is mounted so that nothing in it can be run. */
bool hook_folder_is_noexec(const char *dir);
