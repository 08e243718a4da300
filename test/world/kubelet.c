/* SPDX-License-Identifier: Apache-2.0 */
#include "world/kubelet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/mem.h"

void dra_op_set_data(struct dra_op *op, void *data) {
        op->data = data;
}

uint64_t dra_op_timeout_ms(const struct dra_op *op) {
        return op->timeout_ms;
}

/* Exactly one answer is allowed. */
static void answer(struct dra_op *op, enum answer what) {
        assert_int_equal(op->answer, PENDING);
        op->answer = what;
}

void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n) {
        size_t len = 0;
        answer(op, PREPARED);
        for (size_t i = 0; i < n && len < sizeof op->devices; i++)
                len += (size_t)snprintf(op->devices + len, sizeof op->devices - len, "%s%s/%s/%s=%s",
                                        i ? "," : "", devices[i].requests[0], devices[i].pool,
                                        devices[i].device, str_or(devices[i].cdi_ids[0], ""));
}

void dra_op_unprepared(struct dra_op *op) {
        answer(op, UNPREPARED);
}

void dra_op_fail(struct dra_op *op, const char *msg) {
        answer(op, FAILED);
        snprintf(op->msg, sizeof op->msg, "%s", msg);
}

void kubelet_prepare(struct claims *c, struct dra_op *op, const char *ns, const char *name, const char *uid) {
        op->answer = PENDING;
        claims_prepare(c, op, &(struct dra_claim){ ns, name, uid });
        assert_int_equal(op->answer, PENDING);
}

void kubelet_unprepare(struct claims *c, struct dra_op *op, const char *ns, const char *name,
                       const char *uid) {
        op->answer = PENDING;
        claims_unprepare(c, op, &(struct dra_claim){ ns, name, uid });
        assert_int_equal(op->answer, PENDING);
}
