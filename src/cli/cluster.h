/* SPDX-License-Identifier: Apache-2.0 */
/* cluster: reads lists from a cluster through `kubectl proxy`, page by page. */
#pragma once

#include "cli/kubectl_run.h"
#include "cli/source.h"

/* Starts kubectl. `ns` is the namespace that the user named; NULL: the namespace that kubectl would use. The
 * caller frees the source. Waits until the API server answers. */
int cluster_open(const struct kubectl *k, const char *ns, struct source **ret, struct err *e);
/* Returns the namespace that kubectl uses in a pod if the context has none: that of the variable
 * POD_NAMESPACE, or of the service account, whose folder is `dir`. Returns NULL outside of pods. The caller
 * frees it. Source: inClusterClientConfig of client-go, tools/clientcmd/client_config.go. */
char *cluster_pod_namespace(const char *dir);
