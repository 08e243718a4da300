/* SPDX-License-Identifier: Apache-2.0 */
/* process: starts a program. All programs are started by this module: child (runs a program once) and
 * imex_process (keeps a program running) use it.
 *
 * The program leads its own process group, which is killed as a whole. The kernel kills the program when our
 * process ends for any reason (PR_SET_PDEATHSIG; so the thread that starts a program must live until our
 * process ends, as the loop's thread does). The program inherits only /dev/null as stdin, one pipe as stdout
 * and stderr, and the descriptor pass_fd. It inherits no blocked or ignored signal. A library may open
 * descriptors without close-on-exec, so this module closes them in the program (close_range(2), or one by
 * one).
 * Loop thread only. No callback runs inside process_start(). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"

/* How long a killed program may take to end. After that the program counts as stuck, and does not keep the
 * loop running. A program that sleeps in the kernel (a driver's ioctl) survives SIGKILL until the system call
 * returns. */
#define PROCESS_REAP_GRACE_MS 500

struct process;

struct process_options {
        const char *const *argv; /* argv[0] is looked up in PATH of `env`, or of our environment */
        const char *const *env;  /* NULL: ours */
        const char *chroot;      /* NULL: none (needs CAP_SYS_CHROOT) */
        int pass_fd;             /* the program gets this descriptor as number 3; 0: none */
        /* Receives the program's output as it arrives. All output is passed before ended(), except the output
         * of processes that inherited the pipe and left the process group. */
        void (*output)(void *u, const char *p, size_t n);
        /* Called after the program has ended and is reaped, and its process group is killed. exit_status is
         * -1 if a signal ended the program, term_signal is 0 if the program exited. If `failed` is not NULL,
         * the program could not be executed, and the error names the program and the step that failed. The
         * process is freed after this callback returns. */
        void (*ended)(void *u, int exit_status, int term_signal, const struct err *failed);
        void *u;
};

/* The err.code that process_start() sets if a process with the same arguments is stuck. */
enum { PROCESS_STUCK = -100 };

/* Forks and returns. Does not wait for execve(2), which opens the program's file and can block as long as the
 * file system does. If the program cannot be executed, ended() reports it; -1 means that no process was
 * created (no descriptors or memory are left). The options' strings may be freed after the call.
 *
 * A killed process that has not ended after PROCESS_REAP_GRACE_MS is stuck in the kernel. Another process
 * with the same arguments would get stuck as well. So until the first has ended, the call fails with
 * ERR_RETRY and PROCESS_STUCK, and the message states since when the process has been stuck. A caller that
 * retries for days leaves only one process behind. */
int process_start(uv_loop_t *loop, const struct process_options *o, struct process **ret, struct err *e);
/* Kills the program if it is running, and stops all callbacks. Allowed inside the callbacks. NULL is allowed.
 */
void process_free(struct process *p);

/* Returns how many processes started by this module are stuck. */
size_t process_stuck(void);

pid_t process_pid(const struct process *p);
/* Returns whether process_start() started the process, and this module has not reaped it yet. */
bool process_has_pid(pid_t pid);
/* Sends a signal to the program only, not to its group. */
void process_signal(const struct process *p, int signum);
/* Sends SIGKILL to the process group. After PROCESS_REAP_GRACE_MS the process does not keep the loop running.
 */
void process_kill(struct process *p);
/* Reads the output that is already in the pipe, and calls output() from inside this function. */
void process_drain(struct process *p);
