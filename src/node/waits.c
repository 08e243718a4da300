/* SPDX-License-Identifier: Apache-2.0 */
#include "node/waits.h"

#include "node/prepare_verdict.h"
#include "node/claim_gc.h"
#include "node/retry.h"

void waits_investigate(struct op *op) {
        struct claims *c = op->c;
        op->wait_stage = OP_WAIT_INVESTIGATED;
        if (c->o.driver->investigate)
                c->o.driver->investigate(c->o.u, op);
        /* The holder may be a claim that the kubelet has lost track of. */
        if (op->holder)
                claim_gc_holder(c->claim_gc, op->holder);
        else if (op->waits_for == WAITS_FOR_CLAIM)
                claim_gc_deleted_claims(c->claim_gc, uv_now(c->o.loop));
        /* The awaited event may have happened without notice, if the kernel has no inotify watch left. */
        ops_kick(c);
}

/* The operation is busy, and continues. */
static void answer_late(struct op *op, const char *msg) {
        op_answer_failed(op, msg);
        op_detach(op);
}

/* It is answered and not detached, and can be judged again from the start. */
static void queued_late(struct op *op) {
        struct claims *c = op->c;
        _cleanup_(freep) char *msg =
                ops_working(c, op->uid)
                        ? xasprintf("%s: an earlier request for this claim has not finished on the node; it "
                                    "continues, and the kubelet retries by itself",
                                    c->o.node)
                : c->locking
                        ? xasprintf("%s: another plugin process on this node has held the node lock, so this "
                                    "claim was not prepared in time; the kubelet retries by itself",
                                    c->o.node)
                        : xasprintf("%s: the disk under '%s' has not stored the records of other claims in "
                                    "time, and this claim comes after them: check the disk and its load; "
                                    "the kubelet retries by itself",
                                    c->o.node, c->o.plugin_dir);
        retry_fail(op, msg);
        waits_update(c);
}

void waits_late(void *u) {
        struct op *op = u;
        struct claims *c = op->c;
        const struct claims_options *o = &c->o;
        if (op->wait_stage == OP_WAIT_SHORT && op->budget_ms > WAITS_INVESTIGATE_MS) {
                op->wait_stage = OP_WAIT_LONG;
                loop_timer_start(&op->timer, op->budget_ms - WAITS_INVESTIGATE_MS);
                if (op->phase == OP_WAITING)
                        waits_investigate(op);
        } else if (op->phase == OP_WORKING) {
                _cleanup_(freep) char *msg =
                        xasprintf("%s: preparing this claim on the node has not finished "
                                  "in time; it continues",
                                  o->node);
                answer_late(op, msg);
        } else if (op->phase == OP_BATCH) {
                _cleanup_(freep) char *msg =
                        xasprintf("%s: the disk under '%s' has not stored the record of this claim in time; "
                                  "the claim is prepared when it has: check the disk and its load",
                                  o->node, o->plugin_dir);
                answer_late(op, msg);
        } else if (op->phase == OP_QUEUED) {
                queued_late(op);
        } else {
                retry_fail(op, op->msg[0] ? op->msg
                                          : "the Kubernetes API server has not answered in time: can this "
                                            "node reach it? The kubelet retries by itself");
                waits_update(c);
        }
}

static unsigned budget(const struct dra_op *dra) {
        uint64_t given = dra_op_timeout_ms(dra);
        if (!given || given > WAITS_BUDGET_MS + 1000)
                return WAITS_BUDGET_MS;
        return (unsigned)(given > 2000 ? given - 1000 : given / 2);
}

void waits_start(struct op *op) {
        op->budget_ms = budget(op->dra);
        loop_timer_start(&op->timer,
                         op->budget_ms > WAITS_INVESTIGATE_MS ? WAITS_INVESTIGATE_MS : op->budget_ms);
}

static void begin_to_wait(struct op *op) {
        if (op->holder)
                claim_gc_holder(op->c->claim_gc, op->holder);
        if (op->waits_for >= WAITS_FOR_DRIVER)
                op->c->o.driver->waits(op->c->o.u, op);
}

void waits_wait(struct op *op) {
        struct claims *c = op->c;
        if (!op->dra) {
                retry_fail(op, NULL);
                waits_update(c);
                return;
        }
        if (!op->waiting_since_ns)
                op->waiting_since_ns = uv_hrtime();
        begin_to_wait(op);
        if (op->wait_stage == OP_WAIT_LONG)
                waits_investigate(op);
        op_set_phase(op, OP_WAITING);
}

void waits_update(struct claims *c) {
        const struct op *op;
        unsigned what = 0;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase == OP_WAITING)
                        what |= 1U << op->waits_for;
        }
        TAILQ_FOREACH (op, &c->failed, link) {
                if (op->phase == OP_FAILED)
                        what |= 1U << op->waits_for;
        }
        c->o.driver->waited_for(c->o.u, what);
}

void waits_reevaluate(struct claims *c) {
        struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                unsigned before = op->waits_for;
                _cleanup_(freep) char *holder = op->holder ? xstrdup(op->holder) : NULL;
                if (op->phase != OP_WAITING)
                        continue;
                if (prepare_verdict(op) != VERDICT_WAIT) {
                        if (op->waiting_since_ns)
                                op->waited_ns += uv_hrtime() - op->waiting_since_ns;
                        op->waiting_since_ns = 0;
                        op_queue(op);
                } else if (op->waits_for != before ||
                           (op->holder && !streq(op->holder, str_or(holder, "")))) {
                        begin_to_wait(op);
                }
        }
        retry_reevaluate(c);
        waits_update(c);
}
