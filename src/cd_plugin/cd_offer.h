/* SPDX-License-Identifier: Apache-2.0 */
/* cd_offer: the devices of this node in its ResourceSlice. Pure. */
#pragma once

#include "node/slice.h"

struct cd_offer {
        bool channels;         /* false: none; with assigned channels the annotation stays */
        bool daemon;           /* the daemon device: not when the host runs IMEX */
        unsigned seats;        /* channel devices. More than one: places for pods whose channels are assigned;
                                  without a clique ID there are none */
        const char *clique_id; /* "": none. An attribute of the devices if we run IMEX or channels are
                                  assigned; without a daemon device an annotation of the slice */
        const char *rack;      /* an attribute of the devices; NULL: none */
};

struct slice_content cd_offer_content(const struct cd_offer *o);
