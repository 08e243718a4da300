/* SPDX-License-Identifier: Apache-2.0 */
/* own_pod: writes the annotations with which the plugin reports on its own Pod. One patch writes all
 * annotations that differ, as kube/report_sender describes. Loop thread only. */
#pragma once

#include "kube/kube_client.h"

struct own_pod;

/* Copies its arguments. pod "": the plugin's Pod is not known, and nothing is reported. */
struct own_pod *own_pod_new(struct kube_client *c, const char *ns, const char *pod);
void own_pod_free(struct own_pod *p); /* not from inside a callback; NULL is allowed */

/* Sets the annotation to this value, which is copied; NULL: removes the annotation. The write may be delayed
 * by up to wait_ms, so that other annotations are written with it. `key` is borrowed. There can be at most
 * OWN_POD_KEYS different keys. */
enum { OWN_POD_KEYS = 6 };
void own_pod_set(struct own_pod *p, const char *key, const char *value, unsigned wait_ms);
