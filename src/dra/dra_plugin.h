/* SPDX-License-Identifier: Apache-2.0 */
/* dra_plugin: the kubelet's side of a DRA driver: plugin registration, DRAPlugin v1 and v1beta1 and gRPC
 * health.
 *
 * Contracts: k8s.io/kubelet pluginregistration v1, dra v1 and v1beta1 (the two DRA messages differ only in
 * the package name; v1 adds Device.share_id), grpc.health.v1. One kubelet call holds many claims: each
 * becomes one operation, all are started at once, and the call is answered when the last one is done. An
 * operation that waits blocks no other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"

struct dra_plugin;
struct dra_op;

/* All three are Kubernetes names (letters, digits, '-', '.', '_', no dot in front, at most 253 bytes), and
 * the uid is unique in its call: a request that breaks this, or has no claim, is answered INVALID_ARGUMENT as
 * a whole and starts no operation. */
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
        /* The kubelet hung up or its deadline passed: the answer is lost; op is gone when this returns.
         * `op_data` is what dra_op_set_data stored. */
        void (*cancelled)(void *u, struct dra_op *op, void *op_data);
        /* The kubelet's answer to the registration. */
        void (*registered)(void *u, bool ok, const char *error);
        /* For the health service: NULL when well, else what is wrong. */
        const char *(*health)(void *u);
        /* The same for its service "readiness": does the kubelet find us, and the scheduler our devices? */
        const char *(*ready)(void *u);
};

struct dra_plugin_options {
        const char *driver_name;   /* "compute-domain.nvidia.com" */
        const char *plugin_dir;    /* holds dra.sock */
        const char *registrar_dir; /* holds <driver_name>-reg.sock */
        int health_port;           /* < 0: no health service on TCP */
        const struct dra_plugin_ops *ops;
        void *u;
};

/* Serves dra.sock, then the registration socket (in this order, so that the kubelet never finds a dead
 * endpoint). */
int dra_plugin_new(uv_loop_t *loop, const struct dra_plugin_options *o, struct dra_plugin **ret,
                   struct err *e);
/* Removes the sockets; operations still open are cancelled (ops->cancelled) before it returns. */
void dra_plugin_free(struct dra_plugin *p);
/* The port of the health service (for health_port 0), -1 without one. */
int dra_plugin_health_port(const struct dra_plugin *p);

void dra_op_set_data(struct dra_op *op, void *data);
/* Milliseconds left of the kubelet's deadline when the operation started, 0 when it gave none. */
uint64_t dra_op_timeout_ms(const struct dra_op *op);
void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n);
void dra_op_unprepared(struct dra_op *op);
/* `msg` reaches the pod's event word for word. */
void dra_op_fail(struct dra_op *op, const char *msg);
