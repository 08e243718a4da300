/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: the containers of compute-domain-daemon and of compute-domain-agent: the supervisor of the one, the
 * resident of the other, as they are. */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct daemon;

/* Before the world begins: agents run nvidia-imex. */
void agents_use(void);
bool agents_used(void);

struct daemon_options {
        unsigned node;
        /* domain NULL: an agent, whose container has what the CDI file of its claim says. */
        const char *clique, *domain, *claim_uid, *pod, *pod_uid, *ip, *boot_id, *cdi_file;
};

/* Copies what it needs. */
struct daemon *daemon_start(uv_loop_t *loop, const struct daemon_options *o);
void daemon_stop(struct daemon *d); /* SIGTERM */
/* It has ended by itself: a daemon that was told to, an agent also when its container is to start anew. */
bool daemon_left(const struct daemon *d);
/* Its processes end without a word, if they have not left. NULL is allowed. */
void daemon_kill(struct daemon *d);
