/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_work: does the slow part of preparing GPUs: it runs nvidia-smi to set their time slices, and to reset
 * them afterwards. struct node_driver refers to these functions. */
#pragma once

#include "node/driver.h"

/* The record of a group of GPUs whose time slice has been set. */
#define GPU_WORK_SLICED "{\"timeSliceApplied\":true}"

/* Returns true if preparing this device sets its time slice. A MIG device has no time slice, and a claim with
 * admin access must not change the GPU for the pods that use it. */
bool gpu_work_slices(const struct node_request *w);

bool gpu_work_begin(void *u, struct op *op);
bool gpu_work_undo(void *u, struct op *op, const struct checkpoint_claim *entry);
void gpu_work_cancel(void *u, struct op *op);

struct gpu;
/* Returns true while an operation resets the time slice or the compute mode of this GPU. */
bool gpu_work_resets(const struct gpu *g, const char *uuid);
/* Notifies the module that the GPUs have become known or unknown. */
void gpu_work_known(struct gpu *g);
