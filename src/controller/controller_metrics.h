/* SPDX-License-Identifier: Apache-2.0 */
/* controller_metrics: maintains the metrics of the controller, the ComputeDomains, the nodes and the
 * partitions. */
#pragma once

#include "controller/records.h"

void controller_metrics_add(struct controller *c);
/* Updates the gauges, and removes the series of objects that no longer exist. */
void controller_metrics(struct controller *c);
