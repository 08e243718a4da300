/* SPDX-License-Identifier: Apache-2.0 */
/* rack_watch: the label of this node's Node that names its rack, as it changes. */
#pragma once

#include <stdbool.h>

#include "kube/kube_client.h"

struct rack_watch;

/* `changed` is called when the label is known, and when it changes. Strings are copied. */
struct rack_watch *rack_watch_new(struct kube_client *c, const char *node, const char *label,
                                  void (*changed)(void *u), void *u);
/* False until the server has shown the Node. Then *ret is the label's value, NULL without one; it lives until
 * the next turn. */
bool rack_watch_value(const struct rack_watch *w, const char **ret);
void rack_watch_free(struct rack_watch *w); /* NULL is allowed */
