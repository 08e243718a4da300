/* SPDX-License-Identifier: Apache-2.0 */
/* state_file: keeps the daemon's state in the folder that it shares with the kubelet plugin
 * (imex/imex_state.h).
 *
 * The plugin accepts only a file whose lock the daemon holds. If the file is removed or replaced, it is
 * written again, and its folder is recreated if possible. If a write fails, the old file is removed, and the
 * write is retried after 1 s, 2 s, ... 30 s. Each cause is logged once and reported to the owner. Embedded,
 * zero-initialised. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/loop.h"
#include "base/watch_file.h"
#include "imex/imex_state.h"

struct state_file {
        /* The owner sets these before state_file_start(). */
        const char *dir;          /* borrowed */
        struct imex_state state;  /* boot, claim and pod; the rest by state_file_set() */
        /* The result of state_file_error() may have changed. Never called from inside a function of this
         * module. */
        void (*changed)(void *u);
        void *u;

        uv_loop_t *loop;
        struct loop_timer retry;
        struct watch_file watch;
        int lock;
        bool written,
                outdated;  /* outdated: state_file_set() must write although its arguments are the same */
        bool stopped;      /* nothing is written any more */
        unsigned failures; /* in a row */
        char why[240];     /* the last failure */
};

void state_file_start(struct state_file *f, uv_loop_t *loop);
/* Nothing is written from now on, whatever is called: the file keeps its last content, and stays locked. */
void state_file_stop(struct state_file *f);
void state_file_unlock(struct state_file *f); /* from now on the plugin ignores the file */

void state_file_set(struct state_file *f, bool ready, int64_t index, enum imex_status status,
                    const char *reason);
/* The version of nvidia-imex, "" when it is not known. Written with the next state, or at once when the file
 * exists. */
void state_file_set_version(struct state_file *f, const char *version);
/* The peers that nvidia-imex has lost (imex_links_lost()). Written by the next state_file_set(). */
void state_file_set_lost(struct state_file *f, bool known, const char *lost);
/* The daemon has received SIGTERM. Written with the next state, or at once when the file exists. This is
 * final. */
void state_file_terminate(struct state_file *f);
/* Why the plugin cannot see the state, if more than one attempt has failed; otherwise NULL. */
const char *state_file_error(const struct state_file *f);
