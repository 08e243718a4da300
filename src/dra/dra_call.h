/* SPDX-License-Identifier: Apache-2.0 */
/* dra_call: handles one NodePrepareResources or NodeUnprepareResources call of the kubelet. Each claim in the
 * call becomes an operation, and the call is answered when the last operation has ended. */
#pragma once

#include <stdbool.h>

#include "dra/dra_plugin.h"
#include "dra/grpc_server.h"

/* Takes ownership of the call. `ops` must outlive it. */
void dra_call_start(const struct dra_plugin_ops *ops, void *u, bool prepare, struct grpc_call *grpc,
                    struct str message);
