/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_offer: the content of this node's ResourceSlices. Pure. */
#pragma once

#include "gpu_plugin/device.h"
#include "gpu_plugin/health.h"

/* Returns a copy with its own arena. A node without devices publishes an empty slice. `h`: the health of the
 * devices; NULL: not monitored. */
struct slice_content gpu_offer_content(const struct gpu_devices *d, const struct health *h);
