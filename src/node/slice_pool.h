/* SPDX-License-Identifier: Apache-2.0 */
/* slice_pool: distributes devices over several ResourceSlices, and determines the next write. Pure.
 *
 * The scheduler uses the slices of a pool's highest generation, and waits until it sees as many as each of
 * them states. So a single changed slice is replaced in its generation. As soon as two writes are needed, all
 * slices get a new generation, so that no reader sees half of the old devices and half of the new. A slice's
 * place is in its name ("00001-<driver>-<node>-x7k2p"), which the server makes unique. */
#pragma once

#include "node/slice.h"

/* Limits of resource.k8s.io: the server refuses more. The second one applies if any device has a taint. */
enum { SLICE_DEVICES_MAX = 128, SLICE_TAINTED_DEVICES_MAX = 64 };

/* At least one: a node without devices has one empty slice. */
size_t slice_pool_size(const struct slice_content *want);
/* The part at one place. `generation` is 0. */
struct slice_part slice_pool_part(const struct slice_content *want, size_t place);

struct slice_step {
        enum { SLICE_DONE, SLICE_DELETE, SLICE_UPDATE, SLICE_CREATE } kind;
        const struct own_slice *slice; /* to delete, or to write over */
        struct slice_part part;        /* to write */
};

/* `have` are the node's slices on the server. *target is the generation that is being written, or 0. It is
 * kept from step to step, and is 0 again with SLICE_DONE. */
struct slice_step slice_pool_next(const struct own_slice *const *have, size_t n, const char *node,
                                  const struct slice_content *want, int64_t *target);
