/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: runs containers of compute-domain-daemon, with the daemon's real code. */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct daemon;

struct daemon_options {
        unsigned node;
        /* The container gets the edits of the claim's CDI file. */
        const char *claim_uid, *pod, *pod_uid, *ip, *boot_id, *cdi_file;
};

/* Starts the container. Copies the options. */
struct daemon *daemon_start(uv_loop_t *loop, const struct daemon_options *o);
void daemon_stop(struct daemon *d); /* SIGTERM */
/* Returns true if the program has exited: after SIGTERM, or because it wants its container to restart. */
bool daemon_left(const struct daemon *d);
/* Kills the daemon's processes if they still run, and frees the object. NULL is allowed. */
void daemon_kill(struct daemon *d);
