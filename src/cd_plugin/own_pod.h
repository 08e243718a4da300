/* SPDX-License-Identifier: Apache-2.0 */
/* own_pod: the annotations by which the plugin reports on its own Pod. One patch writes all that differ; one
 * patch at a time, and failures are retried with a growing back-off.
 *
 * The Pod is watched: a report that disappears, because etcd was restored, is written again. If the API
 * server does not permit the watch, each report is written once. Loop thread only. */
#pragma once

#include "kube/kube_client.h"

struct own_pod;

/* Borrows nothing. pod "": the plugin's Pod is not known, and nothing is reported. */
struct own_pod *own_pod_new(struct kube_client *c, const char *ns, const char *pod);
void own_pod_free(struct own_pod *p); /* not from inside a callback; NULL is allowed */

/* Sets the annotation to this value, which is copied; NULL: removes it. The write may wait for wait_ms, so
 * that others are written with it. `key` is borrowed, and one of at most OWN_POD_KEYS. */
enum { OWN_POD_KEYS = 5 };
void own_pod_set(struct own_pod *p, const char *key, const char *value, unsigned wait_ms);
