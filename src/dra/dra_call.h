/* SPDX-License-Identifier: Apache-2.0 */
/* dra_call: handles one NodePrepareResources or NodeUnprepareResources call of the kubelet. Its claims become
 * operations, and the call is answered when the last one is done. */
#pragma once

#include <stdbool.h>

#include "dra/dra_plugin.h"
#include "dra/grpc_server.h"

/* Takes the call. `ops` must outlive it. */
void dra_call_start(const struct dra_plugin_ops *ops, void *u, bool prepare, struct grpc_call *grpc,
                    struct str message);
