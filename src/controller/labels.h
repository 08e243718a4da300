/* SPDX-License-Identifier: Apache-2.0 */
/* labels: decides and writes the labels of a Node. */
#pragma once

#include "controller/records.h"

/* Returns the UID of the ComputeDomain that the label of the Node should name; NULL: the Node gets no
 * label. */
const char *labels_of(const struct controller *c, const char *node);
/* Call this when a Node has changed; `was` and `is` may be NULL. If another client has set, changed or
 * removed the label with the ComputeDomain, reports this in an Event of the Node. The next labels_reconcile()
 * restores the label. */
void labels_changed(struct controller *c, const struct node *was, const struct node *is);
void labels_reconcile(struct controller *c, const char *name);
