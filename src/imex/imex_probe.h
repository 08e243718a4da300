/* SPDX-License-Identifier: Apache-2.0 */
/* imex_probe: queries the state of a running nvidia-imex with nvidia-imex-ctl, because nvidia-imex sends no
 * events.
 *
 * The module runs one query at a time, in a child process with a time-out. While the owner waits, the module
 * queries the status after 20 ms, then at growing intervals up to 1 s; otherwise every 30 s. The state of the
 * domain (`-N -j`) costs more, because nvidia-imex queries all its peers. The module queries it on request,
 * and then at growing intervals up to 30 s. No callback runs inside a call of this module. */
#pragma once

#include <uv.h>

#include "imex/imex_ctl.h"

struct imex_probe;

struct imex_probe_options {
        /* Borrowed until imex_probe_free(). Without a config_path the domain cannot be queried. With a
         * socket_path the status is queried there, otherwise at the address in the configuration. If `chroot`
         * is not NULL, the paths are relative to that folder. */
        const char *ctl_path, *config_path, *socket_path, *chroot;
        unsigned slots; /* number of nodes in the configured list; needed with a config_path */
        unsigned first_ms, slow_ms, idle_ms, timeout_ms;
        /* Called with the state that IMEX printed, or with IMEX_STATE_NONE and the reason `why`, a sentence
         * fragment. */
        void (*status)(void *u, enum imex_status status, const char *why);
        /* Called with the domain, valid during the call, or with NULL and the reason `why`, a sentence
         * fragment. */
        void (*domain)(void *u, const struct imex_ctl_domain *d, const char *why);
        void *u;
};

/* Returns how many bytes of the answer about the domain are read, for a domain of `slots` nodes. The answer
 * contains each pair of nodes. With our names, nvidia-imex-ctl 580 prints less than 100 bytes for each pair:
 * 122 KiB for 36 nodes, 1.9 MB for 144, 96 MB for 1,024. */
size_t imex_probe_max_output(unsigned slots);

struct imex_probe *imex_probe_new(uv_loop_t *loop, const struct imex_probe_options *o);
void imex_probe_free(struct imex_probe *p); /* allowed inside the callbacks; NULL is allowed */
/* Returns the uv_hrtime() at which the last answered status query began; 0: no query was answered yet. */
uint64_t imex_probe_asked_ns(const struct imex_probe *p);

/* Call it when the owner begins to wait: queries after first_ms, then at growing intervals. A second call
 * starts the intervals again. */
void imex_probe_speed_up(struct imex_probe *p);
/* Call it when the owner does not wait any longer: queries every idle_ms. */
void imex_probe_slow_down(struct imex_probe *p);
/* Also queries the domain, for the first time after `ms`. */
void imex_probe_domain(struct imex_probe *p, unsigned ms);
/* Call it when the state of the domain has changed: queries it soon, at most once a second, and then at
 * growing intervals. */
void imex_probe_domain_changed(struct imex_probe *p);
/* Stops all queries, and ignores the answer to the query in progress. */
void imex_probe_stop(struct imex_probe *p);
