/* SPDX-License-Identifier: Apache-2.0 */
/* own_pod: the annotations by which the plugin reports on its own Pod. All that differ are written in one
 * patch; one is under way at a time, and a failure is repeated with a growing pause.
 *
 * The Pod is watched: a report that is not there any more, because etcd was restored, is written again. Where
 * the API server does not let us watch it, each report is written once. Loop thread only. */
#pragma once

#include "kube/kube_client.h"

struct own_pod;

/* Borrows nothing. pod "": our own is not known, and nothing is reported. */
struct own_pod *own_pod_new(struct kube_client *c, const char *ns, const char *pod);
void own_pod_free(struct own_pod *p); /* not from inside a callback; NULL is allowed */

/* The annotation shall have this value, which is copied; NULL: it shall not be there. It may wait for wait_ms
 * for others that are written with it. `key` is borrowed, and one of at most OWN_POD_KEYS. */
enum { OWN_POD_KEYS = 5 };
void own_pod_set(struct own_pod *p, const char *key, const char *value, unsigned wait_ms);
