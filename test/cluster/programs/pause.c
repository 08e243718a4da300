/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox container of every pod: it keeps the pod's namespaces until it gets a signal. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(int sig) {
        (void)sig;
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
}

static void quit(int sig) {
        _exit(128 + sig);
}

int main(void) {
        struct sigaction on_child = { .sa_handler = reap, .sa_flags = SA_NOCLDSTOP };
        struct sigaction on_end = { .sa_handler = quit };

        sigaction(SIGCHLD, &on_child, NULL);
        sigaction(SIGINT, &on_end, NULL);
        sigaction(SIGTERM, &on_end, NULL);
        for (;;)
                pause();
}
