/* SPDX-License-Identifier: Apache-2.0 */
/* process: the one way in which we start a program; child (runs once) and imex_process (is kept running) are
 * made of it.
 *
 * The program leads a process group of its own, which is killed as a whole, and dies with us, however we end
 * (PR_SET_PDEATHSIG; a thread that starts a program must therefore live as long: the loop's does). It
 * inherits nothing: no descriptor but /dev/null as stdin, one pipe as stdout and stderr, and what is passed
 * on purpose, no blocked or ignored signal. A library may open descriptors without close-on-exec, so closing
 * is done here (close_range(2), Linux 5.11). Loop thread only; nothing is called back from inside
 * process_start(). */
#pragma once

#include <sys/types.h>
#include <uv.h>

#include "base/err.h"

/* How long a killed program may take to disappear before it counts as stuck, and the loop is not kept alive
 * for it any more. A program that sleeps in the kernel (a driver's ioctl) survives SIGKILL until that
 * returns. */
#define PROCESS_REAP_GRACE_MS 500

struct process;

struct process_options {
        const char *const *argv; /* argv[0] is looked up in PATH of `env`, or of our own environment */
        const char *const *env;  /* NULL: ours */
        const char *chroot;      /* NULL: none (needs CAP_SYS_CHROOT) */
        int pass_fd;             /* a descriptor that the program has as number 3; 0: none */
        /* Bytes that it printed, as they come; all of them come before its end is told, but for those that
         * others hold back who inherited the pipe and left its process group. */
        void (*output)(void *u, const char *p, size_t n);
        /* It has ended and is reaped, and its process group is killed. exit_status is -1 when a signal ended
         * it, term_signal 0 when it exited. failed: NULL, or the program could not be executed; the error
         * names it and the step that failed. The process is freed after this returns. */
        void (*ended)(void *u, int exit_status, int term_signal, const struct err *failed);
        void *u;
};

/* err.code of process_start(): a process with the same arguments is stuck. */
enum { PROCESS_STUCK = -100 };

/* Forks and returns. It does not wait for execve(2), which opens the program's file and blocks for as long as
 * its file system does. A program that cannot be executed is reported by ended(); -1 means that there is no
 * process (no descriptors or memory are left). The options' strings may be freed after the call.
 *
 * A killed process that has not ended after PROCESS_REAP_GRACE_MS is stuck in the kernel. Another one with
 * the same arguments would get stuck as well, so it is not started until the first has ended: ERR_RETRY,
 * PROCESS_STUCK, and the message says since when. A caller that retries for days leaves one process behind.
 */
int process_start(uv_loop_t *loop, const struct process_options *o, struct process **ret, struct err *e);
/* Nothing is called back any more; what still runs is killed. Allowed inside the callbacks. NULL is
 * allowed. */
void process_free(struct process *p);

/* How many processes of ours are stuck. */
size_t process_stuck(void);

pid_t process_pid(const struct process *p);
/* To the program alone, not to its group. */
void process_signal(const struct process *p, int signum);
/* SIGKILL to its group. From PROCESS_REAP_GRACE_MS later the loop is not kept alive for its end. */
void process_kill(struct process *p);
/* Reads now what it has printed so far: output() is called from inside. */
void process_drain(struct process *p);
