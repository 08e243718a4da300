/* SPDX-License-Identifier: Apache-2.0 */
/* slice_pool: distributes devices over several ResourceSlices, and determines the next write. Pure.
 *
 * The scheduler uses the slices of a pool's highest generation, and waits until it sees as many slices as
 * each of them states. So a single changed slice is replaced without a new generation. As soon as two writes
 * are needed, all slices get a new generation, so that no reader sees a mixture of old and new devices. The
 * position of a slice is in its name ("00001-<driver>-<node>-x7k2p"), which the server makes unique. */
#pragma once

#include "node/slice.h"

/* The limits of resource.k8s.io: the server rejects a slice with more devices. The second limit applies if
 * any device has a taint. */
enum { SLICE_DEVICES_MAX = 128, SLICE_TAINTED_DEVICES_MAX = 64 };

/* Returns the number of slices. It is at least one, because a node without devices has one empty slice. */
size_t slice_pool_size(const struct slice_content *want);
/* Returns the part at position `place`. Its `generation` is 0. */
struct slice_part slice_pool_part(const struct slice_content *want, size_t place);

struct slice_step {
        enum { SLICE_DONE, SLICE_DELETE, SLICE_UPDATE, SLICE_CREATE } kind;
        const struct own_slice *slice; /* the slice to delete, or to replace */
        struct slice_part part;        /* the part to write */
};

/* Returns the next step. `have` are the node's slices on the server. *target is the generation that is being
 * written, or 0. The caller keeps it from step to step. It is 0 again with SLICE_DONE. */
struct slice_step slice_pool_next(const struct own_slice *const *have, size_t n, const char *node,
                                  const struct slice_content *want, int64_t *target);
