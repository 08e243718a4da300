/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_state: what the functions of this driver share: `u` of node/driver.h. Loop thread only. */
#pragma once

#include <sys/queue.h>

#include "api/gpu_config.h"
#include "gpu_plugin/gpu_driver.h"
#include "gpu_plugin/gpu_edits.h"
#include "nvidia/driver_set.h"

/* What all devices of a claim have, from the plan of the claim to that of the last one. */
struct gpu_planning {
        struct gpu_edits_options options;
        struct cdi_edits common;
};

struct gpu {
        struct gpu_driver_options o; /* but for the hook */
        char *hook;
        struct claims *claims;
        const struct gpu_devices *devices; /* NULL: not known yet */
        char why[512];                     /* for people: why not, or what is wrong all the same */
        /* The driver's files of devices->driver_version; checked, and found again, with each claim. */
        struct arena *arena; /* NULL: not searched yet */
        struct driver_set files;
        const char *firmware_path; /* with which they were searched */
        struct gpu_planning planning;
        TAILQ_HEAD(, gpu_work) waiting; /* gpu_work.c: for the GPUs to be known */
};

/* What an operation may wait for here. */
enum { WAITS_FOR_GPUS = WAITS_FOR_DRIVER };

/* node_want.own */
struct gpu_want {
        enum gpu_config_kind kind;
        struct gpu_config config;
        size_t config_index;
        const char *info; /* what is recorded of the device, when it has been planned */
};
static inline struct gpu_want *gpu_want_of(const struct node_want *w) {
        return w->own;
}
