/* SPDX-License-Identifier: Apache-2.0 */
/* gpus: the GPUs of this node, kept as they are.
 *
 * Nothing announces that a GPU fell off the bus, that MIG was set up anew or the driver replaced. So a
 * fingerprint of the node (nvidia/fingerprint.h) is taken every 30 s, every 2 s while somebody waits, and
 * when somebody asks whether what is known still holds; NVML is asked, in a process of its own, only when it
 * has changed, and again when an answer failed.
 *
 * What failed to be asked is not gone: the last answer holds until there is another. That the driver is not
 * there is an answer. A GPU that NVML cannot describe is withdrawn when it was so three times in a row; NVML
 * is asked again every minute as long as anything is left out for that reason, because a reset leaves no
 * trace. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "gpu_plugin/device.h"
#include "nvidia/driver_root.h"

struct gpus_options { /* the strings are borrowed until gpus_free() */
        struct driver_root root;
        const char *proc_driver;  /* "/proc/driver/nvidia" or its substitute */
        const char *sys;          /* "/sys" or its substitute */
        const char *dev;          /* "/dev", or that below the driver root */
        void (*changed)(void *u); /* the devices or the state; never from inside a call of ours */
        void (*failed)(void *u, const char *kind); /* NVML's process was "hung" or has "crashed" */
        void *u;
};

struct gpus_state {
        bool known;         /* there has been an answer */
        const char *reason; /* a word for metrics and events why none is offered: "DriverNotFound", ...; "" */
        char message[400];  /* for people */
        unsigned failures;  /* to get a newer answer, in a row: from GPUS_STALE on people should know */
        char error[400];    /* the last of them */
        /* The library that answered, as we see it, and what the node showed then (nvidia/fingerprint.h), so
         * that another driver or another set of GPUs is another number. NULL: none. */
        const char *library;
        uint64_t fingerprint;
};
enum { GPUS_STALE = 3 };

struct gpus;
struct gpus *gpus_new(uv_loop_t *loop, const struct gpus_options *o);
const struct gpus_state *gpus_get(const struct gpus *g);
/* They last until the next call of changed(). Empty where none is known. */
const struct gpu_devices *gpus_devices(const struct gpus *g);
/* Is it known, and still what the node shows? If not, NVML is being asked, and changed() will be called, too,
 * when nothing has changed. */
bool gpus_hold(struct gpus *g);
/* Somebody waits until gpus_hold(). */
void gpus_poll_fast(struct gpus *g, bool waiting);
void gpus_free(struct gpus *g);
