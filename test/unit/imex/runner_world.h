/* SPDX-License-Identifier: Apache-2.0 */
/* runner_world: a runner with programs instead of nvidia-imex and nvidia-imex-ctl, and its last reports. */
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "imex/imex_runner.h"
#include "programs.h"

/* Instead of nvidia-imex: takes the ID in the file `id`, reports it as the real one does, and writes received
 * signals to `events`. */
#define IMEX                                                                                                 \
        "echo start >> events\n"                                                                             \
        "cp nodes.cfg nodes.seen; cp hosts hosts.seen\n"                                                     \
        "trap 'echo usr1 >> events; cp hosts hosts.seen' USR1\n"                                             \
        "trap 'echo term >> events; exit 0' TERM\n"                                                          \
        "[ -e before ] && . ./before\n"                                                                      \
        "[ -e id ] && echo \"[INFO] Identified this node as ID $(cat id), using bind IP of '10.0.0.1'\"\n"   \
        "echo $$ > up\n"                                                                                     \
        "while :; do sleep 1000 & wait $!; done"
/* Instead of nvidia-imex-ctl: while nvidia-imex lives, the answers are the content of files. */
#define CTL                                                                                                  \
        "echo \"$*\" >> asked\n"                                                                             \
        "[ -e hang ] && exec sleep 1000\n"                                                                   \
        "{ read -r pid < up && kill -0 $pid; } 2>/dev/null || { echo UNAVAILABLE; exit 1; }\n"               \
        "case \"$*\" in *-N*) cat domain;; *) cat status;; esac"
#define HOSTS "127.0.0.1\tlocalhost\n"

static struct imex_runner *runner;
static struct arena *paths; /* contains its strings */
static struct imex_report last;
static char last_status[64], last_reason[500], last_awaited[200], log_text[4096], trouble_text[400];
static unsigned reports, stopped, troubles;
static char phases[256]; /* all reported phases, one letter each */

static inline void on_changed(void *u, const struct imex_report *r) {
        reports++;
        last = *r;
        snprintf(last_status, sizeof last_status, "%s", imex_status_name(r->status));
        snprintf(last_reason, sizeof last_reason, "%s", r->reason);
        snprintf(last_awaited, sizeof last_awaited, "%s", r->awaited);
        if (strlen(phases) < sizeof phases - 1)
                phases[strlen(phases)] = "isrbxX"[r->phase];
        assert_true(r->ready == (r->phase == IMEX_READY));
        assert_true(r->ready == !*r->reason);
}

static inline void on_stopped(void *u) {
        stopped++;
}
static inline void on_output(void *u, struct str line) {
        snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), "%.*s\n", (int)line.n,
                 line.p);
}
static inline void on_trouble(void *u, const struct err *e) {
        troubles++;
        snprintf(trouble_text, sizeof trouble_text, "%s", e->msg);
}

struct setting {
        const char *identity, *imex_path;
        unsigned ask_idle_ms; /* 0: 100 */
};

static inline const struct imex_members *make_with(struct setting set) {
        const struct imex_members *known;
        struct err e;

        paths = arena_new(512);
        reports = stopped = troubles = 0;
        memset(phases, 0, sizeof phases);
        *last_status = *last_reason = *last_awaited = *log_text = *trouble_text = '\0';
        memset(&last, 0, sizeof last);
        assert_int_equal(
                imex_runner_new(uv_default_loop(),
                                &(struct imex_runner_options){
                                        .dir = dir,
                                        .hosts_path = arena_printf(paths, "%s/hosts", dir),
                                        .run_dir = arena_printf(paths, "%s/run", dir),
                                        .imex_path = set.imex_path ? set.imex_path
                                                                   : arena_printf(paths, "%s/imex", dir),
                                        .ctl_path = arena_printf(paths, "%s/ctl", dir),
                                        .own_ip = "10.0.0.1",
                                        .identity = set.identity ? set.identity : "test",
                                        .max_nodes = 4,
                                        .term_grace_ms = 300,
                                        .usr1_interval_ms = 150,
                                        .backoff_first_ms = 20,
                                        .backoff_max_ms = 100,
                                        .stable_ms = 2000,
                                        .ask_first_ms = 10,
                                        .ask_slow_ms = 40,
                                        .ask_idle_ms = set.ask_idle_ms ? set.ask_idle_ms : 100,
                                        .ask_timeout_ms = 400,
                                        .recovery_ms = 200,
                                        .changed = on_changed,
                                        .stopped = on_stopped,
                                        .output = on_output,
                                        .failing = on_trouble,
                                },
                                &runner, &known, &e),
                0);
        assert_int_equal(reports, 0);
        return known;
}

static inline void make_programs(void) {
        put_program("imex", IMEX);
        put_program("ctl", CTL);
        put("hosts", HOSTS, 0644);
        put("status", "READY\n", 0644);
        put("domain", "", 0644);
}

static inline void make(void) {
        make_programs();
        assert_null(make_with((struct setting){ 0 }));
}

static inline void free_runner(void) {
        imex_runner_free(runner);
        arena_free(TAKE(paths));
        runner = NULL;
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static inline int finish(void **state) {
        free_runner();
        return remove_dir(state);
}

static inline bool is_ready(void) {
        return last.ready;
}
static inline bool is_backoff(void) {
        return last.phase == IMEX_BACKOFF;
}

/* How often nvidia-imex-ctl had been called. */
static unsigned asked_before;
