/* SPDX-License-Identifier: Apache-2.0 */
/* One turn of the node lock: what is queued is recorded, carried out, recorded again and answered together.
 * The disk is waited for in a thread, so a batch is a chain of steps, each the `done` of the job before it;
 * the lock is held from the first to the last. What comes meanwhile is of the next batch. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cd_plugin/claims_priv.h"

/* ---- what is due without being asked for ---- */

static bool expired(const struct checkpoint_claim *e, int64_t now) {
        /* Without a time it is of nobody knows when; a time in the future is of a clock that was set back. */
        return e->state == CHECKPOINT_ABORTED &&
               (e->aborted_at + ABORTED_TTL_S <= now || e->aborted_at > now + ABORTED_TTL_S);
}

static bool drop_expired(struct claims *c) {
        struct checkpoint_claim *e, *tmp;
        bool any = false;
        int64_t now = time(NULL);
        HASH_ITER (hh, c->journal.table.claims, e, tmp) {
                if (expired(e, now)) {
                        checkpoint_drop(&c->journal.table, e);
                        any = true;
                }
        }
        return any;
}

static void on_expiry(uv_timer_t *t) {
        claims__kick(t->data);
}

static void schedule_expiry(struct claims *c) {
        int64_t now = time(NULL), first = INT64_MAX;
        for (const struct checkpoint_claim *e = c->journal.table.claims; e; e = e->hh.next) {
                if (e->state == CHECKPOINT_ABORTED && e->aborted_at < first)
                        first = e->aborted_at;
        }
        if (first == INT64_MAX)
                uv_timer_stop(&c->expiry);
        else
                uv_timer_start(
                        &c->expiry, on_expiry,
                        (uint64_t)(first + ABORTED_TTL_S + 1 > now ? first + ABORTED_TTL_S + 1 - now : 1) *
                                1000,
                        0);
}

/* ---- the claims of a batch ---- */

/* All changes of the journal's file go through here; `next` follows when it is on the disk, or is not. */
struct store {
        struct disk_task task;
        const char *path;
        struct str text;
        struct stat stored;
};

static int store(struct disk_task *t, struct err *e) {
        struct store *s = (struct store *)t;
        return journal_store(s->path, s->text, &s->stored, e);
}

/* A Prepare that is still on its way when its claim is unprepared must not succeed any more. */
static void supersede(struct op *unprepare) {
        struct op *op;
        TAILQ_FOREACH (op, &unprepare->c->ops, link) {
                if (op->unprepare || op->number > unprepare->number || !streq(op->uid, unprepare->uid))
                        continue;
                if (op->phase != OP_BATCH)
                        plugin_metrics_attempt(op->c->o.metrics, true, 1);
                op->phase = OP_BATCH;
                op->verdict = VERDICT_FAIL;
                snprintf(op->msg, sizeof op->msg, "the claim was unprepared while it was being prepared");
        }
}

static void set_verdict(struct op *op, int r, const struct err *e) {
        op->verdict = r < 0 ? VERDICT_FAIL : VERDICT_GO;
        if (r < 0)
                snprintf(op->msg, sizeof op->msg, "%s", e->msg);
}

static void take_queued(struct claims *c) {
        struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase != OP_QUEUED)
                        continue;
                op->phase = OP_BATCH;
                plugin_metrics_attempt(c->o.metrics, !op->unprepare, 1);
        }
}

static void start_unprepares(struct claims *c) {
        struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase != OP_BATCH || !op->unprepare)
                        continue;
                supersede(op);
                op->task = unprepare_start(c, op->uid);
        }
}

static void end_unprepares(struct claims *c) {
        struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase != OP_BATCH || !op->unprepare)
                        continue;
                set_verdict(op, op->task->r, &op->task->e);
                if (op->verdict == VERDICT_GO && unprepare_end(c, op->uid))
                        c->changed = true;
                op->task = NULL;
        }
}

/* Judges, and records what will be tried or waited for, before any side effect. */
static void judge_all(struct claims *c) {
        struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase != OP_BATCH || op->unprepare || op->verdict == VERDICT_FAIL)
                        continue;
                op->verdict = prepare_judge(op);
                if ((op->verdict == VERDICT_GO || op->verdict == VERDICT_WAIT) && !op->recorded &&
                    !op->redo) {
                        checkpoint_put(&c->journal.table, op->uid, op->ns, op->name, op->status);
                        op->recorded = c->changed = true;
                }
        }
}

/* The table says from here on that they are prepared, so that an operation behind one in the same batch does
 * not get the same device; the file says so when it is true. */
static void start_prepares(struct claims *c) {
        struct op *op;
        struct err e;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase != OP_BATCH || op->unprepare || op->verdict != VERDICT_GO)
                        continue;
                /* Again, because an operation before it in this batch may have taken its device. */
                op->verdict = prepare_judge(op);
                if (op->verdict == VERDICT_GO && prepare_start(op, &e) < 0)
                        set_verdict(op, -1, &e);
        }
}

static void end_prepares(struct claims *c) {
        struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase != OP_BATCH || !op->task)
                        continue;
                set_verdict(op, op->task->r, &op->task->e);
                if (op->verdict == VERDICT_GO)
                        c->changed = true;
                else
                        prepare_revoke(op);
                op->task = NULL;
        }
}

/* What counted on a write that failed. The table is again what the file holds, if that can be told. */
static void write_failed(struct claims *c, const struct err *e) {
        struct op *op;
        log_error("cannot write the checkpoint", kv_err(e));
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase == OP_BATCH && (op->verdict == VERDICT_GO || op->verdict == VERDICT_WAIT))
                        set_verdict(op, -1, e);
        }
}

static void answer_one(struct op *op) {
        struct plugin_metrics *m = op->c->o.metrics;
        bool worked = op->verdict == VERDICT_GO || op->verdict == VERDICT_ANSWER;
        plugin_metrics_attempt(m, !op->unprepare, -1);
        if (worked)
                plugin_metrics_succeeded(m, !op->unprepare, (double)(uv_hrtime() - op->c->batch_ns) / 1e9);
        else if (op->verdict != VERDICT_FETCH)
                plugin_metrics_error(m, !op->unprepare, false);
        switch (op->verdict) {
        case VERDICT_GO:
        case VERDICT_ANSWER:
                claims__succeed(op);
                break;
        case VERDICT_FAIL:
                claims__fail(op, op->msg);
                break;
        case VERDICT_WAIT:
                claims__wait(op);
                break;
        case VERDICT_FETCH:
                if (op->dra)
                        prepare_fetch(op);
                else
                        claims__wait(op);
                break;
        }
}

static void answer_all(struct claims *c) {
        struct op *op, *next;
        for (op = TAILQ_FIRST(&c->ops); op; op = next) {
                next = TAILQ_NEXT(op, link);
                if (op->phase == OP_BATCH)
                        answer_one(op);
        }
}

/* Nothing is done for them, because of `e`. */
static void fail_all(struct claims *c, const struct err *e) {
        struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase == OP_BATCH)
                        set_verdict(op, -1, e);
        }
}

/* ---- the chain ---- */

static void tell_started(struct claims *c, const struct err *e) {
        void (*started)(void *, const struct err *) = c->started;
        c->started = NULL;
        if (started)
                started(c->started_u, e);
}

/* The plugin ends: what the thread had begun is whole, and the rest is as after a kill. */
static bool abandoned(struct claims *c) {
        if (!c->freed)
                return false;
        node_lock_release(c->lock);
        node_lock_free(c->lock);
        claims__closed(c);
        return true;
}

static void end(struct claims *c, const struct err *e) {
        node_lock_release(c->lock);
        disk_clear(c->disk);
        if (!e) {
                readiness_follow(c->readiness, &c->journal.table);
                plugin_metrics_prepared(c->o.metrics, &c->journal.table);
                schedule_expiry(c);
        }
        answer_all(c);
        c->in_batch = false;
        if (!e)
                claims__reevaluate(c);
        if (c->again)
                claims__kick(c);
        c->again = false;
        tell_started(c, e);
}

static void on_completed(void *u);
static void on_carried_out(void *u);
static void on_recorded(void *u);

/* `next` sees the outcome in c->written; without a change there is nothing to write, and no thread. */
static void record(struct claims *c, void (*next)(void *u)) {
        struct buf text;
        struct err e;
        c->written = NULL;
        if (c->changed && journal_begin(&c->journal, &text, &e) < 0) {
                write_failed(c, &e);
        } else if (c->changed) {
                struct store *s = disk_task(c->disk, sizeof *s, store);
                s->path = c->journal.path;
                s->text = (struct str){ arena_strndup(s->task.arena, text.p, text.n), text.n };
                buf_done(&text);
                c->written = &s->task;
        }
        c->changed = false;
        disk_run(c->disk, next, c);
}

static void end_record(struct claims *c) {
        const struct store *s = (const struct store *)(const void *)c->written;
        if (!s)
                return;
        journal_end(&c->journal, s->task.r < 0 ? NULL : &s->stored);
        if (s->task.r < 0)
                write_failed(c, &s->task.e);
        c->written = NULL;
}

static void on_completed(void *u) {
        struct claims *c = u;
        if (abandoned(c))
                return;
        end_record(c);
        end(c, NULL);
}

static void on_carried_out(void *u) {
        struct claims *c = u;
        if (abandoned(c))
                return;
        unprepare_end_leaving(c);
        end_prepares(c);
        record(c, on_completed);
}

static void on_recorded(void *u) {
        struct claims *c = u;
        if (abandoned(c))
                return;
        end_record(c);
        unprepare_start_leaving(c);
        start_prepares(c);
        disk_run(c->disk, on_carried_out, c);
}

static void on_unprepared(void *u) {
        struct claims *c = u;
        if (abandoned(c))
                return;
        end_unprepares(c);
        judge_all(c);
        record(c, on_recorded);
}

static void begin(struct claims *c) {
        enum journal_event event;
        _cleanup_(freep) char *aside = NULL;
        struct err e;
        c->in_batch = true;
        c->changed = false;
        c->batch_ns = uv_hrtime();
        take_queued(c);
        if (journal_sync(&c->journal, &event, &aside, &e) < 0 ||
            sweep_after_sync(c, event, aside, &c->changed, &e) < 0) {
                claims__tell_unreadable(c, &e);
                fail_all(c, &e);
                end(c, &e);
                return;
        }
        if (c->started) {
                sweep_files(c);
                c->changed = true; /* a first checkpoint, with the boot id */
        }
        c->changed = drop_expired(c) || c->changed;
        start_unprepares(c);
        disk_run(c->disk, on_unprepared, c);
}

static void on_lock(void *u, const struct err *e) {
        struct claims *c = u;
        struct op *op, *next;
        c->locking = false;
        if (!e) {
                begin(c);
                return;
        }
        for (op = TAILQ_FIRST(&c->ops); op; op = next) {
                next = TAILQ_NEXT(op, link);
                if (op->phase != OP_QUEUED)
                        continue;
                plugin_metrics_error(c->o.metrics, !op->unprepare, true);
                claims__fail(op, e->msg);
        }
        tell_started(c, e);
}

static void on_kick(uv_timer_t *t) {
        struct claims *c = t->data;
        if (c->locking)
                return; /* what is queued goes along when the lock comes */
        if (c->in_batch) {
                c->again = true;
        } else if (node_lock_try(c->lock)) {
                begin(c);
        } else {
                c->locking = true;
                node_lock_wait(c->lock, LOCK_LIMIT_MS, on_lock, c);
        }
}

void claims__kick(struct claims *c) {
        if (!uv_is_active((uv_handle_t *)&c->kick))
                uv_timer_start(&c->kick, on_kick, 0, 0);
}

static void on_closed(uv_handle_t *h) {
        claims__closed(h->data);
}

void batch_init(struct claims *c) {
        c->disk = disk_new(c->o.loop);
        STAILQ_INIT(&c->leaving);
        uv_timer_init(c->o.loop, &c->kick);
        uv_timer_init(c->o.loop, &c->expiry);
        c->kick.data = c->expiry.data = c;
        c->open += 2;
}

void batch_free(struct claims *c) {
        /* The lock goes when the thread has done what it is doing: a successor must not come in between. */
        if (disk_running(c->disk))
                c->open++;
        else
                node_lock_free(c->lock);
        unprepare_drop_leaving(c);
        uv_close((uv_handle_t *)&c->kick, on_closed);
        uv_close((uv_handle_t *)&c->expiry, on_closed);
}
