/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/orphans.h"

#include <signal.h>
#include <sys/wait.h>

static void orphans_on_sigchld(void *u, int signum) {
        for (;;) {
                siginfo_t info = { 0 };

                if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
                        return;
                /* The leader of a group may be a child of ours, which its owner reaps on the same signal.
                 * Other children are reaped on the next signal. */
                if (getpgid(info.si_pid) == info.si_pid)
                        return;
                (void)waitpid(info.si_pid, NULL, WNOHANG);
        }
}

void orphans_start(struct orphans *o, uv_loop_t *loop) {
        (void)loop_signal_init(&o->sigchld, loop, SIGCHLD, orphans_on_sigchld, o);
        loop_signal_unref(&o->sigchld);
}

void orphans_stop(struct orphans *o) {
        loop_signal_done(&o->sigchld);
}
