/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet: what a kubelet asks a plugin for, and what it is answered: takes the place of dra_call. */
#pragma once

#include "node/claims.h"

enum answer { PENDING, PREPARED, UNPREPARED, FAILED, CANCELLED };

/* The kubelet's view of one claim in one call. */
struct dra_op {
        void *data;
        uint64_t timeout_ms; /* 0: none */
        enum answer answer;
        char msg[1024];     /* why not */
        char devices[1024]; /* "request/pool/device=cdi id,..." */
};

/* Nothing is answered before they return. */
void kubelet_prepare(struct claims *c, struct dra_op *op, const char *ns, const char *name, const char *uid);
void kubelet_unprepare(struct claims *c, struct dra_op *op, const char *ns, const char *name,
                       const char *uid);
