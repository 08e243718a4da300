/* SPDX-License-Identifier: Apache-2.0 */
/* slice_pool: devices over several ResourceSlices, and what to write next so that the server holds them.
 * Pure.
 *
 * The scheduler takes the slices of a pool's highest generation, and waits until it sees as many as each of
 * them says that there are. So one slice that changes is written over as it is; as soon as two writes are
 * needed, all get a generation of their own, and nobody sees half of the old devices and half of the new. A
 * slice's place is in its name ("00001-<driver>-<node>-x7k2p"), which the server makes unique. */
#pragma once

#include "node/slice.h"

/* Of resource.k8s.io: more the server refuses; of the second, as soon as one of them has a taint. */
enum { SLICE_DEVICES_MAX = 128, SLICE_TAINTED_DEVICES_MAX = 64 };

/* At least one: a node without devices says so. */
size_t slice_pool_size(const struct slice_content *want);
/* The part of one place. `generation` is left 0. */
struct slice_part slice_pool_part(const struct slice_content *want, size_t place);

struct slice_step {
        enum { SLICE_DONE, SLICE_DELETE, SLICE_UPDATE, SLICE_CREATE } kind;
        const struct own_slice *slice; /* to delete, or to write over */
        struct slice_part part;        /* to write */
};

/* `have` are the node's slices as the server has them. *target is the generation that is being written, 0
 * when none is: it is kept from step to step, and is 0 again with SLICE_DONE. */
struct slice_step slice_pool_next(const struct own_slice *const *have, size_t n, const char *node,
                                  const struct slice_content *want, int64_t *target);
