/* SPDX-License-Identifier: Apache-2.0 */
/* cd_offer: determines the devices that this node publishes in its ResourceSlice. Pure. */
#pragma once

#include "node/slice.h"

struct cd_offer {
        bool channels; /* offer channel devices. If false, and channels are assigned, the annotation with the
                          clique ID stays */
        bool daemon;   /* offer the daemon device; false if the host runs IMEX */
        unsigned channel_devices; /* their number. More than one: channels are assigned, and each device is
                                     for one pod; no channel device is then offered without a clique ID */
        const char *clique_id;    /* "": none. An attribute of the devices if we run IMEX or channels are
                                     assigned; without a daemon device also an annotation of the slice */
        const char *rack;         /* an attribute of the devices; NULL: no attribute */
};

struct slice_content cd_offer_content(const struct cd_offer *o);
