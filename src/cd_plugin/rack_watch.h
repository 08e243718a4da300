/* SPDX-License-Identifier: Apache-2.0 */
/* rack_watch: watches the label of this Node that names the rack of the node. */
#pragma once

#include <stdbool.h>

#include "kube/kube_client.h"

struct rack_watch;

/* Starts the watch. `changed` is called when the label's value is first known, and when it changes. The
 * strings are copied. */
struct rack_watch *rack_watch_new(struct kube_client *c, const char *node, const char *label,
                                  void (*changed)(void *u), void *u);
/* Returns false until the watch has seen the Node. Then sets *ret to the label's value; NULL: the Node has no
 * such label. *ret is valid until the next turn of the loop. */
bool rack_watch_value(const struct rack_watch *w, const char **ret);
void rack_watch_free(struct rack_watch *w); /* NULL is allowed */
