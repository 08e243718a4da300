/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_hook: copies our CDI hook to a place where the container runtime finds it.
 *
 * The plugins' folder has the same path on the host, so CDI files can name a copy in it. The name contains a
 * hash of the content, and an existing file is never overwritten. So a container that starts during an
 * upgrade or a downgrade, or restarts after it, runs exactly the program that its CDI file names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/err.h"

#define HOOK_PREFIX "cdi-hook-"
/* The command that NVIDIA's hook lacks before 1.20.0. */
#define HOOK_PROFILE_COMMAND "update-application-profile"

/* Copies `program` into `dir`. Sets *ret to the path of the copy; the caller frees it. *ret is also set if
 * only the copying failed, so that the caller can retry. */
int gpu_hook_install(const char *program, const char *dir, char **ret, struct err *e);
/* Removes copies other than `current` that no CDI file of `kind` in cdi_root names, and temporary files of a
 * process that was killed while it copied. Removes no copy if a CDI file cannot be read. Errors are only
 * logged. */
void gpu_hook_remove_old(const char *dir, const char *current, const char *cdi_root, const char *kind);
/* Returns true if the folder is on a file system that is mounted with noexec. */
bool gpu_hook_is_noexec(const char *dir);

/* Writes the arguments before the command of a hook, and returns their number: the program's own name, and
 * for nvidia-ctk the word "hook", because its commands are those of NVIDIA's hook only below it. */
enum { HOOK_ARGS_MAX = 2 };
size_t gpu_hook_args(const char *program, const char *ret[static HOOK_ARGS_MAX]);

/* Checks that the CDI hook works on this node, before a container needs it.
 *
 * Our hook runs its self-test (hook/commands.h): it performs the operations that containers need in its own
 * mount namespaces. NVIDIA's hook is asked to list its commands, because older versions lack commands that
 * our CDI files use. Only HOOK_PROFILE_COMMAND may be missing. */
struct hook_check;

/* Called once, after gpu_hook_check() has returned. `problem` is a text for people; "": the hook works.
 * `no_profiles`: it lacks HOOK_PROFILE_COMMAND. */
typedef void(hook_checked_fn)(void *u, const char *problem, bool no_profiles);

struct hook_check_options {
        const char *program; /* path of the hook, as the container runtime sees it */
        const char *root;    /* NULL: our hook; otherwise NVIDIA's, below the host's "/" at this path */
        hook_checked_fn *done;
        void *u;
};

/* Starts the check. Copies the options. */
struct hook_check *gpu_hook_check(uv_loop_t *loop, const struct hook_check_options *o);
/* Frees the object, and cancels the check if it still runs; done() is then not called. NULL is allowed. */
void gpu_hook_check_free(struct hook_check *c);
