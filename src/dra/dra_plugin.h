/* SPDX-License-Identifier: Apache-2.0 */
/* dra_plugin: serves the kubelet the gRPC services of a DRA driver: plugin registration, and DRAPlugin v1 and
 * v1beta1, and DRAResourceHealth v1 and v1alpha1 (dra_health.h).
 *
 * Contracts: k8s.io/kubelet pluginregistration v1, dra v1 and v1beta1 (the two DRA versions differ only in
 * the package name; v1 adds Device.share_id). A call of the kubelet has one or more claims. Each claim
 * becomes an operation. All operations start at once, and the call is answered when the last one has ended.
 * An operation that waits does not block the others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "dra/dra_health.h"
#include "dra/grpc_server.h"

struct dra_plugin;
struct dra_op;

/* A claim in a call. All three members are Kubernetes names (letters, digits, '-', '.', '_', no dot at the
 * start, at most 253 bytes), and the UID is unique in its call. A request that violates this, or has no
 * claim, is rejected as a whole with INVALID_ARGUMENT and starts no operation. */
struct dra_claim {
        const char *namespace, *name, *uid;
};

struct dra_device {
        /* NULL-terminated. dra_op_prepared() cuts off a "/subrequest" suffix. */
        const char *const *requests;
        const char *pool, *device;
        const char *const *cdi_ids; /* NULL-terminated, may be empty */
};

struct dra_plugin_ops {
        /* Start an operation. The owner answers each operation exactly once with dra_op_prepared(),
         * dra_op_unprepared() or dra_op_fail(), inside this call or later. */
        void (*prepare)(void *u, struct dra_op *op, const struct dra_claim *claim);
        void (*unprepare)(void *u, struct dra_op *op, const struct dra_claim *claim);
        /* Called when the kubelet has closed the call, or its deadline has passed, so the operation must not
         * be answered any more. `op` is freed when this function returns. `op_data` is the value of
         * dra_op_set_data(). */
        void (*cancelled)(void *u, struct dra_op *op, void *op_data);
        /* Receives the kubelet's answer to the registration. */
        void (*registered)(void *u, bool ok, const char *error);
};

struct dra_plugin_options {
        const char *driver_name;   /* "compute-domain.nvidia.com" */
        const char *plugin_dir;    /* holds dra.sock */
        const char *registrar_dir; /* holds <driver_name>-reg.sock */
        const struct dra_plugin_ops *ops;
        dra_health_fn *health; /* NULL: the plugin does not offer DRAResourceHealth */
        void *u;
};

/* Serves dra.sock first, and then the registration socket. Because of this order, the kubelet never finds a
 * dead endpoint. */
int dra_plugin_new(uv_loop_t *loop, const struct dra_plugin_options *o, struct dra_plugin **ret,
                   struct err *e);
/* Removes the sockets, and cancels the open operations (ops->cancelled) before it returns. */
void dra_plugin_free(struct dra_plugin *p);
/* Call it when the result of `health` may have changed. NULL is allowed. */
void dra_plugin_health_changed(struct dra_plugin *p);
/* Returns why the kubelet cannot connect to the plugin: a static text that states which socket does not
 * exist; NULL: both socket files exist. For probes: the kubelet finds new socket files only after the plugin
 * restarts. */
const char *dra_plugin_fault(const struct dra_plugin *p);

void dra_op_set_data(struct dra_op *op, void *data);
/* Returns how many milliseconds were left of the kubelet's deadline when the operation started; 0: the
 * kubelet set no deadline. */
uint64_t dra_op_timeout_ms(const struct dra_op *op);
void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n);
void dra_op_unprepared(struct dra_op *op);
/* Answers the operation with an error. `msg` appears unchanged in the pod's Event. */
void dra_op_fail(struct dra_op *op, const char *msg);

/* Handles one NodePrepareResources or NodeUnprepareResources call of the kubelet. Each claim in the
 * call becomes an operation, and the call is answered when the last operation has ended. */

/* Takes ownership of the call. `ops` must outlive it. */
void dra_call_start(const struct dra_plugin_ops *ops, void *u, bool prepare, struct grpc_call *grpc,
                    struct str message);
