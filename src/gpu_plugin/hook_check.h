/* SPDX-License-Identifier: Apache-2.0 */
/* hook_check: checks that the CDI hook works on this node, before a container needs it.
 *
 * Our hook runs its self-test (hook/commands.h): it performs the operations that containers need in its own
 * mount namespaces. NVIDIA's hook is asked to list its commands, because older versions lack commands that
 * our CDI files use. */
#pragma once

#include <uv.h>

struct hook_check;

/* Called once, after hook_check_start() has returned. `problem` is a text for people; "": the hook works. */
typedef void(hook_checked_fn)(void *u, const char *problem);

struct hook_check_options {
        const char *program; /* path of the hook, as the container runtime sees it */
        const char *root;    /* NULL: our hook; otherwise NVIDIA's, below the host's "/" at this path */
        hook_checked_fn *done;
        void *u;
};

/* Starts the check. Copies the options. */
struct hook_check *hook_check_start(uv_loop_t *loop, const struct hook_check_options *o);
/* Frees the object, and cancels the check if it still runs; done() is then not called. NULL is allowed. */
void hook_check_free(struct hook_check *c);
