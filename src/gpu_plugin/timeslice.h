/* SPDX-License-Identifier: Apache-2.0 */
/* timeslice: how long a GPU works for one process before the next one has its turn, and its compute mode.
 *
 * NVML has no call for the time slice, so the driver's own nvidia-smi sets both, as the Go driver has it do:
 * of all GPUs first the mode (`-i <uuid> -c DEFAULT`), then the slice (`compute-policy -i <uuid>
 * --set-timeslice <0..3>`). It runs one at a time, with a time-out. Loop thread only. */
#pragma once

#include <uv.h>

#include "api/gpu_config.h"
#include "nvidia/driver_root.h"

enum { TIMESLICE_TIMEOUT_MS = 20000 }; /* of each nvidia-smi */

/* Once, never from inside timeslice_start(); the object is freed behind it. e NULL: all are set. Otherwise
 * the first that failed, in nvidia-smi's words. */
typedef void(timeslice_done_fn)(void *u, const struct err *e);

struct timeslice_gpu {
        const char *uuid; /* of a whole GPU */
        enum gpu_interval interval;
        bool mode_only; /* its time slice is not touched */
};
struct timeslice_options {
        struct driver_root root;          /* borrowed to the end */
        const struct timeslice_gpu *gpus; /* copied */
        size_t n;
        /* When one fails, those that had been set get the default back, and the others are not touched;
         * false: all of them are tried. */
        bool all_or_none;
        timeslice_done_fn *done;
        void *u;
};

struct timeslice;
struct timeslice *timeslice_start(uv_loop_t *loop, const struct timeslice_options *o);
/* done() is not called any more; what runs is killed. NULL is allowed. */
void timeslice_cancel(struct timeslice *t);
