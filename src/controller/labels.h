/* SPDX-License-Identifier: Apache-2.0 */
/* labels: the labels of one node. */
#pragma once

#include "controller/records.h"

/* Whose label the node should carry, by the labelling rule: NULL for nobody's. */
const char *labels_of(const struct controller *c, const char *node);
void labels_reconcile(struct controller *c, const char *name);
