/* SPDX-License-Identifier: Apache-2.0 */
/* hook_check: checks that the CDI hook works on this node, before a container needs it.
 *
 * Our hook runs its self-test (hook/commands.h): it does in its own mount namespaces what it does in
 * containers. NVIDIA's hook lists its commands, because older versions lack some that our CDI files use. */
#pragma once

#include <uv.h>

struct hook_check;

/* Called once, never before hook_check_start() returns. `problem` is for people; "": there is none. */
typedef void(hook_checked_fn)(void *u, const char *problem);

struct hook_check_options {
        const char *program; /* a path that runtimes see */
        const char *root;    /* NULL: our hook; else NVIDIA's, and this is the host's "/" in our container */
        hook_checked_fn *done;
        void *u;
};

/* Copies what it needs. */
struct hook_check *hook_check_start(uv_loop_t *loop, const struct hook_check_options *o);
/* Cancels the check if done() has not been called. NULL is allowed. */
void hook_check_free(struct hook_check *c);
