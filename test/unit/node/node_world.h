/* SPDX-License-Identifier: Apache-2.0 */
/* node_world: claims of one driver on a node, in this process: the node half between an API client and a
 * kubelet that are defined here. A failure fails the test. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "node/claims.h"

#define BOOT "11111111-1111-4111-8111-111111111111"
/* Claims of namespace "user". */
#define ONE "c0000000-0000-4000-8000-000000000001"
#define TWO "c0000000-0000-4000-8000-000000000002"

enum answer { PENDING, PREPARED, UNPREPARED, FAILED };
struct dra_op {
        enum answer answer;
        char text[1024]; /* of the devices, or why not */
};

struct node_world {
        uv_loop_t loop;
        char *dir, *plugin_dir, *cdi_root;
        struct metrics *registry;
        struct node_metrics_options metrics_options;
        struct node_metrics metrics;
        struct claims *claims;
        /* The claim of this name: its UID, and what stands in its status.allocation.devices, as JSON, which
         * the caller frees. */
        char *(*claim)(const char *name, const char **ret_uid);
        const char *boot; /* NULL: the first */
        unsigned gets; /* claims that were read */
        bool hold_gets;   /* no claim is read until node_world_answer() */
        struct kube_call *held; /* the last of these */
        char event[600];  /* the last one */
};
extern struct node_world node;

/* types: of its devices, for its metrics; NULL-terminated, borrowed. */
void node_world_begin(const char *driver, const char *const *types,
                      char *(*claim)(const char *name, const char **ret_uid));
int node_world_end(void);

/* The plugin's process begins; that of before is gone (claims_free). */
void node_world_start(const struct node_driver *driver, void *u);

/* Answers the one that is held, or fails it with ERR_RETRY; retry: only its `retry` is called. */
void node_world_answer(bool fails, bool retry);

void prepare_claim(struct dra_op *op, const char *name);
void unprepare_claim(struct dra_op *op, const char *name);
void until(const struct dra_op *op, enum answer want);
void prepared_claim(const char *name); /* it is, in the end */
void unprepared_claim(const char *name);
/* The first operation, once it waits. */
const struct op *waiting(void);
