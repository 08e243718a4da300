/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_plan: plans the CDI edits of a claim and its GPUs, and their record in the checkpoint. struct
 * node_driver refers to these functions. */
#pragma once

#include "node/ops.h"

int gpu_plan_claim(void *u, const struct op *op, struct arena *a, struct cdi_edits *ret, struct err *e);
int gpu_plan_device(void *u, const struct op *op, const struct node_request *w, struct arena *a,
                    struct node_effect *ret, struct err *e);
/* Discards the list of the driver's files, because the NVIDIA driver may have been replaced. */
struct gpu;
void gpu_plan_forget(struct gpu *g);
void gpu_plan_record(const struct node_request *w, struct node_device *ret);
const char *gpu_plan_comment(const struct op *op, struct arena *a);
/* Rebuilds the record from a CDI file. A CDI file of the Go driver contains only the names of the devices. */
size_t gpu_plan_rebuild(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret);
