/* SPDX-License-Identifier: Apache-2.0 */
/* kube_config_priv: the two sources of a configuration without the environment around them, for tests and
 * fuzzers. */
#ifndef KUBE_KUBE_CONFIG_PRIV_H
#define KUBE_KUBE_CONFIG_PRIV_H

#include <stddef.h>

#include "kube/kube_config.h"

int kube_config__in_cluster(const char *host, const char *port, const char *dir, struct kube_config *ret,
                            struct err *e);
/* `path` is the file the text came from: relative names in it are relative to its folder. */
int kube_config__parse(const char *text, size_t n, const char *path, struct kube_config *ret, struct err *e);

#endif
