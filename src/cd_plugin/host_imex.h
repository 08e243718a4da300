/* SPDX-License-Identifier: Apache-2.0 */
/* host_imex: the state of the nvidia-imex that the host itself runs, queried with the host's own
 * nvidia-imex-ctl. Never starts, stops or signals it.
 *
 * The tool is searched for under the driver root. The operator configures the path of the command socket; the
 * configuration, which a query for the domain's state needs, is config.cfg beside it. Both are searched for
 * first in the driver root, where an IMEX in a driver container has them, and then at the same path in this
 * container, where the host's folder is mounted. Queries are rare, and frequent only while a Prepare waits.
 * In modes in which the host should not run IMEX, they are made only while its socket exists (inotify). */
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
        unsigned interval_ms;  /* between two queries while no Prepare waits */
        bool domain;           /* query the state of the domain too */
        bool only_with_socket; /* only query while the socket exists under the driver root */
        /* There is an answer, new or not; never from inside a call of this module. */
        void (*answered)(void *u);
        void *u;
};

struct host_imex *host_imex_new(uv_loop_t *loop, const struct host_imex_options *o);
void host_imex_free(struct host_imex *h);

const struct host_imex_status *host_imex_get(const struct host_imex *h);
/* IMEX has answered exactly READY to a query that began after since_ns (uv_hrtime()). False:
 * `reason` begins with the node's name. */
bool host_imex_ready(const struct host_imex *h, uint64_t since_ns, char *reason, size_t n);
/* The state of nvidia-imex itself, whatever its domain's state is. NOT_KNOWN until it has failed to answer
 * twice. NOT_ASKED also if there is nothing to query. */
enum host_imex_own { HOST_IMEX_NOT_ASKED, HOST_IMEX_NOT_KNOWN, HOST_IMEX_READY, HOST_IMEX_NOT_READY };
enum host_imex_own host_imex_own(const struct host_imex *h);
/* on: it matters whether the present state lasts, so query at short intervals. */
void host_imex_settle(struct host_imex *h, bool on);

/* Another Prepare waits for READY: query now, then at growing intervals up to a second. */
void host_imex_poll_fast(struct host_imex *h);
/* No Prepare waits any more. */
void host_imex_poll_slow(struct host_imex *h);
