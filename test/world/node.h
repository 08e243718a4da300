/* SPDX-License-Identifier: Apache-2.0 */
/* node: runs the node half with one driver on node n0, in this process, between a simulated API server and
 * kubelet (world/api.h, world/kubelet.h). A failure fails the test. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "node/claims.h"
#include "world/api.h"
#include "world/kubelet.h"

#define NODE_BOOT "11111111-1111-4111-8111-111111111111"
/* Claims of namespace "user". */
#define ONE "c0000000-0000-4000-8000-000000000001"
#define TWO "c0000000-0000-4000-8000-000000000002"

/* Returns the UID of the claim of this name and its status.allocation.devices as JSON, which the caller
 * frees. */
typedef char *(node_claim_fn)(const char *name, const char **ret_uid);

struct node_world {
        uv_loop_t loop;
        char *dir, *plugin_dir, *cdi_root;
        struct node_metrics metrics;
        struct claims *claims;
        node_claim_fn *claim;
        const char *boot; /* NULL: NODE_BOOT */
};
extern struct node_world node;

/* Creates the world. `types`: the types of the devices, for the metrics; NULL-terminated, borrowed. */
void node_begin(const char *driver, const char *const *types, node_claim_fn *claim);
int node_end(void);

/* Starts the plugin's process; the previous one has ended (claims_free). */
void node_start(const struct node_driver *driver, void *u);
/* Starts claims of any test on this loop. Returns -1 if they do not start. */
int node_start_claims(uv_loop_t *loop, struct claims *c, struct err *e);

/* Run the API server once or, if it has nothing to do, the loop. node_poll() does not wait. */
void node_turn(void);
void node_poll(void);
/* Prepare and Unprepare the claim as it is in the API server at this moment. */
void prepare_claim(struct dra_op *op, const char *name);
void unprepare_claim(struct dra_op *op, const char *name);
void until(const struct dra_op *op, enum answer want);
void prepared_claim(const char *name); /* waits until it is prepared */
void unprepared_claim(const char *name);
/* Returns the first operation, after it has begun to wait. */
const struct op *waiting(void);
