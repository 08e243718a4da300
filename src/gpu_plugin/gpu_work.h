/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_work: what preparing GPUs takes that lasts: their time slices, which nvidia-smi sets; and setting them
 * back. For node/driver.h. */
#pragma once

#include "node/driver.h"

/* What is recorded of a group whose GPUs have been set. */
#define GPU_WORK_SLICED "{\"timeSliceApplied\":true}"

/* Does preparing this device set its time slice? Of a MIG device it cannot, and by admin access nothing is
 * changed for who uses the GPU. */
bool gpu_work_slices(const struct node_want *w);

bool gpu_work_begin(void *u, struct op *op);
bool gpu_work_undo(void *u, struct op *op, const struct checkpoint_claim *entry);
void gpu_work_cancel(void *u, struct op *op);

struct gpu;
/* The GPUs are known now, or not any more. */
void gpu_work_known(struct gpu *g);
