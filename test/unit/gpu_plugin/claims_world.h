/* SPDX-License-Identifier: Apache-2.0 */
/* claims_world: claims of a node with two GPUs and a MIG device, in this process: the driver on the node
 * half, between an API client and a kubelet that are defined here. A failure fails the test. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "gpu_plugin/gpu_driver.h"
#include "node/claims.h"

#define BOOT "11111111-1111-4111-8111-111111111111"
/* Claims of namespace "user", called "one" and "two". */
#define ONE "c0000000-0000-4000-8000-000000000001"
#define TWO "c0000000-0000-4000-8000-000000000002"

enum answer { PENDING, PREPARED, UNPREPARED, FAILED };
struct dra_op {
        enum answer answer;
        char text[1024]; /* of the devices, or why not */
};

struct claims_world {
        uv_loop_t loop;
        char *dir, *plugin_dir, *cdi_root, *sys, *proc, *proc_devices;
        struct metrics *registry;
        struct node_metrics metrics;
        struct claims *claims;
        struct gpu *gpu;
        struct gates gates;
        struct gpu_devices devices;
        const char *results, *config; /* of the claim, as JSON */
        bool nodes;                   /* device nodes can be made here */
        bool holds, wanted;
        const char *boot; /* NULL: the first */
        unsigned gets;
        char event[600]; /* the last one */
};
extern struct claims_world w;
extern struct gpu_device gpus[3];

#define RESULT(request, device)                                                                              \
        "{\"request\":\"" request "\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"" device    \
        "\"}"

int claims_world_setup(void **state);
int claims_world_teardown(void **state);
#define T(name) cmocka_unit_test_setup_teardown(name, claims_world_setup, claims_world_teardown)
/* First in a test that needs them. */
void needs_nodes(void);

/* The plugin's process begins; that of before is gone (claims_free). */
void start(void);

void prepare(struct dra_op *op, const char *name);
void until(const struct dra_op *op, enum answer want);
void prepared(const char *name); /* it is, in the end */
void unprepared(const char *name);
void refused(const char *name, const char *why);
/* The first operation, once it waits. */
const struct op *waiting(void);

/* The claim's CDI file. */
char *file_of(const char *uid);
bool is_there(const char *uid);
char *read_file(const char *path);
char *read_checkpoint(void);
void lose_checkpoint(void);
