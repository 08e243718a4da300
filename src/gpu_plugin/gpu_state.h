/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_state: defines the state that the functions of this driver share. They receive it as `u`
 * (node/driver.h). Loop thread only. */
#pragma once

#include <sys/queue.h>

#include "api/gpu_config.h"
#include "gpu_plugin/gpu_driver.h"
#include "gpu_plugin/gpu_edits.h"
#include "nvidia/driver_set.h"

/* Data that all devices of a claim share. It is valid from gpu_plan_claim() to the gpu_plan_device() of the
 * claim's last device. */
struct gpu_planning {
        struct gpu_edits_options options;
        struct cdi_edits common;
};

struct gpu {
        struct gpu_driver_options o; /* except `hook`, which is below */
        char *hook;
        bool no_profiles; /* the hook lacks HOOK_PROFILE_COMMAND (gpu_hook.h) */
        struct claims *claims;
        const struct gpu_devices *devices; /* NULL: unknown */
        char why[512];                     /* for people: why `devices` is unknown, or a problem with them */
        /* The driver's files for devices->driver_version. The plan of each claim checks whether they have
         * changed, and then searches again. */
        struct arena *arena; /* NULL: not searched yet */
        struct driver_set files;
        const char *firmware_path; /* the firmware path that this search used */
        struct gpu_planning planning;
        TAILQ_HEAD(, gpu_work) waiting; /* work that waits until the GPUs are known (gpu_work.c) */
};

/* The condition that an operation of this driver may wait for. */
enum { WAITS_FOR_GPUS = WAITS_FOR_DRIVER };

/* The driver's part of a request: node_request.own points to it. */
struct gpu_request {
        enum gpu_config_kind kind;
        struct gpu_config config;
        size_t config_index;
        uint64_t ready_ms; /* when only `verify` remained to be checked; 0: not yet */
        const char *info;  /* the record of the device; set by gpu_plan_device() */
};
static inline struct gpu_request *gpu_want_of(const struct node_request *w) {
        return w->own;
}
