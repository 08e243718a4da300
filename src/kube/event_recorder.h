/* SPDX-License-Identifier: Apache-2.0 */
/* event_recorder: writes Kubernetes Events (core/v1) without duplicates: if a reason and message about the
 * same object are repeated, a patch increases the count of the existing Event. A series has at most one write
 * in flight, and each object has a token bucket (25 Events, and one more every 5 min), as in client-go.
 * Events are retried for a few minutes while the API server is unavailable. Never returns an error to
 * its caller. */
#pragma once

#include "kube/kube_client.h"

struct event_recorder;

struct event_about {
        const char *api_version, *kind, *ns, *name,
                *uid; /* ns NULL: the object is cluster-scoped, and its Event is created in "default" */
};
/* A Node, with its name in place of the UID, as in the kubelet's Events. */
#define EVENT_NODE(name) (&(const struct event_about){ "v1", "Node", NULL, name, name })

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* Creates a recorder. `component` is a name such as "compute-domain-controller"; `host` is the node's name or
 * NULL. Both are copied. */
struct event_recorder *event_recorder_new(struct kube_client *c, const char *component, const char *host);
/* Frees the recorder. Events that are not written yet are lost. Allowed inside the `done` of a flush. NULL is
 * allowed. */
void event_recorder_free(struct event_recorder *r);
void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Calls `done` when no Event is in flight or pending, or after limit_ms. Used before a process ends. */
void event_recorder_flush(struct event_recorder *r, unsigned limit_ms, void (*done)(void *u), void *u);
