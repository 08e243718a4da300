/* SPDX-License-Identifier: Apache-2.0 */
#include "node/batch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/reasons.h"
#include "base/log.h"
#include "node/fetch.h"
#include "node/prepare_verdict.h"
#include "node/claim_gc.h"
#include "node/retry.h"
#include "node/waits.h"

enum {
        LOCK_LIMIT_MS = 10000,
        ABORTED_TTL_S = 90, /* twice the time that the kubelet waits */
};

/* ---- expiry ---- */

static bool expired(const struct checkpoint_claim *e, int64_t now) {
        /* Without a time its age is unknown; a time in the future is of a clock that was set back. */
        return e->state == CHECKPOINT_ABORTED &&
               (e->aborted_at + ABORTED_TTL_S <= now || e->aborted_at > now + ABORTED_TTL_S);
}

static bool batch_drop_expired(struct batch *b) {
        struct checkpoint_claim *e, *tmp;
        bool any = false;
        int64_t now = time(NULL);
        HASH_ITER (hh, b->c->journal.table.claims, e, tmp) {
                if (expired(e, now)) {
                        checkpoint_drop(&b->c->journal.table, e);
                        any = true;
                }
        }
        return any;
}

static void schedule_expiry(struct batch *b) {
        int64_t now = time(NULL), first = INT64_MAX;
        for (const struct checkpoint_claim *e = b->c->journal.table.claims; e; e = e->hh.next) {
                if (e->state == CHECKPOINT_ABORTED && e->aborted_at < first)
                        first = e->aborted_at;
        }
        if (first == INT64_MAX)
                loop_timer_stop(&b->expiry);
        else
                loop_timer_start(
                        &b->expiry,
                        (uint64_t)(first + ABORTED_TTL_S + 1 > now ? first + ABORTED_TTL_S + 1 - now : 1) *
                                1000);
}

/* ---- the claims of a batch ---- */

/* All changes of the journal's file happen here; `next` follows when the file is on the disk, or has failed.
 */
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

/* A Prepare that has not finished when its claim is unprepared must not succeed any more. */
static void supersede(struct op *unprepare) {
        struct op *op;
        retry_forget(unprepare->c, unprepare->uid);
        TAILQ_FOREACH (op, &unprepare->c->ops, link) {
                if (op->unprepare || op->number > unprepare->number || !streq(op->uid, unprepare->uid))
                        continue;
                if (op->phase != OP_BATCH) {
                        node_metrics_attempt(op->c->o.metrics, true, 1);
                        op_set_phase(op, OP_BATCH);
                }
                op->verdict = VERDICT_FAIL;
                snprintf(op->msg, sizeof op->msg, "the claim was unprepared while it was being prepared");
        }
}

static void set_verdict(struct op *op, int r, const struct err *e) {
        op->verdict = r < 0 ? VERDICT_FAIL : VERDICT_GO;
        if (r < 0)
                snprintf(op->msg, sizeof op->msg, "%s", e->msg);
}

/* If the driver works for the claim, the operation waits; the batch that continues with that work takes it.
 */
static void take_queued(struct batch *b) {
        struct op *op;
        TAILQ_FOREACH (op, &b->c->ops, link) {
                if (op->phase != OP_QUEUED || ops_working(b->c, op->uid))
                        continue;
                op_set_phase(op, OP_BATCH);
                node_metrics_attempt(b->c->o.metrics, !op->unprepare, 1);
        }
}

/* The driver works for its claim because of an operation of this batch: the next batch continues with it. */
static bool comes_too_early(struct batch *b, struct op *op) {
        if (!ops_working(b->c, op->uid))
                return false;
        op_set_phase(op, OP_QUEUED);
        node_metrics_attempt(b->c->o.metrics, !op->unprepare, -1);
        return true;
}

/* This batch carries out another Prepare of the claim. The claim's entry is revoked if that one fails, so it
 * is no answer yet: the next batch judges again. */
static bool comes_second(struct batch *b, struct op *op) {
        const struct op *other;
        TAILQ_FOREACH (other, &b->c->ops, link) {
                if (other != op && other->task && streq(other->uid, op->uid)) {
                        op_queue(op);
                        node_metrics_attempt(b->c->o.metrics, !op->unprepare, -1);
                        return true;
                }
        }
        return false;
}

/* The operation leaves the batch until the driver has finished its work. */
static void batch_leave(struct batch *b, struct op *op) {
        op_set_phase(op, OP_WORKING);
        node_metrics_attempt(b->c->o.metrics, !op->unprepare, -1);
}

/* First, the effects of the claim's present entry must be undone. True: the operation returns in a later
 * batch. */
static bool leaves_to_undo(struct batch *b, struct op *op) {
        const struct node_driver *driver = b->c->o.driver;
        const struct checkpoint_claim *entry = checkpoint_find(&b->c->journal.table, op->uid);
        if (op->unworked || !driver->unwork || !entry || entry->state == CHECKPOINT_ABORTED ||
            !driver->unwork(b->c->o.u, op, entry))
                return false;
        op->unworked = true;
        batch_leave(b, op);
        return true;
}

static bool leaves_to_work(struct batch *b, struct op *op) {
        const struct node_driver *driver = b->c->o.driver;
        if (op->worked || !driver->work || !driver->work(b->c->o.u, op))
                return false;
        op->worked = true;
        batch_leave(b, op);
        return true;
}

/* In the order of arrival; fn may end the operation. `e` is for fn. */
static void each(struct batch *b, void (*fn)(struct batch *b, struct op *op, const struct err *e),
                 const struct err *e) {
        struct op *op, *next;
        for (op = TAILQ_FIRST(&b->c->ops); op; op = next) {
                next = TAILQ_NEXT(op, link);
                if (op->phase == OP_BATCH)
                        fn(b, op, e);
        }
}

/* The driver may keep resources that are in use, although the kubelet considers the pod ended. */
static bool may_unprepare(struct batch *b, struct op *op) {
        const struct node_driver *driver = b->c->o.driver;
        const struct checkpoint_claim *entry = checkpoint_find(&b->c->journal.table, op->uid);
        struct err e;
        if (!driver->unprepare || !entry || entry->state != CHECKPOINT_COMPLETED ||
            driver->unprepare(b->c->o.u, entry, &e) == 0)
                return true;
        set_verdict(op, -1, &e);
        return false;
}

static void start_unprepare(struct batch *b, struct op *op, const struct err *e) {
        if (!op->unprepare)
                return;
        supersede(op);
        if (!comes_too_early(b, op) && !leaves_to_undo(b, op) && may_unprepare(b, op))
                op->task = effects_remove(b->c, b->disk, op->uid);
}

static void end_unprepare(struct batch *b, struct op *op, const struct err *e) {
        if (!op->unprepare || !op->task)
                return;
        set_verdict(op, op->task->r, &op->task->e);
        if (op->verdict == VERDICT_GO && effects_unprepare(b->c, op->uid, &b->unused))
                b->changed = true;
        op->task = NULL;
}

/* Claims that the Go driver has prepared have no name in its file, but claim_gc.h needs the name to look them
 * up. A new request for the claim has it. */
static void batch_add_name(struct batch *b, const struct op *op) {
        struct checkpoint_claim *entry = checkpoint_find(&b->c->journal.table, op->uid);
        if (entry->name && *entry->name)
                return;
        entry->ns = arena_strdup(entry->arena, op->ns);
        entry->name = arena_strdup(entry->arena, op->name);
        b->changed = true;
}

/* True for a claim that was started and has other devices now. */
static bool is_another(const struct op *op) {
        const struct checkpoint_claim *entry = checkpoint_find(&op->c->journal.table, op->uid);
        return entry && entry->state == CHECKPOINT_STARTED && !str_eq(entry->status, op->status);
}

/* Judges, and records attempts and waits before any side effect. */
static void judge_one(struct batch *b, struct op *op, const struct err *e) {
        if (op->unprepare || op->verdict == VERDICT_FAIL || comes_too_early(b, op))
                return;
        op->verdict = prepare_verdict(op);
        if (op->verdict == VERDICT_ANSWER)
                batch_add_name(b, op);
        if ((op->verdict == VERDICT_GO || op->verdict == VERDICT_WAIT) && op->progress != OP_RECORDED &&
            !op_prepared_before(op)) {
                if (is_another(op) && leaves_to_undo(b, op))
                        return;
                checkpoint_put(&b->c->journal.table, op->uid, op->ns, op->name, op->status);
                op->progress = OP_RECORDED;
                b->changed = true;
        }
}

/* From here on the table has the claim as prepared, so that a later operation of the same batch does not get
 * the same device. The file does not have it before it is true. */
static void start_prepare(struct batch *b, struct op *op, const struct err *e) {
        struct err failed;
        bool may = op->verdict == VERDICT_GO || op->verdict == VERDICT_WAIT;
        if (op->unprepare || !may || comes_too_early(b, op) || comes_second(b, op))
                return;
        /* Again, because an earlier operation of this batch may have taken its device, and the awaited event
         * may have happened during the write. */
        op->verdict = prepare_verdict(op);
        if (op->verdict != VERDICT_GO || leaves_to_work(b, op))
                return;
        if (op->work_failed.kind)
                set_verdict(op, -1, &op->work_failed);
        else if (effects_prepare(op, b->disk, &failed) < 0)
                set_verdict(op, -1, &failed);
}

static void end_prepare(struct batch *b, struct op *op, const struct err *e) {
        if (!op->task)
                return;
        set_verdict(op, op->task->r, &op->task->e);
        if (op->verdict == VERDICT_GO)
                b->changed = true;
        else
                effects_revoke(op);
        op->task = NULL;
}

static void batch_fail(struct batch *b, struct op *op, const struct err *e) {
        set_verdict(op, -1, e);
}

/* It depended on a write that failed. */
static void fail_unrecorded(struct batch *b, struct op *op, const struct err *e) {
        if (op->verdict == VERDICT_GO || op->verdict == VERDICT_WAIT)
                set_verdict(op, -1, e);
}

/* The table has the content of the file again, if that can be read. */
static void write_failed(struct batch *b, const struct err *e) {
        log_error("cannot write the checkpoint", kv_err(e));
        each(b, fail_unrecorded, e);
}

static void batch_answer(struct batch *b, struct op *op, const struct err *e) {
        struct node_metrics *m = b->c->o.metrics;
        bool worked = op->verdict == VERDICT_GO || op->verdict == VERDICT_ANSWER;
        node_metrics_attempt(m, !op->unprepare, -1);
        if (worked)
                node_metrics_succeeded(m, !op->unprepare, (double)(uv_hrtime() - op->attempt_ns) / 1e9);
        else if (op->verdict != VERDICT_FETCH)
                node_metrics_error(m, !op->unprepare, false);
        switch (op->verdict) {
        case VERDICT_GO:
        case VERDICT_ANSWER:
                if (op->late && op_prepared_before(op))
                        retry_succeeded(b->c, op->uid);
                op_succeed(op);
                break;
        case VERDICT_REFUSE:
        case VERDICT_FAIL:
                op_fail(op, op->msg);
                break;
        case VERDICT_WAIT:
                waits_wait(op);
                break;
        case VERDICT_FETCH:
                if (op->dra)
                        fetch_start(op);
                else
                        waits_wait(op);
                break;
        }
}

/* ---- the chain ---- */

/* Ends the plugin at its start, and each later operation, until an administrator fixes it. */
static void report_unreadable(const struct claims *c, const struct err *e) {
        static const char remedy[] =
                "check the disk and its file system; no claim is prepared or unprepared on this node until "
                "the file can be read, or has been moved away; then it is rebuilt from the CDI files";
        log_error("the checkpoint cannot be read", kv_str("path", c->journal.path), kv_str("remedy", remedy),
                  kv_err(e));
        event_record(c->o.events, EVENT_NODE(c->o.node), EVENT_WARNING, REASON_CHECKPOINT_UNREADABLE,
                     "the kubelet plugin's checkpoint cannot be read (%s): %s", e->msg, remedy);
}

static void report_started(struct batch *b, const struct err *e) {
        void (*started)(void *, const struct err *) = b->started;
        b->started = NULL;
        if (started)
                started(b->started_u, e);
}

static void batch_finish(struct batch *b) {
        node_lock_free(b->lock);
        disk_free(b->disk);
        b->freed(b->c);
        free(b);
}

static void batch_on_disk(void *u) {
        struct batch *b = u;
        if (!b->c->freed) {
                b->next(b);
                return;
        }
        /* The plugin ends: the thread's current task is complete, and the rest is as after a kill. */
        node_lock_release(b->lock);
        batch_finish(b);
}

/* Runs the collected disk tasks, and then `next`. */
static void batch_run_on_disk(struct batch *b, void (*next)(struct batch *b)) {
        b->next = next;
        disk_run(b->disk, batch_on_disk, b);
}

static void batch_end(struct batch *b, const struct err *e) {
        node_lock_release(b->lock);
        disk_clear(b->disk);
        if (!e) {
                b->c->o.driver->follow(b->c->o.u, &b->c->journal.table);
                node_metrics_prepared(b->c->o.metrics, &b->c->journal.table);
                schedule_expiry(b);
        }
        each(b, batch_answer, NULL);
        if (!e && b->c->o.changed)
                b->c->o.changed(b->c->o.changed_u);
        b->running = false;
        if (!e)
                waits_reevaluate(b->c);
        if (b->again)
                ops_kick(b->c);
        b->again = false;
        report_started(b, e);
}

/* `next` finds the result in b->written; without a change there is nothing to write, and no thread runs. */
static void record(struct batch *b, void (*next)(struct batch *b)) {
        struct buf text;
        struct err e;
        b->written = NULL;
        if (b->changed && journal_begin(&b->c->journal, &text, &e) < 0) {
                write_failed(b, &e);
        } else if (b->changed) {
                struct store *s = disk_task(b->disk, sizeof *s, store);
                s->path = b->c->journal.path;
                s->text = (struct str){ arena_strndup(s->task.arena, text.p, text.n), text.n };
                buf_done(&text);
                b->written = &s->task;
        }
        b->changed = false;
        batch_run_on_disk(b, next);
}

static void end_record(struct batch *b) {
        const struct store *s = (const struct store *)(const void *)b->written;
        if (!s)
                return;
        journal_end(&b->c->journal, s->task.r < 0 ? NULL : &s->stored);
        if (s->task.r < 0)
                write_failed(b, &s->task.e);
        b->written = NULL;
}

static void batch_on_completed(struct batch *b) {
        end_record(b);
        batch_end(b, NULL);
}

static void on_carried_out(struct batch *b) {
        effects_undone(b->c, &b->unused);
        each(b, end_prepare, NULL);
        record(b, batch_on_completed);
}

static void batch_on_recorded(struct batch *b) {
        end_record(b);
        effects_undo(b->c, b->disk, &b->unused);
        each(b, start_prepare, NULL);
        batch_run_on_disk(b, on_carried_out);
}

static void on_unprepared(struct batch *b) {
        each(b, end_unprepare, NULL);
        each(b, judge_one, NULL);
        record(b, batch_on_recorded);
}

static void batch_begin(struct batch *b) {
        enum journal_event event;
        _cleanup_(freep) char *aside = NULL;
        struct err e;
        b->running = true;
        b->changed = false;
        take_queued(b);
        if (journal_sync(&b->c->journal, &event, &aside, &e) < 0 ||
            claim_gc_after_sync(b->c, event, aside, &b->changed, &e) < 0) {
                report_unreadable(b->c, &e);
                each(b, batch_fail, &e);
                batch_end(b, &e);
                return;
        }
        if (b->started) {
                claim_gc_files(b->c);
                b->changed = true; /* a first checkpoint, with the boot ID */
        }
        b->changed = batch_drop_expired(b) || b->changed;
        each(b, start_unprepare, NULL);
        batch_run_on_disk(b, on_unprepared);
}

static void on_lock(void *u, const struct err *e) {
        struct batch *b = u;
        struct op *op, *next;
        b->c->locking = false;
        if (!e) {
                batch_begin(b);
                return;
        }
        for (op = TAILQ_FIRST(&b->c->ops); op; op = next) {
                next = TAILQ_NEXT(op, link);
                if (op->phase != OP_QUEUED)
                        continue;
                node_metrics_error(b->c->o.metrics, !op->unprepare, true);
                op_fail(op, e->msg);
        }
        report_started(b, e);
}

void batch_run(void *u) {
        struct claims *c = u;
        struct batch *b = c->batch;
        if (c->locking)
                return; /* the queued operations are part of it when the lock is ours */
        if (b->running) {
                b->again = true;
        } else if (node_lock_try(b->lock)) {
                batch_begin(b);
        } else {
                c->locking = true;
                node_lock_wait(b->lock, LOCK_LIMIT_MS, on_lock, b);
        }
}

struct batch *batch_new(struct claims *c, struct node_lock *lock) {
        struct batch *b = xnew(struct batch);
        b->c = c;
        b->lock = lock;
        b->disk = disk_new(c->o.loop);
        STAILQ_INIT(&b->unused);
        loop_timer_init(&b->expiry, c->o.loop, ops_kick, c);
        return b;
}

void batch_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u) {
        c->batch->started = done;
        c->batch->started_u = u;
        ops_kick(c);
}

void batch_free(struct batch *b, void (*freed)(struct claims *c)) {
        loop_timer_done(&b->expiry);
        effects_forget(&b->unused);
        b->freed = freed;
        /* The lock is released when the thread has finished: a successor must not start in between. */
        if (!disk_running(b->disk))
                batch_finish(b);
}
