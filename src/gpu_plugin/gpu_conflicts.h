/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_conflicts: detects what else gives this node's GPUs to pods, and reports it (gpu_report).
 *
 * A device plugin: the Node's resources show it. While it runs, the kubelet reports `nvidia.com/gpu: 4` in
 * the Node; after it has stopped, the kubelet reports 0.
 *
 * The container toolkit gives GPUs to pods without a claim (nvidia/toolkit.h). The module reads the toolkit's
 * and the runtimes' configuration files at the start, and when one of them changes (inotify). Loop thread
 * only. */
#pragma once

#include "gpu_plugin/gpu_report.h"
#include "kube/kube_client.h"

struct gpu_conflicts;

/* Starts to watch the Node, and the files in at most two roots. The strings of the roots and the report are
 * borrowed. Reports when the state is first known, in a later turn of the loop, and after each change. */
struct gpu_conflicts *gpu_conflicts_new(uv_loop_t *loop, struct kube_client *c,
                                        const struct driver_root *roots, size_t n_roots,
                                        struct gpu_report *report);
void gpu_conflicts_free(struct gpu_conflicts *v); /* NULL is allowed */
