/* SPDX-License-Identifier: Apache-2.0 */
/* dra_plugin: the services of a DRA driver for the kubelet: plugin registration, and DRAPlugin v1 and
 * v1beta1.
 *
 * Contracts: k8s.io/kubelet pluginregistration v1, dra v1 and v1beta1 (the two DRA versions differ only in
 * the package name; v1 adds Device.share_id). A call of the kubelet has one or more claims. Each claim
 * becomes an operation, all operations start at once, and the call is answered when the last one is done. An
 * operation that waits does not block the others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"

struct dra_plugin;
struct dra_op;

/* All three are Kubernetes names (letters, digits, '-', '.', '_', no dot at the start, at most 253 bytes),
 * and the UID is unique in its call. A request that violates this, or has no claim, is answered
 * INVALID_ARGUMENT as a whole and starts no operation. */
struct dra_claim {
        const char *namespace, *name, *uid;
};

struct dra_device {
        const char *const
                *requests; /* NULL-terminated; a "/subrequest" suffix is cut off by dra_op_prepared */
        const char *pool, *device;
        const char *const *cdi_ids; /* NULL-terminated, may be empty */
};

struct dra_plugin_ops {
        /* Each is answered once by dra_op_prepared, dra_op_unprepared or dra_op_fail, now or later. */
        void (*prepare)(void *u, struct dra_op *op, const struct dra_claim *claim);
        void (*unprepare)(void *u, struct dra_op *op, const struct dra_claim *claim);
        /* The kubelet closed the call, or its deadline passed, so there is nobody to answer. op is freed when
         * this returns. `op_data` is the value of dra_op_set_data(). */
        void (*cancelled)(void *u, struct dra_op *op, void *op_data);
        /* The kubelet's answer to the registration. */
        void (*registered)(void *u, bool ok, const char *error);
};

struct dra_plugin_options {
        const char *driver_name;   /* "compute-domain.nvidia.com" */
        const char *plugin_dir;    /* holds dra.sock */
        const char *registrar_dir; /* holds <driver_name>-reg.sock */
        const struct dra_plugin_ops *ops;
        void *u;
};

/* Serves dra.sock, then the registration socket. In this order the kubelet never finds a dead endpoint. */
int dra_plugin_new(uv_loop_t *loop, const struct dra_plugin_options *o, struct dra_plugin **ret,
                   struct err *e);
/* Removes the sockets, and cancels the open operations (ops->cancelled) before it returns. */
void dra_plugin_free(struct dra_plugin *p);
/* Why the kubelet cannot connect to the plugin: a socket file that does not exist; NULL: both exist. For
 * probes: only a restart of the plugin makes the kubelet find new files. */
const char *dra_plugin_fault(const struct dra_plugin *p);

void dra_op_set_data(struct dra_op *op, void *data);
/* Milliseconds left of the kubelet's deadline when the operation started, 0 when it gave none. */
uint64_t dra_op_timeout_ms(const struct dra_op *op);
void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n);
void dra_op_unprepared(struct dra_op *op);
/* `msg` appears unchanged in the pod's Event. */
void dra_op_fail(struct dra_op *op, const char *msg);
