/* SPDX-License-Identifier: Apache-2.0 */
/* rack_watch: watches the label of this node's Node that names its rack. */
#pragma once

#include <stdbool.h>

#include "kube/kube_client.h"

struct rack_watch;

/* `changed` is called when the label is known, and when it changes. Strings are copied. */
struct rack_watch *rack_watch_new(struct kube_client *c, const char *node, const char *label,
                                  void (*changed)(void *u), void *u);
/* False until the watch has seen the Node. Then *ret is the label's value, NULL without one; valid until the
 * next turn. */
bool rack_watch_value(const struct rack_watch *w, const char **ret);
void rack_watch_free(struct rack_watch *w); /* NULL is allowed */
