/* SPDX-License-Identifier: Apache-2.0 */
/* state_file: keeps the daemon's state in the folder that it shares with the kubelet plugin
 * (imex/imex_state.h).
 *
 * The plugin believes in our file only: one that was removed or replaced is written again, in a folder that
 * is made again where that is possible. What cannot be written is withdrawn, tried again after 1 s, 2 s, ...
 * 30 s, logged once a cause, and told to the owner. Embedded, zero-initialised. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/loop.h"
#include "base/watch_file.h"
#include "imex/imex_state.h"

struct state_file {
        /* The owner's, before the start. */
        const char *dir;          /* borrowed */
        struct imex_state state;  /* boot, claim and pod; the rest by state_file_set() */
        void (*changed)(void *u); /* what state_file_error() says may have changed, outside of any call */
        void *u;

        uv_loop_t *loop;
        struct loop_timer retry;
        struct watch_file watch;
        int lock;
        bool written;
        unsigned failures; /* in a row */
        char why[240];     /* the last one */
};

void state_file_start(struct state_file *f, uv_loop_t *loop);
void state_file_stop(struct state_file *f);   /* the last content stays, and locked */
void state_file_unlock(struct state_file *f); /* the end: nobody believes in it any more */

void state_file_set(struct state_file *f, bool ready, int64_t index, const char *status, const char *reason);
/* Of nvidia-imex, "" when it is not known: told with the next state, or at once when one is in place. */
void state_file_set_version(struct state_file *f, const char *version);
/* The daemon has got SIGTERM: written with the next state, or at once when one is in place. It is not taken
 * back. */
void state_file_terminate(struct state_file *f);
/* Why the plugin does not know of the state, when that has lasted for more than one attempt; else NULL. */
const char *state_file_error(const struct state_file *f);
