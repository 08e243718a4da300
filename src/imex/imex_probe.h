/* SPDX-License-Identifier: Apache-2.0 */
/* imex_probe: asks nvidia-imex-ctl how a running nvidia-imex is, which has no event to tell it.
 *
 * One question at a time, in a child process with a time-out. While somebody waits the status is asked after
 * 20 ms, then at growing distances up to 1 s; when all is well every 30 s. The state of the domain (`-N -j`),
 * which is dearer because the daemon asks all its peers, is asked on request and then at growing distances up
 * to 30 s. Nothing is called back from inside a call of ours. */
#pragma once

#include <uv.h>

#include "imex/imex_ctl.h"

struct imex_probe;

struct imex_probe_options {
        /* Borrowed until imex_probe_free(). Without a config_path the domain cannot be asked for; with a
         * socket_path the status is asked for there, else where the configuration says. The paths are those
         * in the folder `chroot`, when that is not NULL. */
        const char *ctl_path, *config_path, *socket_path, *chroot;
        unsigned slots; /* how many nodes the configured list has; needed with a config_path */
        unsigned first_ms, slow_ms, idle_ms, timeout_ms;
        /* IMEX's word, or "" and `why`, a sentence fragment. */
        void (*status)(void *u, const char *word, const char *why);
        /* The domain, valid during the call; or NULL and `why`, a sentence fragment. */
        void (*domain)(void *u, const struct imex_ctl_domain *d, const char *why);
        void *u;
};

/* How much of the answer about a domain of so many nodes is read. The answer has each pair of nodes, in fewer
 * than 100 bytes as nvidia-imex-ctl 580 prints it with names of ours: 122 KiB for 36 nodes, 1.9 MB for 144,
 * 96 MB for 1,024. */
size_t imex_probe_max_output(unsigned slots);

struct imex_probe *imex_probe_new(uv_loop_t *loop, const struct imex_probe_options *o);
void imex_probe_free(struct imex_probe *p); /* allowed inside the callbacks; NULL is allowed */
/* uv_hrtime() of when the last status question that has brought a word was put; 0: none yet. */
uint64_t imex_probe_asked_ns(const struct imex_probe *p);

/* Somebody waits: ask after first_ms, then at growing distances. Asked again while it waits, it begins anew.
 */
void imex_probe_speed_up(struct imex_probe *p);
/* All is well: idle_ms from now on. */
void imex_probe_slow_down(struct imex_probe *p);
/* Ask for the domain too, first after `ms`. */
void imex_probe_domain(struct imex_probe *p, unsigned ms);
/* No more questions, and no answer to the one that is out. */
void imex_probe_stop(struct imex_probe *p);
