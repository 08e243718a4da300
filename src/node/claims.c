/* SPDX-License-Identifier: Apache-2.0 */
#include "node/claims.h"

#include "base/file.h"
#include "base/log.h"
#include "node/batch.h"
#include "node/fetch.h"
#include "node/claim_gc.h"
#include "node/retry.h"
#include "node/waits.h"

void claims_reevaluate(struct claims *c) {
        waits_reevaluate(c);
}

void claims_prepare(struct claims *c, struct dra_op *dra, const struct dra_claim *claim) {
        retry_prepare(c, claim->uid);
        struct op *op = op_new(c, dra, false, claim, waits_late);
        waits_start(op);
        if (op_prepared_before(op))
                op_queue(op); /* usually needs no request to the API */
        else
                fetch_start(op);
}

void claims_unprepare(struct claims *c, struct dra_op *dra, const struct dra_claim *claim) {
        op_queue(op_new(c, dra, true, claim, NULL));
}

void claims_renew(struct claims *c, const char *uid) {
        const struct checkpoint_claim *entry = checkpoint_find(&c->journal.table, uid);
        if (!entry || entry->state != CHECKPOINT_COMPLETED || !entry->ns || !entry->name ||
            ops_active(c, uid))
                return;
        struct op *op = op_new(c, NULL, false, &(struct dra_claim){ entry->ns, entry->name, uid }, NULL);
        op->renew = true;
        fetch_start(op);
}

void claims_cancelled(struct claims *c, struct dra_op *dra, void *op_data) {
        struct op *op = op_data;
        _cleanup_(freep) char *claim = xasprintf("%s/%s", op->ns, op->name);
        log_info("the kubelet no longer waits for a claim", kv_str("claim", claim), kv_str("uid", op->uid),
                 kv_str("state", op->msg));
        if (op->unprepare || op_is_busy(op))
                op_detach(op);
        else
                retry_fail(op, NULL);
        waits_update(c);
}

void claims_dump(const struct claims *c) {
        static const char *const phases[] = {
                [OP_FETCHING] = "fetching",    [OP_QUEUED] = "queued",   [OP_BATCH] = "on the disk",
                [OP_WORKING] = "being set up", [OP_WAITING] = "waiting", [OP_FAILED] = "failed",
        };
        static const char *const states[] = {
                [CHECKPOINT_STARTED] = "started",
                [CHECKPOINT_COMPLETED] = "completed",
                [CHECKPOINT_ABORTED] = "aborted",
        };
        const struct op_list *const lists[] = { &c->ops, &c->failed };
        const struct op *op;
        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
                TAILQ_FOREACH (op, lists[i], link) {
                        log_info("operation", kv_str("kind", op->unprepare ? "unprepare" : "prepare"),
                                 kv_str("namespace", op->ns), kv_str("claim", op->name),
                                 kv_str("uid", op->uid), kv_str("phase", phases[op->phase]),
                                 kv_str("why", op->msg),
                                 kv_int("age_ms", (uv_hrtime() - op->began_ns) / 1000000));
                }
        }
        for (const struct checkpoint_claim *e = c->journal.table.claims; e; e = e->hh.next)
                log_info("recorded claim", kv_str("namespace", str_or(e->ns, "")),
                         kv_str("claim", str_or(e->name, "")), kv_str("uid", e->uid),
                         kv_str("state", states[e->state]),
                         kv_str("device", e->n_devices ? str_or(e->devices[0].name, "") : ""),
                         kv_str("domain", e->n_devices ? str_or(e->devices[0].domain, "") : ""));
}

void claims_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u) {
        struct err e;
        if (journal_watch(&c->journal, c->o.loop, ops_kick, c, &e) < 0)
                log_warn("cannot watch the checkpoint: the plugin notices writes of another plugin process "
                         "only at the next operation",
                         kv_err(&e));
        batch_start(c, done, u);
}

void claims_registered(struct claims *c) {
        retry_registered(c);
        waits_reevaluate(c);
}

int claims_new(const struct claims_options *o, struct claims **ret, struct err *e) {
        _cleanup_(freep) char *lock_path = file_join(o->plugin_dir, "pu.lock");
        struct node_lock *lock;
        if (node_lock_new(o->loop, lock_path, &lock, e) < 0) {
                o->driver->free(o->u);
                return -1;
        }
        struct claims *c = ops_new(o, batch_run);
        o->driver->attach(o->u, c);
        c->claim_gc = claim_gc_new(c);
        c->retry = retry_new(c);
        c->batch = batch_new(c, lock);
        *ret = c;
        return 0;
}

const struct checkpoint *claims_table(const struct claims *c) {
        return &c->journal.table;
}

bool claims_stuck(const struct claims *c) {
        return node_lock_stuck(c->batch->lock);
}

void claims_free(struct claims *c) {
        if (!c)
                return;
        ops_end(c);
        retry_free(c->retry);
        claim_gc_free(c->claim_gc);
        c->o.driver->free(c->o.u);
        batch_free(c->batch, ops_free);
}
