/* SPDX-License-Identifier: Apache-2.0 */
#include "node/prepare_verdict.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/claim_gc.h"

enum verdict prepare_verdict_set(struct op *op, enum verdict v, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(op->msg, sizeof op->msg, fmt, ap);
        va_end(ap);
        return v;
}

/* The recorded devices can be the answer: they have their requests, and the file that the runtime will read
 * exists. */
static bool answerable(const struct claims *c, const struct checkpoint_claim *entry) {
        bool needs_file = false;
        for (size_t i = 0; i < entry->n_devices; i++) {
                if (!entry->devices[i].name || !entry->devices[i].pool || !entry->devices[i].requests[0])
                        return false;
                needs_file = needs_file || entry->devices[i].cdi_ids[0];
        }
        if (!needs_file)
                return entry->n_devices > 0;
        _cleanup_(freep) char *path = cdi_path(c->o.cdi_root, c->o.driver->cdi_kind, entry->uid);
        return access(path, F_OK) == 0;
}

static const struct checkpoint_claim *holder(const struct op *op, const struct node_request *w) {
        const struct op *working = ops_working_on(op->c, op->uid, w->result->device);
        if (working && !op->worked)
                return checkpoint_find(&op->c->journal.table, working->uid);
        CHECKPOINT_EACH_DEVICE (&op->c->journal.table, e, d) {
                if (!streq(e->uid, op->uid) && streq(d->name, w->result->device) && !d->admin)
                        return e;
        }
        return NULL;
}

const struct checkpoint_claim *prepare_verdict_holder(struct op *op, const struct node_request *w) {
        const struct checkpoint_claim *other =
                op_prepared_before(op) || w->result->admin_access ? NULL : holder(op, w);
        op->waits_for = other ? WAITS_FOR_CLAIM : WAITS_FOR_NOTHING;
        free(TAKE(op->holder));
        if (other)
                op->holder = xstrdup(other->uid);
        return other;
}

/* The driver has named the holder; this adds the API server's answer about it. */
static void add_whereabouts(struct op *op) {
        size_t n = strlen(op->msg);
        if (op->holder)
                claim_gc_explain(op->c->claim_gc, op->holder, op->msg + n, sizeof op->msg - n);
}

/* The Prepare came after the Unprepare of its claim. The status identifies the request, because another pod
 * changes it: except for the pods of a PodGroup, whose reservation stays when a pod is replaced. */
static bool is_out_of_date(const struct op *op, const struct checkpoint_claim *entry) {
        for (size_t i = 0; i < op->claim.n_consumers; i++) {
                if (claim_consumer_is_group(&op->claim.consumers[i]))
                        return false;
        }
        return entry && entry->state == CHECKPOINT_ABORTED && str_eq(entry->status, op->status);
}

enum verdict prepare_verdict(struct op *op) {
        const struct node_driver *driver = op->c->o.driver;
        free(TAKE(op->holder));
        const struct checkpoint_claim *entry = checkpoint_find(&op->c->journal.table, op->uid);
        op->waits_for = WAITS_FOR_NOTHING;
        if (op->progress == OP_RECORDED && (!entry || entry->state == CHECKPOINT_ABORTED))
                return prepare_verdict_set(op, VERDICT_REFUSE,
                                           "the claim was unprepared while it was being prepared");
        if (entry && entry->state == CHECKPOINT_COMPLETED && !op->renew && answerable(op->c, entry))
                return VERDICT_ANSWER;
        if (op->renew && (!entry || entry->state != CHECKPOINT_COMPLETED))
                return prepare_verdict_set(op, VERDICT_REFUSE, "the claim was unprepared in the meantime");
        if (op->progress < OP_FETCHED)
                return VERDICT_FETCH;
        if (!op->n_requests)
                return VERDICT_GO;
        if (is_out_of_date(op, entry))
                return prepare_verdict_set(
                        op, VERDICT_REFUSE,
                        "this allocation of the claim has been unprepared already, so the request "
                        "is out of date");
        enum verdict known = driver->known ? driver->known(op->c->o.u, op) : VERDICT_GO;
        if (known != VERDICT_GO)
                return known;
        for (node_step_fn *const *step = driver->steps; *step; step++) {
                for (size_t i = 0; i < op->n_requests; i++) {
                        enum verdict v = (*step)(op->c->o.u, op, &op->requests[i]);
                        if (v == VERDICT_WAIT)
                                add_whereabouts(op);
                        if (v != VERDICT_GO)
                                return v;
                }
        }
        return VERDICT_GO;
}
