/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_conflicts: detects what else uses this node's GPUs.
 *
 * An administrator cordons the Node before work on its NVIDIA driver or GPUs. The module notifies its owner.
 * It reports (gpu_report) what else gives the GPUs to pods:
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

struct gpu_conflicts_options {
        uv_loop_t *loop;
        struct kube_client *kube;
        const struct driver_root *roots; /* copied, but their strings are borrowed */
        size_t n_roots;                  /* at most 2 */
        struct gpu_report *report;       /* borrowed */
        /* Called when the Node is cordoned (yes) or is no longer cordoned; never inside a function of this
         * module. A Node that is not known is not cordoned. */
        void (*cordoned)(void *u, bool yes);
        void *u;
};

/* Starts to watch the Node, and the files in the roots. Reports when the state is first known, in a later
 * turn of the loop, and after each change. */
struct gpu_conflicts *gpu_conflicts_new(const struct gpu_conflicts_options *o);
void gpu_conflicts_free(struct gpu_conflicts *v); /* NULL is allowed */
