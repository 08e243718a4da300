/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serving.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "imex/imex_grants.h"
#include "imex/imex_recovery.h"
#include "model/assignment_id.h"

struct serving {
        struct serving_options o;
        struct decision_assignment assignment;
        char *dir, *identity, *domain, *infix;
        struct imex_runner *runner;
        struct state_file file;
        struct watch_file grants, cdi; /* the files by which claims use the domain */
        struct loop_timer retry;       /* for these watches, and for `ready` */
        uv_loop_t *loop;
        struct imex_report report;
        bool ready;                          /* the memory has it */
        char unsaved[IMEX_STATE_REASON_MAX]; /* why the memory does not have it; "": no attempt has failed */
        bool withdrawn, stopping, ended;
        bool unwatched; /* the failure was logged */
};

enum { RETRY_MS = 1000 };

/* ---- readiness ---- */

static void show_state(struct serving *s) {
        if (s->withdrawn)
                return;
        *s->unsaved = '\0';
        if (s->report.ready && !s->ready) {
                struct err e;

                s->ready = s->o.ready(s->o.u, &e) == 0;
                if (!s->ready) {
                        snprintf(s->unsaved, sizeof s->unsaved, "cannot save that nvidia-imex is READY: %s",
                                 e.msg);
                        loop_timer_start(&s->retry, RETRY_MS);
                }
        }
        state_file_set_version(&s->file, s->report.version);
        state_file_set_lost(&s->file, s->report.lost_known, s->report.lost);
        if (*s->unsaved)
                state_file_set(&s->file, false, s->report.index, IMEX_STATE_STARTING, s->unsaved);
        else
                state_file_set(&s->file, s->report.ready, s->report.index, s->report.status,
                               s->report.reason);
}

void serving_withdraw(struct serving *s) {
        s->withdrawn = true;
        state_file_set(&s->file, false, s->report.index, IMEX_STATE_LEAVING, "IMEX is leaving this domain");
}

void serving_terminate(struct serving *s) {
        state_file_terminate(&s->file);
}

void serving_show(struct serving *s) {
        if (!s->withdrawn || s->stopping)
                return;
        s->withdrawn = false;
        show_state(s);
}

/* The plugin may still see readiness that could not be withdrawn. */
bool serving_withdrawn(const struct serving *s) {
        struct imex_state state;
        bool held;
        struct err e;

        if (!s->withdrawn)
                return false;
        if (imex_state_read(s->dir, &state, &held, &e) < 0)
                return e.kind == ERR_NOT_FOUND;
        return !state.ready || !held;
}

/* ---- callbacks ---- */

static void on_report(void *u, const struct imex_report *r) {
        struct serving *s = u;

        s->report = *r;
        show_state(s);
        s->o.changed(s->o.u);
}

static void on_stopped(void *u) {
        struct serving *s = u;

        s->ended = true;
        s->o.changed(s->o.u);
}

static void serving_on_output(void *u, struct str line) {
        const struct serving *s = u;

        s->o.output(s->o.u, line);
}

static void serving_on_failing(void *u, const struct err *e) {
        const struct serving *s = u;

        s->o.failing(s->o.u, e);
}

static void on_state_error(void *u) {
        const struct serving *s = u;

        s->o.changed(s->o.u);
}

static void watch_claims(struct serving *s);

static void serving_on_claims(struct watch_file *w) {
        struct serving *s = w->u;

        watch_claims(s);
        s->o.changed(s->o.u);
}

static void serving_on_retry(void *u) {
        struct serving *s = u;

        watch_claims(s);
        show_state(s);
        s->o.changed(s->o.u);
}

static int serving_watch(struct serving *s, struct watch_file *w, const char *dir, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, "");

        if (w->active)
                return 0;
        *w = (struct watch_file){ .u = s };
        return watch_file_start(w, s->loop, path, serving_on_claims, e);
}

static void watch_claims(struct serving *s) {
        _cleanup_(freep) char *grants = file_join(s->dir, IMEX_GRANTS_DIR);
        struct err e;

        if (file_mkdirs(grants, 0755, &e) == 0 && serving_watch(s, &s->grants, grants, &e) == 0 &&
            serving_watch(s, &s->cdi, s->o.cdi_dir, &e) == 0) {
                s->unwatched = false;
                return;
        }
        if (!s->unwatched)
                log_warn("cannot watch which claims use this domain, will retry", kv_str("domain", s->domain),
                         kv_err(&e));
        s->unwatched = true;
        loop_timer_start(&s->retry, RETRY_MS);
}

/* ---- the end ---- */

void serving_stop(struct serving *s) {
        if (s->stopping)
                return;
        serving_withdraw(s);
        s->stopping = true;
        imex_runner_stop(s->runner);
}

bool serving_stopping(const struct serving *s) {
        return s->stopping;
}

bool serving_ended(const struct serving *s, bool *ret_clean) {
        *ret_clean = s->ended && !imex_runner_killed(s->runner);
        return s->ended;
}

/* ---- the other nodes ---- */

void serving_set_peers(struct serving *s, const struct imex_peer *peers, size_t n, bool current) {
        if (s->stopping)
                return;
        if (peers)
                imex_runner_set_members(s->runner, &(struct imex_members){ .own_index = s->assignment.index,
                                                                           .infix = s->infix,
                                                                           .peers = peers,
                                                                           .n_peers = n });
        imex_runner_set_current(s->runner, current);
}

void serving_report(const struct serving *s, struct imex_report *ret) {
        *ret = s->report;
}

const char *serving_state_error(const struct serving *s) {
        return state_file_error(&s->file);
}

const char *serving_unsaved(const struct serving *s) {
        return s->report.ready && *s->unsaved ? s->unsaved : NULL;
}

/* ---- start and end ---- */

static int start_runner(struct serving *s, struct err *e) {
        const struct imex_members *known;
        struct imex_runner_options o = s->o.imex;

        o.dir = s->dir;
        o.identity = s->identity;
        o.max_nodes = (unsigned)s->assignment.imex.slots;
        o.config.domain = s->assignment.imex;
        o.changed = on_report;
        o.stopped = on_stopped;
        o.output = serving_on_output;
        o.failing = serving_on_failing;
        o.u = s;
        if (imex_runner_new(s->loop, &o, &s->runner, &known, e) < 0)
                return -1;
        /* It may start without the other nodes: they come with the next update. */
        if (!known)
                imex_runner_set_members(s->runner, &(struct imex_members){ .own_index = s->assignment.index,
                                                                           .infix = s->infix });
        imex_runner_report(s->runner, &s->report);
        return 0;
}

static void free_texts(struct serving *s) {
        free(s->domain);
        free(s->infix);
        free(s->dir);
        free(s->identity);
        free(s);
}

int serving_new(uv_loop_t *loop, const struct serving_options *o, struct serving **ret, struct err *e) {
        _cleanup_(buf_done) struct buf id = BUF_INIT(ASSIGNMENT_ID_MAX);
        struct serving *s = xnew(struct serving);

        s->o = *o;
        s->loop = loop;
        s->assignment = *o->assignment;
        s->assignment.domain = s->domain = xstrdup(o->assignment->domain);
        s->assignment.imex.infix = s->infix = xstrdup(str_or(o->assignment->imex.infix, ""));
        s->dir = file_join(o->dir, s->domain);
        s->identity = xasprintf("boot=%s claim=%s domain=%s fabric=%s epoch=%lld ip=%s max=%lld", o->boot_id,
                                o->claim_uid, s->domain, o->fabric, (long long)s->assignment.epoch,
                                o->imex.own_ip, (long long)s->assignment.imex.slots);
        s->file = (struct state_file){ .dir = s->dir, .changed = on_state_error, .u = s, .lock = -1 };
        snprintf(s->file.state.boot_id, sizeof s->file.state.boot_id, "%s", o->boot_id);
        snprintf(s->file.state.claim_uid, sizeof s->file.state.claim_uid, "%s", o->claim_uid);
        snprintf(s->file.state.pod_uid, sizeof s->file.state.pod_uid, "%s", o->pod_uid);
        assignment_id_render(o->fabric, s->domain, s->assignment.index, s->assignment.epoch, &id);
        snprintf(s->file.state.assignment, sizeof s->file.state.assignment, "%s", buf_str(&id));
        s->file.state.terminating = o->terminating;
        loop_timer_init(&s->retry, loop, serving_on_retry, s);
        if (file_mkdirs(s->dir, 0755, e) < 0 || start_runner(s, e) < 0) {
                loop_timer_done(&s->retry);
                free_texts(s);
                return -1;
        }
        state_file_start(&s->file, loop);
        watch_claims(s);
        show_state(s);
        *ret = s;
        return 0;
}

/* The folder of the grants belongs to the plugin. Everything else is ours, including temporary files of a
 * killed process. */
static int clear_one(void *u, int folder, const char *name, struct err *e) {
        const char *dir = u;

        if (streq(name, IMEX_GRANTS_DIR) || unlinkat(folder, name, 0) == 0 || errno == ENOENT)
                return 0;
        return err_errno(e, errno, "remove '%s/%.100s'", dir, name);
}

static int clear_files(char *dir, struct err *e) {
        return file_each(dir, clear_one, dir, e) < 0 && e->kind != ERR_NOT_FOUND ? -1 : 0;
}

/* A claim that came in the meantime has its grant in the folder, and waits for the next assignment. */
static void clear_folder(const char *dir) {
        _cleanup_(freep) char *grants = file_join(dir, IMEX_GRANTS_DIR);

        (void)rmdir(grants);
        (void)rmdir(dir);
}

int serving_clear_after(const char *dir, const char *domain, struct err *e) {
        _cleanup_(freep) char *folder = file_join(dir, domain);

        if (clear_files(folder, e) < 0)
                return -1;
        clear_folder(folder);
        return 0;
}

static void stop_watches(struct serving *s) {
        watch_file_stop(&s->grants);
        watch_file_stop(&s->cdi);
        loop_timer_stop(&s->retry);
}

/* Removes the memory of nvidia-imex first: while any of it exists, the assignment has not ended. */
int serving_clear(struct serving *s, struct err *e) {
        if (imex_recovery_forget(s->o.imex.run_dir, e) < 0)
                return -1;
        state_file_stop(&s->file);
        if (clear_files(s->dir, e) < 0)
                return -1;
        stop_watches(s);
        clear_folder(s->dir);
        return 0;
}

void serving_free(struct serving *s) {
        if (!s)
                return;
        imex_runner_free(s->runner);
        state_file_stop(&s->file);
        state_file_unlock(&s->file);
        stop_watches(s);
        loop_timer_done(&s->retry);
        free_texts(s);
}
