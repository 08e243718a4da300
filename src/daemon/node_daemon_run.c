/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node_daemon_run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"

/* ---- orphans ---- */

static void orphans_on_sigchld(void *u, int signum) {
        for (;;) {
                siginfo_t info = { 0 };

                if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
                        return;
                /* base/process reaps its child on the same signal. Other children are reaped on the next
                 * signal. */
                if (process_has_pid(info.si_pid))
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

/* proc(5): from -1000 (never killed) to 1000. */
enum { OOM_STEP = 100, OOM_LAST = 1000 };

struct process {
        uv_loop_t *loop; /* the default one */
        struct node_daemon *resident;
        struct loop_signal signals[3];
        struct orphans orphans;
};

static void node_daemon_run_on_signal(void *u, int signum) {
        const struct process *p = u;

        if (signum == SIGUSR2) {
                node_daemon_dump(p->resident);
                return;
        }
        log_info("leaving", kv_int("signal", signum));
        node_daemon_stop(p->resident);
}

/* Called first: the first process of a container gets no signal for which it has no handler. */
static void handle_signals(struct process *p) {
        static const int signums[ARRAY_LEN(p->signals)] = { SIGTERM, SIGINT, SIGUSR2 };

        /* The process that reads our log may end; the daemon continues. */
        signal(SIGPIPE, SIG_IGN);
        for (size_t i = 0; i < ARRAY_LEN(signums); i++)
                (void)loop_signal_init(&p->signals[i], p->loop, signums[i], node_daemon_run_on_signal, p);
        orphans_start(&p->orphans, p->loop);
}

static void node_daemon_run_on_done(void *u) {
        const struct process *p = u;

        uv_stop(p->loop);
}

/* When memory is short, the kernel should kill this daemon before IMEX, because the end of IMEX breaks the
 * memory mappings of other nodes. Raising our own value needs no privilege, and IMEX keeps the old one. NULL:
 * it could not be raised. */
static const char *step_back(char place[static 16]) {
        static const char path[] = "/proc/self/oom_score_adj";
        _cleanup_(freep) char *text = NULL;
        char behind[16];
        int64_t own;
        size_t n;
        struct err e;

        if (file_read(path, sizeof behind, &text, &n, &e) == 0 &&
            str_to_i64(str_trim((struct str){ text, n }), &own)) {
                _cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

                snprintf(place, 16, "%d", (int)own);
                snprintf(behind, sizeof behind, "%d",
                         own + OOM_STEP < OOM_LAST ? (int)own + OOM_STEP : OOM_LAST);
                if (fd >= 0 && file_write_all(fd, path, behind, strlen(behind), &e) == 0)
                        return place;
        }
        log_warn("cannot change the order in which the kernel kills processes when memory is short: it may "
                 "kill IMEX before this daemon");
        return NULL;
}

int node_daemon_run(const struct node_daemon_config *c, struct err *e) {
        struct process p = { .loop = uv_default_loop() };
        struct node_daemon_config config = *c;
        char place[16], boot_id[37];

        if (file_boot_id(FILE_BOOT_ID_PATH, boot_id, e) < 0)
                return -1;
        handle_signals(&p);
        config.imex.oom_score_adj = step_back(place);
        config.boot_id = boot_id;
        int r = node_daemon_new(p.loop, &config, node_daemon_run_on_done, &p, &p.resident, e);
        if (r == 0)
                uv_run(p.loop, UV_RUN_DEFAULT);
        for (size_t i = 0; i < ARRAY_LEN(p.signals); i++)
                loop_signal_done(&p.signals[i]);
        orphans_stop(&p.orphans);
        node_daemon_free(p.resident);
        uv_run(p.loop, UV_RUN_DEFAULT);
        return r;
}
