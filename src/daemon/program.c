/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/program.h"

#include <signal.h>

#include "base/log.h"
#include "base/mem.h"

static void on_signal(void *u, int signum) {
        const struct program *p = u;

        if (signum == SIGUSR2) {
                p->dump(p->owner);
                return;
        }
        log_info("leaving", kv_int("signal", signum));
        p->stop(p->owner);
}

void program_start(struct program *p, void (*stop)(void *owner), void (*dump)(void *owner)) {
        static const int signums[ARRAY_LEN(p->signals)] = { SIGTERM, SIGINT, SIGUSR2 };

        *p = (struct program){ .loop = uv_default_loop(), .stop = stop, .dump = dump };
        /* Whoever reads our log may go; we stay. */
        signal(SIGPIPE, SIG_IGN);
        for (size_t i = 0; i < ARRAY_LEN(signums); i++)
                (void)loop_signal_init(&p->signals[i], p->loop, signums[i], on_signal, p);
        orphans_start(&p->orphans, p->loop);
}

void program_done(void *u) {
        const struct program *p = u;

        uv_stop(p->loop);
}

void program_stop(struct program *p) {
        for (size_t i = 0; i < ARRAY_LEN(p->signals); i++)
                loop_signal_done(&p->signals[i]);
        orphans_stop(&p->orphans);
}
