/* SPDX-License-Identifier: Apache-2.0 */
/* cluster: reads lists from a cluster through `kubectl proxy`, page by page. */
#pragma once

#include "cli/source.h"

/* Starts kubectl with the user's arguments. `ns` is the namespace that the user named; NULL: the one of the
 * context, which is asked of kubectl. The caller frees the source. */
int cluster_open(const char *program, const char *const *args, size_t n_args, const char *ns,
                 struct source **ret, struct err *e);
