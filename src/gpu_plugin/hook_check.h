/* SPDX-License-Identifier: Apache-2.0 */
/* hook_check: whether the CDI hook that CDI files name works on this node, before a container needs it.
 *
 * Ours runs its self-test (hook/commands.h): what it does in containers, in its own mount namespaces. One
 * of NVIDIA's is asked for the names of its commands, because older ones lack some that CDI files have. */
#pragma once

#include <uv.h>

struct hook_check;

/* Once, never from inside hook_check_start(): what is wrong, for people: "" nothing. */
typedef void(hook_checked_fn)(void *u, const char *problem);

struct hook_check_options {
        const char *program; /* a path that runtimes see */
        const char *root;    /* NULL: it is ours; else NVIDIA's, and this is where the host's "/" is here */
        hook_checked_fn *done;
        void *u;
};

/* Copies what it needs. */
struct hook_check *hook_check_start(uv_loop_t *loop, const struct hook_check_options *o);
/* done will not be called, or has been. NULL is allowed. */
void hook_check_free(struct hook_check *c);
