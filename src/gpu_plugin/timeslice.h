/* SPDX-License-Identifier: Apache-2.0 */
/* timeslice: sets the time slice of a GPU (how long it works for one process before the next) and its compute
 * mode.
 *
 * NVML has no call for the time slice, so the driver's own nvidia-smi sets both, as with the Go driver: first
 * the mode of all GPUs (`-i <uuid> -c DEFAULT`), then the slice (`compute-policy -i <uuid> --set-timeslice
 * <0..3>`). One nvidia-smi runs at a time, with a time-out. Loop thread only. */
#pragma once

#include <uv.h>

#include "api/gpu_config.h"
#include "nvidia/driver_root.h"

enum { TIMESLICE_TIMEOUT_MS = 20000 }; /* of each nvidia-smi */

/* Called once, never before timeslice_start() returns. The object is freed after the call. e NULL: all GPUs
 * are set. Otherwise the first failure, in nvidia-smi's words. */
typedef void(timeslice_done_fn)(void *u, const struct err *e);

struct timeslice_gpu {
        const char *uuid; /* of a whole GPU */
        enum gpu_interval interval;
        bool mode_only; /* do not change its time slice */
};
struct timeslice_options {
        struct driver_root root;          /* borrowed until done() */
        const struct timeslice_gpu *gpus; /* copied */
        size_t n;
        /* True: after a failure, the GPUs that were set get the default again, and the others are not
         * changed. False: all GPUs are tried. */
        bool all_or_none;
        timeslice_done_fn *done;
        void *u;
};

struct timeslice;
struct timeslice *timeslice_start(uv_loop_t *loop, const struct timeslice_options *o);
/* Kills the running nvidia-smi. done() is not called any more. NULL is allowed. */
void timeslice_cancel(struct timeslice *t);
