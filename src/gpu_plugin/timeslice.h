/* SPDX-License-Identifier: Apache-2.0 */
/* timeslice: sets the time slice of a GPU (how long it runs one process before it switches to the next) and
 * its compute mode.
 *
 * NVML has no call for the time slice, so the driver's own nvidia-smi sets both, as with the Go driver: first
 * the mode of all GPUs (`-i <uuid> -c DEFAULT`), then the slice (`compute-policy -i <uuid> --set-timeslice
 * <0..3>`). One nvidia-smi runs at a time, with a time-out. Loop thread only. */
#pragma once

#include <uv.h>

#include "api/gpu_config.h"
#include "nvidia/driver_root.h"

enum { TIMESLICE_TIMEOUT_MS = 20000 }; /* for each run of nvidia-smi */

/* Called once, after timeslice_start() has returned. The module frees the object after the call. e NULL: all
 * GPUs are set. Otherwise e is the first failure, with the output of nvidia-smi. */
typedef void(timeslice_done_fn)(void *u, const struct err *e);

struct timeslice_gpu {
        const char *uuid; /* UUID of a whole GPU */
        enum gpu_interval interval;
        bool mode_only; /* set only the compute mode, not the time slice */
};
struct timeslice_options {
        struct driver_root root;          /* borrowed until done() */
        const struct timeslice_gpu *gpus; /* copied */
        size_t n;
        /* True: after a failure, GPUs that were already changed are reset to the default, and the others are
         * not changed. False: a failure does not stop the module from setting the other GPUs. */
        bool all_or_none;
        timeslice_done_fn *done;
        void *u;
};

struct timeslice;
struct timeslice *timeslice_start(uv_loop_t *loop, const struct timeslice_options *o);
/* Kills the running nvidia-smi and frees the object; done() is not called. NULL is allowed. */
void timeslice_cancel(struct timeslice *t);
