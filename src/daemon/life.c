/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/life.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "imex/imex_grants.h"
#include "imex/imex_recovery.h"
#include "model/agent_seat.h"

struct life {
        struct life_options o;
        struct turns_seat seat;
        char *dir, *identity, *domain, *infix;
        struct imex_agent *agent;
        struct state_file file;
        struct watch_file grants;
        struct loop_timer retry; /* of that watch */
        uv_loop_t *loop;
        struct imex_report report;
        bool serving, leaving, ended;
};

enum { RETRY_MS = 1000 };

static void show_state(struct life *l) {
        if (l->leaving)
                return;
        if (l->report.ready && !l->serving) {
                l->serving = l->o.serves(l->o.u) == 0;
                if (!l->serving) {
                        loop_timer_start(&l->retry, RETRY_MS);
                        return;
                }
        }
        state_file_set_version(&l->file, l->report.version);
        state_file_set(&l->file, l->report.ready, l->report.index, l->report.status, l->report.reason);
}

static void on_report(void *u, const struct imex_report *r) {
        struct life *l = u;

        l->report = *r;
        show_state(l);
        l->o.changed(l->o.u);
}

static void on_stopped(void *u) {
        struct life *l = u;

        l->ended = true;
        l->o.changed(l->o.u);
}

static void on_output(void *u, struct str line) {
        const struct life *l = u;

        l->o.output(l->o.u, line);
}

static void on_failing(void *u, const struct err *e) {
        const struct life *l = u;

        l->o.failing(l->o.u, e);
}

static void on_state_error(void *u) {
        const struct life *l = u;

        l->o.changed(l->o.u);
}

/* Who uses it */

static void watch_grants(struct life *l);

static void on_grants(struct watch_file *w) {
        struct life *l = w->u;

        if (!w->active)
                watch_grants(l);
        l->o.changed(l->o.u);
}

static void on_retry(void *u) {
        struct life *l = u;

        if (!l->grants.active)
                watch_grants(l);
        show_state(l);
        l->o.changed(l->o.u);
}

static void watch_grants(struct life *l) {
        _cleanup_(freep) char *grants = file_join(l->dir, IMEX_GRANTS_DIR);
        _cleanup_(freep) char *path = file_join(grants, "");
        struct err e;

        l->grants = (struct watch_file){ .u = l };
        if (file_mkdirs(grants, 0755, &e) == 0 &&
            watch_file_start(&l->grants, l->loop, path, on_grants, &e) == 0)
                return;
        log_warn("cannot watch who uses this domain here, trying again", kv_str("domain", l->domain),
                 kv_err(&e));
        loop_timer_start(&l->retry, RETRY_MS);
}

/* One that cannot be seen may be there. */
static bool used(const struct life *l, const char **ret_why) {
        bool any;
        struct err e;

        if (imex_grants_any(l->dir, &any, &e) < 0) {
                *ret_why = "it cannot be seen whether a pod on this node uses it";
                return true;
        }
        *ret_why = any ? "a pod on this node uses it, or is about to" : "";
        return any;
}

/* Readiness that could not be withdrawn may be believed. */
static bool withdrawn(const struct life *l) {
        struct imex_state s;
        bool held;
        struct err e;

        if (imex_state_read(l->dir, &s, &held, &e) < 0)
                return e.kind == ERR_NOT_FOUND;
        return !s.ready || !held;
}

bool life_leave(struct life *l, bool whoever, const char **ret_why) {
        *ret_why = "";
        if (l->leaving)
                return true;
        if (!whoever && used(l, ret_why))
                return false;
        state_file_set(&l->file, false, l->report.index, IMEX_STATE_LEAVING, "IMEX is leaving this domain");
        if (!whoever && (used(l, ret_why) || !withdrawn(l))) {
                if (!**ret_why)
                        *ret_why = "its readiness cannot be withdrawn";
                show_state(l);
                return false;
        }
        l->leaving = true;
        imex_agent_stop(l->agent);
        return true;
}

bool life_leaving(const struct life *l) {
        return l->leaving;
}

bool life_ended(const struct life *l, bool *ret_clean) {
        *ret_clean = l->ended && !imex_agent_killed(l->agent);
        return l->ended;
}

/* What it knows */

void life_set_peers(struct life *l, const struct imex_peer *peers, size_t n, bool current) {
        if (l->leaving)
                return;
        if (peers)
                imex_agent_set_members(l->agent, &(struct imex_members){ .own_index = l->seat.index,
                                                                         .infix = l->infix,
                                                                         .peers = peers,
                                                                         .n_peers = n });
        imex_agent_set_current(l->agent, current);
}

void life_report(const struct life *l, struct imex_report *ret) {
        *ret = l->report;
}

const char *life_state_error(const struct life *l) {
        return state_file_error(&l->file);
}

/* Begin and end */

static int start_agent(struct life *l, struct err *e) {
        const struct imex_members *known;
        struct imex_agent_options o = l->o.imex;

        o.dir = l->dir;
        o.identity = l->identity;
        o.max_nodes = (unsigned)l->seat.slots;
        o.server_port = (unsigned)l->seat.port;
        o.dns_names = true;
        o.changed = on_report;
        o.stopped = on_stopped;
        o.output = on_output;
        o.failing = on_failing;
        o.u = l;
        if (imex_agent_new(l->loop, &o, &l->agent, &known, e) < 0)
                return -1;
        /* It may start without knowing anybody: who the others are comes with the next news. */
        if (!known)
                imex_agent_set_members(
                        l->agent, &(struct imex_members){ .own_index = l->seat.index, .infix = l->infix });
        imex_agent_report(l->agent, &l->report);
        return 0;
}

int life_new(uv_loop_t *loop, const struct life_options *o, struct life **ret, struct err *e) {
        _cleanup_(buf_done) struct buf seat = BUF_INIT(AGENT_SEAT_MAX);
        struct life *l = xnew(struct life);

        l->o = *o;
        l->loop = loop;
        l->seat = *o->seat;
        l->seat.domain = l->domain = xstrdup(o->seat->domain);
        l->seat.infix = l->infix = xstrdup(str_or(o->seat->infix, ""));
        l->dir = file_join(o->dir, l->domain);
        l->identity = xasprintf("boot=%s claim=%s domain=%s fabric=%s epoch=%lld ip=%s max=%lld", o->boot_id,
                                o->claim_uid, l->domain, o->fabric, (long long)l->seat.epoch, o->imex.own_ip,
                                (long long)l->seat.slots);
        l->file = (struct state_file){ .dir = l->dir, .changed = on_state_error, .u = l, .lock = -1 };
        snprintf(l->file.state.boot_id, sizeof l->file.state.boot_id, "%s", o->boot_id);
        snprintf(l->file.state.claim_uid, sizeof l->file.state.claim_uid, "%s", o->claim_uid);
        snprintf(l->file.state.pod_uid, sizeof l->file.state.pod_uid, "%s", o->pod_uid);
        agent_seat_render(o->fabric, l->domain, l->seat.index, l->seat.epoch, &seat);
        snprintf(l->file.state.seat, sizeof l->file.state.seat, "%s", buf_str(&seat));
        loop_timer_init(&l->retry, loop, on_retry, l);
        if (file_mkdirs(l->dir, 0755, e) < 0 || start_agent(l, e) < 0) {
                loop_timer_done(&l->retry);
                free(l->domain);
                free(l->infix);
                free(l->dir);
                free(l->identity);
                free(l);
                return -1;
        }
        state_file_start(&l->file, loop);
        watch_grants(l);
        show_state(l);
        *ret = l;
        return 0;
}

/* The folder of the grants is the plugin's. All else is ours, also what one before us was about to put in
 * place when it was killed. */
static int clear_one(void *u, int folder, const char *name, struct err *e) {
        const char *dir = u;

        if (streq(name, IMEX_GRANTS_DIR) || unlinkat(folder, name, 0) == 0 || errno == ENOENT)
                return 0;
        return err_errno(e, errno, "remove '%s/%.100s'", dir, name);
}

static int clear_files(char *dir, struct err *e) {
        return file_each(dir, clear_one, dir, e) < 0 && e->kind != ERR_NOT_FOUND ? -1 : 0;
}

/* A claim that came meanwhile has its own in it, and waits for the next time. */
static void clear_folder(const char *dir) {
        _cleanup_(freep) char *grants = file_join(dir, IMEX_GRANTS_DIR);

        (void)rmdir(grants);
        (void)rmdir(dir);
}

int life_clear_after(const char *dir, const char *domain, struct err *e) {
        _cleanup_(freep) char *folder = file_join(dir, domain);

        if (clear_files(folder, e) < 0)
                return -1;
        clear_folder(folder);
        return 0;
}

/* What nvidia-imex remembers goes first: while anything of it is there, the seat is not left. */
int life_clear(struct life *l, struct err *e) {
        if (imex_recovery_forget(l->o.imex.run_dir, e) < 0)
                return -1;
        state_file_stop(&l->file);
        if (clear_files(l->dir, e) < 0)
                return -1;
        watch_file_stop(&l->grants);
        clear_folder(l->dir);
        return 0;
}

void life_free(struct life *l) {
        if (!l)
                return;
        imex_agent_free(l->agent);
        state_file_stop(&l->file);
        state_file_unlock(&l->file);
        watch_file_stop(&l->grants);
        loop_timer_done(&l->retry);
        free(l->domain);
        free(l->infix);
        free(l->dir);
        free(l->identity);
        free(l);
}
