/* SPDX-License-Identifier: Apache-2.0 */
/* dra_call: one NodePrepareResources or NodeUnprepareResources call of the kubelet: its claims become
 * operations, and it is answered when the last one is done. */
#pragma once

#include <stdbool.h>

#include "dra/dra_plugin.h"
#include "dra/grpc_server.h"

/* Owns the call from here on; `ops` outlives it. */
void dra_call_start(const struct dra_plugin_ops *ops, void *u, bool prepare, struct grpc_call *grpc,
                    struct str message);
