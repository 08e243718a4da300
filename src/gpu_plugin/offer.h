/* SPDX-License-Identifier: Apache-2.0 */
/* offer: the devices of this node, as its ResourceSlices show them. Pure. */
#pragma once

#include "gpu_plugin/device.h"
#include "gpu_plugin/health.h"

/* A copy, with an arena of its own. A node without devices says that it has none. `h`: what is known of their
 * health; NULL: nobody watches it. */
struct slice_content gpu_offer_content(const struct gpu_devices *d, const struct health *h);
