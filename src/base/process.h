/* SPDX-License-Identifier: Apache-2.0 */
/* process: the only way to start a program. child (runs once) and imex_process (keeps it running) use it.
 *
 * The program leads its own process group, which is killed as a whole. It dies with our process, however that
 * ends (PR_SET_PDEATHSIG; so the thread that starts a program must live as long, as the loop's does). It
 * inherits only /dev/null as stdin, one pipe as stdout and stderr, and the descriptor that is passed on
 * purpose, and no blocked or ignored signal. A library may open descriptors without close-on-exec, so this
 * module closes them (close_range(2), Linux 5.11). Loop thread only. Nothing is called back from inside
 * process_start(). */
#pragma once

#include <sys/types.h>
#include <uv.h>

#include "base/err.h"

/* How long a killed program may take to end. After that it counts as stuck, and does not keep the loop
 * running. A program that sleeps in the kernel (a driver's ioctl) survives SIGKILL until that returns. */
#define PROCESS_REAP_GRACE_MS 500

struct process;

struct process_options {
        const char *const *argv; /* argv[0] is looked up in PATH of `env`, or of our environment */
        const char *const *env;  /* NULL: ours */
        const char *chroot;      /* NULL: none (needs CAP_SYS_CHROOT) */
        int pass_fd;             /* the program gets this descriptor as number 3; 0: none */
        /* The program's output, as it arrives. All of it is passed before ended(), except what processes
         * write that inherited the pipe and left the process group. */
        void (*output)(void *u, const char *p, size_t n);
        /* The program has ended and is reaped, and its process group is killed. exit_status is -1 when a
         * signal ended it, term_signal 0 when it exited. failed: NULL, or the program could not be executed;
         * the error names it and the step that failed. The process is freed after this returns. */
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
 * PROCESS_STUCK, and the message states since when. A caller that retries for days leaves one process
 * behind. */
int process_start(uv_loop_t *loop, const struct process_options *o, struct process **ret, struct err *e);
/* Kills the program if it runs, and stops all callbacks. Allowed inside the callbacks. NULL is allowed. */
void process_free(struct process *p);

/* How many processes that we started are stuck. */
size_t process_stuck(void);

pid_t process_pid(const struct process *p);
/* Signals the program alone, not its group. */
void process_signal(const struct process *p, int signum);
/* SIGKILL to its group. After PROCESS_REAP_GRACE_MS the process does not keep the loop running. */
void process_kill(struct process *p);
/* Reads now what the program has printed so far: output() is called from inside. */
void process_drain(struct process *p);
