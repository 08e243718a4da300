/* SPDX-License-Identifier: Apache-2.0 */
/* labels: the labels of one node. */
#pragma once

#include "controller/records.h"

/* Whose label the node should carry, by the labelling rule: NULL for nobody's. */
const char *labels_of(const struct controller *c, const char *node);
/* A Node has changed (either may be NULL): was its domain's label set, changed or removed by somebody else?
 * Then an Event of the Node reports it. The next labels_reconcile() restores the label. */
void labels_changed(struct controller *c, const struct node *was, const struct node *is);
void labels_reconcile(struct controller *c, const char *name);
