/* SPDX-License-Identifier: Apache-2.0 */
/* dra_health: sends the health of the devices of prepared claims to the kubelet, which shows it in the status
 * of pods (containerStatuses[].allocatedResourcesStatus).
 *
 * Contract: k8s.io/kubelet dra-health v1 and v1alpha1, NodeWatchResources: a stream of complete lists. The
 * kubelet (pkg/kubelet/cm/dra) identifies a device by the pool and the name in the answer to Prepare. A
 * report expires after 30 s, so it is repeated. When a stream ends, the kubelet forgets all reports, and
 * opens a new stream after 5 s. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/mem.h"
#include "base/str.h"

enum dra_health_state { DRA_HEALTH_UNKNOWN, DRA_HEALTH_GOOD, DRA_HEALTH_BAD };

struct dra_device_health {
        const char *pool, *device;
        enum dra_health_state state;
        const char *message; /* for users; "": none */
};

struct dra_health_list {
        const struct dra_device_health *devices;
        size_t n;
        /* Some devices have the state UNKNOWN only until an answer arrives that has been requested. A change
         * is then not sent, but the repetition is. The owner calls dra_health_changed() after the answer. */
        bool pending;
};

/* Lists the devices of all prepared claims. Everything is valid until the arena is freed. */
typedef void(dra_health_fn)(void *u, struct arena *a, struct dra_health_list *ret);

enum {
        DRA_HEALTH_REPEAT_MS = 10000,
        /* The facts of one change arrive from several sources, such as a file and a watch. */
        DRA_HEALTH_SETTLE_MS = 500,
        DRA_HEALTH_MESSAGE_MAX = 1000, /* bytes of a message. The kubelet cuts off after 1024 */
};

struct dra_health;
struct grpc_call;

struct dra_health *dra_health_new(uv_loop_t *loop, dra_health_fn *fn, void *u);
/* Call it when all streams have ended (grpc_server_free()). NULL is allowed. */
void dra_health_free(struct dra_health *h);
/* Begins a stream: takes ownership of the call. */
void dra_health_watch(struct dra_health *h, struct grpc_call *call);
/* The health of devices may have changed. If it has, the streams get a list after DRA_HEALTH_SETTLE_MS. */
void dra_health_changed(struct dra_health *h);

/* Appends the message with this list; pure. *a is for temporary memory. */
void dra_health_render(const struct dra_health_list *l, int64_t now_s, struct arena *a, struct buf *out);
