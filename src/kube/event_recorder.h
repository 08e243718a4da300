/* SPDX-License-Identifier: Apache-2.0 */
/* event_recorder: Kubernetes Events (core/v1), deduplicated: a repeated reason and message about the same
 * object increases the count of one Event by a patch. A series has at most one write in flight, and each
 * object has a token bucket (25, and one more each 5 min), as in client-go. Events survive some minutes
 * without an API server. Never fails its caller. */
#pragma once

#include "kube/kube_client.h"

struct event_recorder;

struct event_about {
        const char *api_version, *kind, *ns, *name,
                *uid; /* ns NULL for cluster-scoped: the Event is created in "default" */
};

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* component: "compute-domain-controller"; host: node name or NULL. Copied. */
struct event_recorder *event_recorder_new(struct kube_client *c, const char *component, const char *host);
/* Events that are not written yet are lost. Allowed inside a flush's `done`. NULL is allowed. */
void event_recorder_free(struct event_recorder *r);
void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Calls done when nothing is in flight or pending, or after limit_ms. For the end of a process. */
void event_recorder_flush(struct event_recorder *r, unsigned limit_ms, void (*done)(void *u), void *u);
