/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/state_file.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stderr.h"

enum { RETRY_FIRST_MS = 1000, RETRY_MAX_MS = 30000 };

static void state_file_check(struct state_file *f);

static void state_file_on_change(struct watch_file *w) {
        struct state_file *f = w->u;

        if (f->written)
                state_file_check(f);
}

/* The watch follows its folder. If it cannot start, because the folder has just been removed, it is
 * retried. */
static void state_file_watch(struct state_file *f) {
        _cleanup_(freep) char *path = file_join(f->dir, IMEX_STATE_FILE);
        struct err e;

        if (f->watch.active)
                return;
        f->watch = (struct watch_file){ .u = f };
        if (watch_file_start(&f->watch, f->loop, path, state_file_on_change, &e) == 0 || !f->written)
                return;
        log_warn("cannot watch the state file, will retry", kv_err(&e));
        loop_timer_start(&f->retry, RETRY_FIRST_MS);
}

/* If no new file can withdraw readiness, the file is removed. */
static void state_file_withdraw(struct state_file *f) {
        _cleanup_(freep) char *path = file_join(f->dir, IMEX_STATE_FILE);
        struct err e;

        if (file_remove(path, &e) < 0 && f->failures == 1)
                log_error("cannot remove the state file", kv_err(&e));
        if (f->lock >= 0)
                close(TAKE_FD(f->lock));
}

/* A removed folder can be recreated, unless it was mounted here: then the mount shows a folder that has no
 * name any longer, and no file can be created in it. */
static int write_anywhere(struct state_file *f, struct err *e) {
        struct stat st;
        int r = imex_state_write(f->dir, &f->state, &f->lock, e);

        if (r == 0)
                return 0;
        if (stat(f->dir, &st) == 0 && st.st_nlink == 0)
                return err_set(e, ERR_NOT_FOUND, ENOENT,
                               "the folder '%s', which is shared with the kubelet plugin, was removed from "
                               "the node; delete this pod, so that its replacement gets a new one",
                               f->dir);
        if (stat(f->dir, &st) == 0 || errno != ENOENT)
                return -1;
        log_warn("the folder that is shared with the kubelet plugin was removed: recreating it",
                 kv_str("path", f->dir));
        if (file_mkdirs(f->dir, 0755, e) < 0)
                return -1;
        return imex_state_write(f->dir, &f->state, &f->lock, e);
}

static void state_file_put(struct state_file *f) {
        unsigned pause_ms = RETRY_FIRST_MS;
        struct err e;

        if (f->stopped)
                return;
        f->state.generation++;
        f->outdated = false;
        f->written = write_anywhere(f, &e) == 0;
        if (f->written) {
                if (f->failures)
                        log_info("the state file can be written again");
                f->failures = 0;
                *f->why = '\0';
                state_file_watch(f);
                return;
        }
        for (unsigned i = 0; i < f->failures && pause_ms < RETRY_MAX_MS; i++)
                pause_ms *= 2;
        f->failures++;
        if (!streq(f->why, e.msg))
                log_error("cannot write the state file, will retry", kv_err(&e));
        snprintf(f->why, sizeof f->why, "%s", e.msg);
        state_file_withdraw(f);
        loop_timer_start(&f->retry, pause_ms < RETRY_MAX_MS ? pause_ms : RETRY_MAX_MS);
}

/* Whether our file is in place. The file of another daemon stays while that daemon holds its lock. That can
 * only be one that is ending after a forced deletion: two daemons that insist would replace each other's file
 * forever. */
static void state_file_check(struct state_file *f) {
        _cleanup_(freep) char *path = file_join(f->dir, IMEX_STATE_FILE);
        struct stat ours, there;
        struct imex_state other;
        bool held = false;
        struct err e;

        if (fstat(f->lock, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
            ours.st_dev == there.st_dev)
                return;
        if (imex_state_read(f->dir, &other, &held, &e) == 0 && held) {
                loop_timer_start(&f->retry, RETRY_FIRST_MS);
                return;
        }
        log_warn("the state file was removed or replaced: writing it again", kv_str("path", path));
        state_file_put(f);
}

static void state_file_on_retry(void *u) {
        struct state_file *f = u;
        bool failed = state_file_error(f) != NULL;

        if (f->written)
                state_file_check(f);
        else
                state_file_put(f);
        if (f->written)
                state_file_watch(f);
        if ((state_file_error(f) != NULL) != failed)
                f->changed(f->u);
}

void state_file_start(struct state_file *f, uv_loop_t *loop) {
        f->lock = -1;
        f->loop = loop;
        loop_timer_init(&f->retry, loop, state_file_on_retry, f);
        state_file_watch(f);
}

void state_file_stop(struct state_file *f) {
        f->stopped = true;
        loop_timer_done(&f->retry);
        watch_file_stop(&f->watch);
}

void state_file_unlock(struct state_file *f) {
        if (f->lock >= 0)
                close(TAKE_FD(f->lock));
}

void state_file_set(struct state_file *f, bool ready, int64_t index, enum imex_status status,
                    const char *reason) {
        BUG_ON(status >= IMEX_STATES || !reason);
        struct imex_state was = f->state;

        f->state.ready = ready;
        f->state.index = index;
        snprintf(f->state.status, sizeof f->state.status, "%s", imex_status_name(status));
        snprintf(f->state.reason, sizeof f->state.reason, "%s", reason);
        if (!f->written || f->outdated || was.ready != ready || was.index != index ||
            !streq(was.status, f->state.status) || !streq(was.reason, f->state.reason))
                state_file_put(f);
}

void state_file_set_version(struct state_file *f, const char *version) {
        if (streq(f->state.version, version))
                return;
        snprintf(f->state.version, sizeof f->state.version, "%s", version);
        if (f->written)
                state_file_put(f);
}

void state_file_set_lost(struct state_file *f, bool known, const char *lost) {
        if (f->state.lost_known == known && streq(f->state.lost, lost))
                return;
        f->state.lost_known = known;
        snprintf(f->state.lost, sizeof f->state.lost, "%s", lost);
        f->outdated = true;
}

void state_file_terminate(struct state_file *f) {
        if (f->state.terminating)
                return;
        f->state.terminating = true;
        if (f->written)
                state_file_put(f);
}

const char *state_file_error(const struct state_file *f) {
        return f->failures > 1 ? f->why : NULL;
}
