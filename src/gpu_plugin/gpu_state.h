/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_state: the state that the functions of this driver share: `u` of node/driver.h. Loop thread only. */
#pragma once

#include <sys/queue.h>

#include "api/gpu_config.h"
#include "gpu_plugin/gpu_driver.h"
#include "gpu_plugin/gpu_edits.h"
#include "nvidia/driver_set.h"

/* What all devices of a claim share. Valid from the plan of the claim to the plan of its last device. */
struct gpu_planning {
        struct gpu_edits_options options;
        struct cdi_edits common;
};

struct gpu {
        struct gpu_driver_options o; /* except `hook` */
        char *hook;
        struct claims *claims;
        const struct gpu_devices *devices; /* NULL: not known */
        char why[512];                     /* for people: why they are not known, or a problem with them */
        /* The driver's files for devices->driver_version. Each claim checks them, and searches again if they
         * have changed. */
        struct arena *arena; /* NULL: not searched yet */
        struct driver_set files;
        const char *firmware_path; /* the path of that search */
        struct gpu_planning planning;
        TAILQ_HEAD(, gpu_work) waiting; /* gpu_work.c: until the GPUs are known */
};

/* What an operation may wait for here. */
enum { WAITS_FOR_GPUS = WAITS_FOR_DRIVER };

/* node_request.own */
struct gpu_request {
        enum gpu_config_kind kind;
        struct gpu_config config;
        size_t config_index;
        const char *info; /* the record of the device, set when it has been planned */
};
static inline struct gpu_request *gpu_want_of(const struct node_request *w) {
        return w->own;
}
