/* SPDX-License-Identifier: Apache-2.0 */
/* offer: the devices of this node, as its ResourceSlice shows them (reference section 7.5). Pure. */
#ifndef CD_PLUGIN_OFFER_H
#define CD_PLUGIN_OFFER_H

#include "node/slice.h"

struct offer {
        bool devices;          /* false: none */
        bool daemon;           /* the daemon device too: not when the host runs IMEX */
        const char *clique_id; /* "": none. An attribute of both devices; without a daemon device an
                                  annotation of the slice */
        const char *rack;      /* an attribute of the devices; NULL: none */
};

struct slice_content offer_content(const struct offer *o);

#endif
