/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_work: the slow part of preparing GPUs: nvidia-smi sets their time slices, and resets them afterwards.
 * For node/driver.h. */
#pragma once

#include "node/driver.h"

/* The record of a group of GPUs whose time slice has been set. */
#define GPU_WORK_SLICED "{\"timeSliceApplied\":true}"

/* True if preparing this device sets its time slice. A MIG device has none, and admin access changes nothing
 * for the pods that use the GPU. */
bool gpu_work_slices(const struct node_request *w);

bool gpu_work_begin(void *u, struct op *op);
bool gpu_work_undo(void *u, struct op *op, const struct checkpoint_claim *entry);
void gpu_work_cancel(void *u, struct op *op);

struct gpu;
/* The GPUs are known now, or no longer known. */
void gpu_work_known(struct gpu *g);
