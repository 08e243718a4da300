/* SPDX-License-Identifier: Apache-2.0 */
/* gate_watch: watches one ComputeDomain whose start gate may be closed, for a Prepare that waits. */
#pragma once

#include "cd_plugin/may_prepare.h"
#include "kube/kube_client.h"

struct gate_watch;

/* The strings are copied. `changed` is called when the result of gate_watch_see() may have changed, and never
 * from inside these functions. */
struct gate_watch *gate_watch_new(struct kube_client *c, const char *ns, const char *name,
                                  void (*changed)(void *u), void *u);
/* False: the ComputeDomain has not been read yet. *ret NULL: there is none with this UID. Otherwise *ret is
 * valid until the next turn of the loop. */
bool gate_watch_see(const struct gate_watch *w, const char *uid, const struct gated_domain **ret);
void gate_watch_free(struct gate_watch *w); /* NULL is allowed */
