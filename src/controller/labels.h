/* SPDX-License-Identifier: Apache-2.0 */
/* labels: the labels of one Node. */
#pragma once

#include "controller/records.h"

/* The UID of the ComputeDomain that the label of the Node should name; NULL: the Node gets no label. */
const char *labels_of(const struct controller *c, const char *node);
/* A Node has changed (either argument may be NULL). If another client has set, changed or removed the label
 * of its ComputeDomain, an Event of the Node reports it. The next labels_reconcile() restores the label. */
void labels_changed(struct controller *c, const struct node *was, const struct node *is);
void labels_reconcile(struct controller *c, const char *name);
