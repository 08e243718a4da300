/* SPDX-License-Identifier: Apache-2.0 */
/* fetch: reads the claim of a Prepare, for as long as the kubelet waits, and has the driver take it. */
#pragma once

#include "node/ops.h"

/* Long enough to be no burden on a server that fails, short enough to notice that it is well again. */
enum { FETCH_BACKOFF_MAX_MS = 4000 };

void fetch_start(struct op *op);
void fetch_api_known(struct op *op); /* claims can be read now */
