/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: the containers of compute-domain-daemon: its supervisor, as it is. */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct daemon;

struct daemon_options {
        unsigned node;
        const char *clique, *domain, *claim_uid, *pod, *pod_uid, *ip, *boot_id;
};

/* Copies what it needs. */
struct daemon *daemon_start(uv_loop_t *loop, const struct daemon_options *o);
void daemon_stop(struct daemon *d); /* SIGTERM */
bool daemon_left(const struct daemon *d);
/* Its processes end without a word, if they have not left. NULL is allowed. */
void daemon_kill(struct daemon *d);
