/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: what the controller tells of itself and of the domains. */
#pragma once

#include "controller/records.h"

void controller_metrics_add(struct controller *c);
/* Brings gauges up to date, and those of domains that have gone away. */
void controller_metrics(struct controller *c);
