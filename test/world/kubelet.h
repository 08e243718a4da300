/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet: sends a kubelet's requests to a plugin and records the answers. It replaces dra_call. */
#pragma once

#include "node/claims.h"

enum answer { PENDING, PREPARED, UNPREPARED, FAILED, CANCELLED };

/* The kubelet's view of one claim in one call. */
struct dra_op {
        void *data;
        uint64_t timeout_ms; /* 0: none */
        enum answer answer;
        char msg[1024];     /* why it failed */
        char devices[1024]; /* "request/pool/device=cdi id,..." */
};

/* Send a request. The plugin answers after these functions have returned. */
void kubelet_prepare(struct claims *c, struct dra_op *op, const char *ns, const char *name, const char *uid);
void kubelet_unprepare(struct claims *c, struct dra_op *op, const char *ns, const char *name,
                       const char *uid);
