/* SPDX-License-Identifier: Apache-2.0 */
#include "node/ops.h"

#include "base/stderr.h"
#include "base/log.h"

/* ---- all operations ---- */

struct claims *ops_new(const struct claims_options *o, loop_fn *run) {
        struct claims *c = xnew(struct claims);
        c->o = *o;
        TAILQ_INIT(&c->ops);
        TAILQ_INIT(&c->failed);
        journal_init(&c->journal, o->driver->codec, o->checkpoint_dialect, o->plugin_dir, o->boot_id);
        loop_turn_init(&c->kick, o->loop, run, c);
        return c;
}

void ops_kick(void *u) {
        struct claims *c = u;
        loop_turn_start(&c->kick);
}

bool ops_active(const struct claims *c, const char *uid) {
        const struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (streq(op->uid, uid))
                        return true;
        }
        return false;
}

const struct op *ops_working(const struct claims *c, const char *uid) {
        const struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase == OP_WORKING && streq(op->uid, uid))
                        return op;
        }
        return NULL;
}

/* The device counts from the start of the work until it belongs to a prepared claim. */
const struct op *ops_working_on(const struct claims *c, const char *uid, const char *device) {
        const struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if ((op->phase != OP_WORKING && !op->worked) || streq(op->uid, uid))
                        continue;
                for (size_t i = 0; i < op->n_requests; i++) {
                        const struct claim_result *r = op->requests[i].result;
                        if (streq(r->device, device) && !r->admin_access)
                                return op;
                }
        }
        return NULL;
}

/* ---- one operation ---- */

static void op_free(struct op *op) {
        if (op->phase == OP_WORKING)
                op->c->o.driver->work_cancel(op->c->o.u, op);
        TAILQ_REMOVE(op->kept ? &op->c->failed : &op->c->ops, op, link);
        kube_cancel(op->get);
        if (op->c->o.driver->release)
                op->c->o.driver->release(op->c->o.u, op);
        arena_free(op->arena);
        loop_timer_done(&op->timer);
        free(op->ns);
        free(op->name);
        free(op->uid);
        free(op->holder);
        free(op);
}

void ops_end(struct claims *c) {
        while (!TAILQ_EMPTY(&c->ops))
                op_free(TAILQ_FIRST(&c->ops));
        while (!TAILQ_EMPTY(&c->failed))
                op_free(TAILQ_FIRST(&c->failed));
        watch_file_stop(&c->journal.watch);
        loop_turn_done(&c->kick);
        c->freed = true;
}

void ops_free(struct claims *c) {
        journal_done(&c->journal);
        free(c);
}

struct op *op_new(struct claims *c, struct dra_op *dra, bool unprepare, const struct dra_claim *claim,
                  loop_fn *late) {
        struct op *op = xnew(struct op);
        op->c = c;
        op->dra = dra;
        op->unprepare = unprepare;
        op->number = c->n_ops++;
        op->ns = xstrdup(claim->namespace);
        op->name = xstrdup(claim->name);
        op->uid = xstrdup(claim->uid);
        op->began_ns = uv_hrtime();
        if (late)
                loop_timer_init(&op->timer, c->o.loop, late, op);
        TAILQ_INSERT_TAIL(&c->ops, op, link);
        if (dra)
                dra_op_set_data(dra, op);
        node_metrics_pending(c->o.metrics, !unprepare, 1);
        return op;
}

bool op_may_become(enum op_phase from, enum op_phase to) {
        static const bool allowed[N_OP_PHASES][N_OP_PHASES] = {
                /* All that it needs has been read, or it needs nothing; it was superseded. */
                [OP_FETCHING] = { [OP_FETCHING] = true,
                                  [OP_QUEUED] = true,
                                  [OP_BATCH] = true,
                                  [OP_FAILED] = true },
                /* It gets into a batch; it has waited for too long, and may not have been read. */
                [OP_QUEUED] = { [OP_QUEUED] = true,
                                [OP_BATCH] = true,
                                [OP_FAILED] = true,
                                [OP_FETCHING] = true },
                /* Another operation of its claim comes first; the claim must be read; it waits or works; it
                 * would have to wait, but nobody waits for its answer. */
                [OP_BATCH] = { [OP_QUEUED] = true,
                               [OP_FETCHING] = true,
                               [OP_WORKING] = true,
                               [OP_WAITING] = true,
                               [OP_FAILED] = true },
                [OP_WORKING] = { [OP_QUEUED] = true },
                /* It can continue; it was superseded; it has waited for too long. */
                [OP_WAITING] = { [OP_QUEUED] = true, [OP_BATCH] = true, [OP_FAILED] = true },
        };
        return allowed[from][to];
}

bool op_is_busy(const struct op *op) {
        return op->phase == OP_BATCH || op->phase == OP_WORKING;
}

void op_set_phase(struct op *op, enum op_phase to) {
        BUG_ON(!op_may_become(op->phase, to));
        if (to == OP_QUEUED && !op_is_busy(op))
                op->attempt_ns = uv_hrtime();
        op->phase = to;
}

void op_queue(struct op *op) {
        op_set_phase(op, OP_QUEUED);
        ops_kick(op->c);
}

void op_fetched(struct op *op) {
        BUG_ON(op_is_busy(op));
        if (op->progress < OP_FETCHED)
                op->progress = OP_FETCHED;
        if (op->kept) {
                if (op->phase == OP_FETCHING)
                        op_set_phase(op, OP_FAILED);
                ops_kick(op->c); /* the batch judges it at its end */
                return;
        }
        op->msg[0] = '\0';
        op_queue(op);
}

void op_worked(struct op *op, const struct err *e) {
        BUG_ON(op->phase != OP_WORKING);
        if (e)
                op->work_failed = *e;
        op_queue(op);
}

bool op_prepared_before(const struct op *op) {
        const struct checkpoint_claim *entry = checkpoint_find(&op->c->journal.table, op->uid);
        return entry && entry->state == CHECKPOINT_COMPLETED;
}

/* ---- answers ---- */

static void ops_count(const struct op *op, bool ok) {
        double total = (double)(uv_hrtime() - op->began_ns) / 1e9,
               away = (double)(op->get_ns + op->waited_ns) / 1e9;
        node_metrics_pending(op->c->o.metrics, !op->unprepare, -1);
        node_metrics_answered(op->c->o.metrics, !op->unprepare, ok, total, total > away ? total - away : 0);
}

static void ops_finish(struct op *op, bool ok) {
        if (!op->kept)
                ops_count(op, ok);
        op_free(op);
}

void op_drop(struct op *op) {
        ops_finish(op, false);
}

static void ops_log_failure(const struct op *op, const char *msg) {
        _cleanup_(freep) char *claim = xasprintf("%s/%s", op->ns, op->name);
        log_warn(op->verdict == VERDICT_REFUSE ? "Permanent error: cannot prepare claim"
                 : op->unprepare               ? "cannot unprepare claim"
                                               : "cannot prepare claim",
                 kv_str("claim", claim), kv_str("uid", op->uid), kv_str("err", msg));
}

void op_fail(struct op *op, const char *msg) {
        if (!op->kept) {
                ops_log_failure(op, msg);
                op_answer_failed(op, msg);
        }
        ops_finish(op, false);
}

void op_keep(struct op *op, const char *msg) {
        BUG_ON(op->unprepare || op->kept || op->phase == OP_WORKING || op->task);
        if (msg) {
                ops_log_failure(op, msg);
                op_answer_failed(op, msg);
        }
        if (op->of_record)
                node_metrics_pending(op->c->o.metrics, true, -1);
        else
                ops_count(op, false);
        if (op->phase != OP_FETCHING && op->progress >= OP_FETCHED)
                op_set_phase(op, OP_FAILED);
        TAILQ_REMOVE(&op->c->ops, op, link);
        TAILQ_INSERT_TAIL(&op->c->failed, op, link);
        op->kept = true;
        op->dra = NULL;
}

void op_answer_failed(struct op *op, const char *msg) {
        const struct node_driver *driver = op->c->o.driver;
        const char *fails = op->unprepare ? driver->unprepare_fails : driver->prepare_fails;
        _cleanup_(freep) char *text =
                fails ? xasprintf("%s %s/%s:%s: %s", fails, op->ns, op->name, op->uid, msg) : NULL;
        if (op->dra)
                dra_op_fail(op->dra, text ? text : msg);
}

void op_detach(struct op *op) {
        loop_timer_stop(&op->timer);
        op->dra = NULL;
        op->late = true;
}

static void ops_answer(struct op *op) {
        struct checkpoint_claim *entry = checkpoint_find(&op->c->journal.table, op->uid);
        size_t n = entry->n_devices;
        struct dra_device *devices = xnew_n(struct dra_device, n + 1);
        for (size_t i = 0; i < n; i++) {
                const struct node_device *d = &entry->devices[i];
                devices[i] = (struct dra_device){
                        .requests = d->requests, .pool = d->pool, .device = d->name, .cdi_ids = d->cdi_ids
                };
        }
        if (op->dra)
                dra_op_prepared(op->dra, devices, n);
        free(devices);
        if (!op->renew)
                entry->answered_ms = loop_now_ms(op->c->o.loop);
        if (op->verdict == VERDICT_GO && op->c->o.driver->prepared)
                op->c->o.driver->prepared(op->c->o.u, op);
}

void op_succeed(struct op *op) {
        if (!op->unprepare && !op_prepared_before(op)) {
                op_fail(op, "the claim's record was revoked before it was answered; the kubelet retries");
                return;
        }
        _cleanup_(freep) char *claim = xasprintf("%s/%s", op->ns, op->name);
        if (op->unprepare) {
                log_info("unprepared claim", kv_str("claim", claim), kv_str("uid", op->uid),
                         kv_int("total_us", (uv_hrtime() - op->began_ns) / 1000));
                if (op->dra)
                        dra_op_unprepared(op->dra);
        } else {
                ops_answer(op);
                log_info("prepared claim", kv_str("claim", claim), kv_str("uid", op->uid),
                         kv_int("total_us", (uv_hrtime() - op->began_ns) / 1000),
                         kv_int("get_us", op->get_ns / 1000), kv_int("wait_us", op->waited_ns / 1000));
        }
        ops_finish(op, true);
}
