/* SPDX-License-Identifier: Apache-2.0 */
/* offer: the devices of this node, as its ResourceSlice shows them (reference section 7.5). Pure. */
#pragma once

#include "node/slice.h"

struct offer {
        bool channels;         /* false: none; the annotation stays where channels are ComputeDomains' own */
        bool daemon;           /* the daemon device: not when the host runs IMEX */
        unsigned seats;        /* channel devices. More than one: places for pods, whose channels are their
                                  ComputeDomains' own, and without a clique there is none of them */
        const char *clique_id; /* "": none. An attribute of the devices where IMEX is ours or channels are
                                  ComputeDomains' own; without a daemon device an annotation of the slice */
        const char *rack;      /* an attribute of the devices; NULL: none */
};

struct slice_content offer_content(const struct offer *o);
