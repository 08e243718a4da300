/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: the containers of compute-domain-daemon, with the daemon's real code. */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct daemon;

struct daemon_options {
        unsigned node;
        /* The container gets the edits of the claim's CDI file. */
        const char *claim_uid, *pod, *pod_uid, *ip, *boot_id, *cdi_file;
};

/* Copies the options. */
struct daemon *daemon_start(uv_loop_t *loop, const struct daemon_options *o);
void daemon_stop(struct daemon *d); /* SIGTERM */
/* The program has ended by itself: after SIGTERM, or so that its container restarts. */
bool daemon_left(const struct daemon *d);
/* Kills its processes, if they still run. NULL is allowed. */
void daemon_kill(struct daemon *d);
