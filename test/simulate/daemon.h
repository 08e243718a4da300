/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: the containers of compute-domain-daemon, with the resident as it is. */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct daemon;

struct daemon_options {
        unsigned node;
        /* Its container has what the CDI file of its claim says. */
        const char *claim_uid, *pod, *pod_uid, *ip, *boot_id, *cdi_file;
};

/* Copies what it needs. */
struct daemon *daemon_start(uv_loop_t *loop, const struct daemon_options *o);
void daemon_stop(struct daemon *d); /* SIGTERM */
/* It has ended by itself: because it was to, or so that its container is started again. */
bool daemon_left(const struct daemon *d);
/* Its processes end without a word, if they have not left. NULL is allowed. */
void daemon_kill(struct daemon *d);
