/* SPDX-License-Identifier: Apache-2.0 */
/* check_slice: reads the ResourceSlices of this node for check-node, with the service account of the plugin.
 */
#pragma once

#include "node/check_node.h"
#include "node/check_settings.h"

/* Lists the ResourceSlices, and adds the result of check_settings_slices(). `clique` and `devices` are those
 * of struct check_slices. An API server that does not answer within seconds is a skipped item. */
void check_slice_compare(struct check_list *l, const struct check_node_options *o, const char *clique,
                         int64_t devices);
