/* SPDX-License-Identifier: Apache-2.0 */
/* host_imex: how the nvidia-imex that the host itself runs is doing, asked with the host's own
 * nvidia-imex-ctl. Never starts, stops or signals it.
 *
 * The tool is found under the driver root, the command socket where the operator says; the configuration,
 * which the state of the domain needs, is config.cfg beside it. Both are looked for in the driver root first,
 * where an IMEX in a driver container has them, and then at the same path here, where the host's folder is
 * mounted. Asked at a low rate, and at short intervals only while a Prepare waits; or, where the host's IMEX
 * is none of our business unless it is in the way, only while its socket is there, which inotify tells. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "cd_plugin/host_status.h"
#include "nvidia/driver_root.h"

struct host_imex;

struct host_imex_options { /* the strings are borrowed until host_imex_free() */
        struct driver_root root;
        const char *socket_path, *node;
        unsigned interval_ms;  /* between two questions while nobody waits */
        bool domain;           /* ask for the state of the domain too */
        bool only_with_socket; /* under the driver root; without one nobody is asked, and nothing polled */
        /* There is an answer, be it new or not; never from inside a call of ours. */
        void (*answered)(void *u);
        void *u;
};

struct host_imex *host_imex_new(uv_loop_t *loop, const struct host_imex_options *o);
void host_imex_free(struct host_imex *h);

const struct host_imex_status *host_imex_get(const struct host_imex *h);
/* The daemon has answered READY, and nothing else, to a question put after since_ns (uv_hrtime()). False: why
 * not, beginning with the node's name. */
bool host_imex_ready(const struct host_imex *h, uint64_t since_ns, char *reason, size_t n);
/* What the daemon says of itself, whatever its domain is. One that cannot be asked is not known, until it has
 * failed to answer twice; so is one that is nowhere to be asked. */
enum host_imex_own { HOST_IMEX_NOT_ASKED, HOST_IMEX_NOT_KNOWN, HOST_IMEX_READY, HOST_IMEX_NOT_READY };
enum host_imex_own host_imex_own(const struct host_imex *h);
/* Whether what it says now will last is of importance: ask at short intervals while that is so. */
void host_imex_settle(struct host_imex *h, bool on);

/* Somebody new waits for READY: ask now, then at growing intervals up to a second. */
void host_imex_poll_fast(struct host_imex *h);
/* Nobody waits any more. */
void host_imex_poll_slow(struct host_imex *h);
