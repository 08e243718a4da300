/* SPDX-License-Identifier: Apache-2.0 */
#include "node/fetch.h"

#include <limits.h>
#include <stdio.h>

#include "node/checkpoint_layouts.h"

/* Checks the whole claim before any part of it is prepared. */
static int fetch_take(struct op *op, yyjson_val *obj, struct err *e) {
        const struct node_driver *driver = op->c->o.driver;
        struct buf status = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct claim *c = &op->claim;
        if (jd_decode(claim_fields, obj, "", op->arena, c, e) < 0)
                return err_wrap(e, "ResourceClaim");
        if (!streq(c->o.meta.uid, op->uid))
                return err_set(e, ERR_INVALID, 0,
                               "ResourceClaim '%s/%s' has been replaced: its UID is now %s", op->ns, op->name,
                               str_or(c->o.meta.uid, "unknown"));
        if (!c->allocated)
                return err_set(e, ERR_INVALID, 0, "ResourceClaim '%s/%s' is not allocated", op->ns, op->name);
        bool ok = checkpoint_status(yyjson_obj_get(obj, "status"), &status);
        if (ok)
                op->status = (struct str){ arena_strndup(op->arena, status.p, status.n), status.n };
        buf_done(&status);
        if (!ok)
                return err_set(e, ERR_INVALID, 0,
                               "the status of ResourceClaim '%s/%s' is too large or nests too deep", op->ns,
                               op->name);
        op->requests = arena_alloc(op->arena, (c->n_results + 1) * sizeof *op->requests);
        for (size_t i = 0; i < c->n_results; i++) {
                struct node_request *w = &op->requests[op->n_requests];
                if (!streq(c->results[i].driver, driver->name))
                        continue;
                w->result = &c->results[i];
                if (driver->take(op->c->o.u, op, w, e) < 0)
                        return -1;
                op->n_requests++;
        }
        return driver->check ? driver->check(op->c->o.u, op, e) : 0;
}

static void on_claim_retry(void *u, const struct err *e) {
        struct op *op = u;
        if (!op_is_busy(op))
                snprintf(op->msg, sizeof op->msg, "cannot read the ResourceClaim: %s", e->msg);
}

static void fetch_on_claim(void *u, yyjson_val *obj, const struct err *error) {
        struct op *op = u;
        struct err e;
        op->get = NULL;
        op->get_ns = uv_hrtime() - op->began_ns;
        if (op_is_busy(op)) /* its claim was unprepared in the meantime, and the batch ends it */
                return;
        if (error) {
                on_claim_retry(op, error);
                op_fail(op, op->msg);
                return;
        }
        op->arena = arena_new(4096);
        if (fetch_take(op, obj, &e) < 0) {
                op->verdict = VERDICT_REFUSE;
                if (!op->kept)
                        node_metrics_error(op->c->o.metrics, true, false);
                op_fail(op, e.msg);
                return;
        }
        if (op->c->o.driver->await_inputs)
                op->c->o.driver->await_inputs(op->c->o.u, op);
        else
                op_fetched(op);
}

static void start_get(struct op *op) {
        op->get = kube_start(op->c->o.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                                    .res = &kube_resource_claims,
                                                                    .ns = op->ns,
                                                                    .name = op->name,
                                                                    .attempts = UINT_MAX,
                                                                    .backoff_max_ms = FETCH_BACKOFF_MAX_MS,
                                                                    .done = fetch_on_claim,
                                                                    .retry = on_claim_retry,
                                                                    .u = op });
}

void fetch_start(struct op *op) {
        op_set_phase(op, OP_FETCHING);
        start_get(op);
        if (op->c->o.driver->fetch)
                op->c->o.driver->fetch(op->c->o.u, op); /* at the same time as the claim */
}
