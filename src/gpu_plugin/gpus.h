/* SPDX-License-Identifier: Apache-2.0 */
/* gpus: keeps an up-to-date list of this node's GPUs.
 *
 * No event announces that GPUs were added or removed, that MIG was reconfigured, or that the NVIDIA driver
 * was replaced. So this module takes a fingerprint of the node (nvidia/fingerprint.h) every 30 s, every 2 s
 * while a caller waits, and in gpus_hold(). It queries NVML, in a separate process, only if the fingerprint
 * has changed, and retries after a failure.
 *
 * Some changes leave no trace outside of NVML, so the fingerprint does not contain them: a GPU falls off the
 * bus, the MIG mode of a GPU without MIG devices changes, or MIG devices are replaced by others with the same
 * IDs. NVML has events only for an open session, and an open session prevents a change of the MIG mode. So a
 * Prepare queries its GPUs (gpus_verify()), and a GPU that is in MIG mode without MIG devices is queried
 * every minute.
 *
 * A failed query does not mean that the GPUs are lost: the last answer stays valid until the next one. If the
 * NVIDIA driver is missing, this counts as an answer. The module removes a GPU or a MIG device from the list
 * after NVML could not describe it three times in a row, or did not list the GPU three times in a row
 * although the fingerprint has not changed. While a device is left out for this reason, the module queries
 * NVML every minute, because a reset of the GPU does not change the fingerprint. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "gpu_plugin/gpu_devices.h"
#include "nvidia/driver_root.h"

struct gpus_options { /* the strings are borrowed until gpus_free() */
        struct driver_root root;
        const char *proc_driver;   /* "/proc/driver/nvidia" or its substitute */
        const char *sys;           /* "/sys" or its substitute */
        const char *own_dev;       /* "/dev", where the plugin creates device nodes for NVML; NULL: nowhere */
        void (*changed)(void *u);  /* the devices or the state have changed; never called inside gpus_*() */
        void (*verified)(void *u); /* gpus_verify() may return true now; never called inside gpus_*() */
        void (*failed)(void *u, const char *kind); /* the process that calls NVML "hung" or "crashed" */
        void *u;
};

struct gpus_state {
        bool known;         /* the devices are known: NVML has answered */
        const char *reason; /* why no GPU is offered, for metrics and Events: "DriverNotFound", ...; or "" */
        char message[400];  /* the same reason, for people */
        unsigned failures;  /* failed queries in a row; reported if at least GPUS_STALE */
        char error[400];    /* the error of the last failed query */
        /* The path, in our container, of the library that answered, and the node's fingerprint at that time
         * (nvidia/fingerprint.h), which differs for another driver or another set of GPUs. library NULL: no
         * library has answered. */
        const char *library;
        uint64_t fingerprint;
};
enum { GPUS_STALE = 3 };

struct gpus;
struct gpus *gpus_new(uv_loop_t *loop, const struct gpus_options *o);
const struct gpus_state *gpus_get(const struct gpus *g);
/* Returns the devices; empty if none is known. Valid until the next call of changed(). */
const struct gpu_devices *gpus_devices(const struct gpus *g);
/* Returns true if the devices are known and the fingerprint has not changed. Otherwise a query of NVML is
 * running, and the module calls changed() after it, even if nothing has changed. */
bool gpus_hold(struct gpus *g);
/* Returns true if NVML has described this device, one of gpus_devices(), after `since_ms` (loop_now_ms()), or
 * if NVML cannot answer: then the last answer counts. Otherwise NVML is queried, and the module calls
 * verified() after that. One query serves all devices that are requested in the same turn of the loop. If a
 * device has changed, gpus_hold() returns false until NVML has described all devices again. If NVML fails for
 * it, gpus_doubt() applies. */
bool gpus_verify(struct gpus *g, const struct gpu_device *d, uint64_t since_ms);
/* Queries the devices again, because NVML has failed for one of them. gpus_hold() returns false until that
 * query has ended. If it fails, the last answer stays valid. */
void gpus_doubt(struct gpus *g);
/* Sets whether a caller waits until gpus_hold() returns true. If so, the fingerprint is taken more often. */
void gpus_poll_fast(struct gpus *g, bool waiting);
void gpus_free(struct gpus *g);
