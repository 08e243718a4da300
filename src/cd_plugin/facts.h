/* SPDX-License-Identifier: Apache-2.0 */
/* facts: samples the state of this node's NVIDIA driver and partition. It must sample, because nothing
 * notifies of changes of NVML's fabric state or of the majors in /proc/devices.
 *
 * One sampler reads all facts. The interval grows from 20 ms to 1 s while an operation waits for a better
 * answer. It grows to 5 s while the node has nothing to offer, and is 30 s otherwise. A child process queries
 * NVML. There are no errors: the absence of a driver is a fact, too.
 *
 * An answer of NVML takes effect at once. A missing answer is no information: while the child process hangs
 * or crashes, or the driver root cannot be searched, the facts of a usable node stay valid for
 * FACTS_HOLD_MS. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "nvidia/driver_root.h"
#include "nvidia/gpu_fabric.h"
#include "nvidia/proc_files.h"

enum { FACTS_HOLD_MS = 300000 };

struct facts {
        bool known;         /* NVML has answered at least once, or does not exist */
        bool usable;        /* devices can be offered; otherwise see reason and message */
        const char *reason; /* for Events and metrics: "DriverNotFound", ...; "" when usable */
        char message[400];  /* an explanation for users */
        char driver_version[96];
        struct gpu_fabric fabric;
        unsigned channel_major; /* the device major of the channels; 0: none */
        unsigned channel_count; /* ImexChannelCount of the driver, or the driver's default if it is not set */
};

/* The input of facts_evaluate(), which is pure, for tests. */
struct facts_input {
        const struct nvml_facts *nvml; /* NULL: see nvml_error */
        const struct err *nvml_error;
        unsigned channel_major; /* 0: see major_error */
        unsigned channel_count;
        const struct err *major_error;
        bool strict;    /* gate CrashOnNVLinkFabricErrors */
        bool runs_imex; /* our daemon runs IMEX and lists nodes by name, so the NVIDIA driver must support
                           names */
};
void facts_evaluate(const struct facts_input *in, struct facts *ret);
#define FACTS_MIN_DRIVER "570.158.01"

struct facts_sampler;

struct facts_options { /* the strings are borrowed until facts_sampler_free() */
        struct driver_root root;
        const char *proc_devices; /* "/proc/devices" or its substitute */
        const char *proc_driver;  /* "/proc/driver/nvidia" or its substitute */
        const char *own_dev;      /* "/dev", where the plugin creates device nodes for NVML; NULL: nowhere */
        bool strict, runs_imex;
        void (*changed)(void *u); /* the facts have changed; never called from inside a function of this
                                     module */
        void *u;
};

struct facts_sampler *facts_sampler_new(uv_loop_t *loop, const struct facts_options *o);
const struct facts *facts_get(const struct facts_sampler *s);
/* Sets whether an operation waits for a better answer. While it is true, the sampler uses short intervals. */
void facts_poll_fast(struct facts_sampler *s, bool waiting);
/* Reads a device major of the NVIDIA driver now, instead of returning the last sample. */
int facts_major(const struct facts_sampler *s, const char *name, unsigned *ret, struct err *e);
void facts_sampler_free(struct facts_sampler *s);
