/* SPDX-License-Identifier: Apache-2.0 */
/* fetch: reads the claim of a Prepare and passes it to the driver. Retries for as long as the kubelet
 * waits. */
#pragma once

#include "node/ops.h"

/* The longest pause between two attempts: long enough not to burden a failing server, and short enough to
 * notice soon that it has recovered. */
enum { FETCH_BACKOFF_MAX_MS = 4000 };

void fetch_start(struct op *op);
