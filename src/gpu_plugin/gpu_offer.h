/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_offer: builds the content of this node's ResourceSlices. Pure. */
#pragma once

#include "gpu_plugin/gpu_devices.h"
#include "gpu_plugin/health.h"

/* Returns the content as a copy with its own arena. A node without devices publishes an empty slice. `h` is
 * the health of the devices; NULL: it is not monitored. */
struct slice_content gpu_offer_content(const struct gpu_devices *d, const struct health *h);
