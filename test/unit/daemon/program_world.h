/* SPDX-License-Identifier: Apache-2.0 */
/* program_world: a program of ours that runs nvidia-imex, in its own process, in the folder of programs.h.
 * The test plays the API server. The test binary itself is the program, too. */
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <uv.h>

static uv_loop_t loop_storage;
#define TEST_LOOP (&loop_storage)
#include "programs.h"

#include "world/fake_server.h"

static struct fake_server *server;
static struct fake_conn *watch;
static pid_t program_pid; /* 0: no program runs */
static int exit_status;   /* of the last program; 128 and the signal's number, if a signal ended it */

/* `on_request` answers. A kubeconfig has the server's address. */
static inline void serve(int port, fake_fn *on_request) {
        server = fake_server_new(TEST_LOOP, port, on_request, NULL);
        _cleanup_(freep) char *text = xasprintf(
                "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"c\",\"contexts\":["
                "{\"name\":\"c\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}],\"clusters\":[{"
                "\"name\":\"c\",\"cluster\":{\"server\":\"http://127.0.0.1:%d\"}}],\"users\":[{"
                "\"name\":\"u\",\"user\":{}}]}",
                fake_server_port(server));
        put("kubeconfig", text, 0644);
}

static inline bool watching(void) {
        return watch != NULL;
}

/* Starts the program, which shares no state with the test. `before`: a command that starts it; NULL: none.
 * `words`: its arguments, NULL-terminated. */
static inline void run_program(const char *const *before, const char *const *words) {
        const char *argv[32] = { NULL };
        char self[256] = "";
        size_t n = 0;

        assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
        for (; before && before[n]; n++)
                argv[n] = before[n];
        argv[n++] = self;
        for (size_t i = 0; words[i]; i++)
                argv[n++] = words[i];
        program_pid = fork();
        if (program_pid == 0) {
                execvp(argv[0], (char *const *)(uintptr_t)argv);
                _exit(127);
        }
        exit_status = -1;
}

static inline bool exited(void) {
        int status;

        if (program_pid && waitpid(program_pid, &status, WNOHANG) == program_pid) {
                exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                program_pid = 0;
        }
        return !program_pid;
}

/* Ends the program and the server. */
static inline void end_world(void) {
        if (program_pid) {
                kill(program_pid, SIGKILL);
                within(5000, exited);
        }
        fake_server_free(server);
        loop_end(TEST_LOOP);
}

/* Outside a container, the IMEX of a killed program continues. */
static inline void kill_imex(void) {
        _cleanup_(freep) char *pids = get("pids");
        struct str rest = str_from(pids), line;
        int64_t pid;

        while (str_next_line(&rest, &line))
                if (str_to_i64(line, &pid))
                        kill((pid_t)-pid, SIGKILL);
}
