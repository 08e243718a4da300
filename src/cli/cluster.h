/* SPDX-License-Identifier: Apache-2.0 */
/* cluster: reads lists from a cluster through `kubectl proxy`, page by page. */
#pragma once

#include "cli/kubectl_run.h"
#include "cli/source.h"

/* Starts kubectl. `ns` is the namespace that the user named; NULL: kubectl returns that of the context. The
 * caller frees the source. Waits until the API server answers. */
int cluster_open(const struct kubectl *k, const char *ns, struct source **ret, struct err *e);
