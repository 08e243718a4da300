/* SPDX-License-Identifier: Apache-2.0 */
/* retry: asks the kubelet to call Prepare again: as soon as the cause of a failed Prepare is gone, and, after
 * a registration, for pods that may wait without a failed Prepare of this plugin.
 *
 * A kubelet retries a failed Prepare only at its next regular sync of the pod, after 60 to 90 s
 * (kubernetes#139836; Kubernetes 1.36.3 and 1.37.2 behave the same). It syncs a pod at once when an
 * annotation of the pod changes. So this module writes the annotation CD_ANNOTATION_RETRY to the pods that
 * wait for the claim (status.reservedFor).
 *
 * A claim that is reserved for a PodGroup does not name its pods. The module then lists the Pending pods of
 * this node in the claim's namespace, and writes to those whose spec.schedulingGroup names the group
 * (Kubernetes 1.36 and later). This needs the right to list pods there, which the chart does not grant: if
 * the API server denies the list, the kubelet retries by itself. The same holds for a claim with more than
 * RETRY_PODS_MAX pods: it is shared across nodes, and writes to the pods of other nodes would be denied.
 *
 * A Prepare that fails because it has waited too long is kept (OP_FAILED), and judged again whenever waiting
 * Prepares are. It holds nothing, changes nothing, and is never carried out. It ends when the kubelet asks
 * for the claim again or unprepares it, when it can never succeed, and after RETRY_KEEP_MS. Nothing is
 * polled, except by drivers that also poll for Prepares that wait.
 *
 * The first request for a pod or a PodGroup is sent at once. After each request the pause until the next one
 * doubles, from RETRY_PAUSE_MS to RETRY_PAUSE_MAX_MS. A pod without a request for RETRY_CALM_MS begins again.
 */
#pragma once

#include "node/ops.h"

enum {
        RETRY_PAUSE_MS = 2000,
        RETRY_PAUSE_MAX_MS = 60000,
        RETRY_CALM_MS = 600000,
        RETRY_PODS_MAX = 16,
        RETRY_KEEP_MS = 180000, /* twice the time until the kubelet retries by itself */
        RETRY_RECENT_MS = 600000,
        RETRY_REGISTERED_MS = 3000, /* with a jitter of a quarter */
};

struct retry;

struct retry *retry_new(struct claims *c);
void retry_free(struct retry *r);

/* Ends a Prepare that could not be carried out in time, with the answer `msg` as op_fail() does, and keeps it
 * if it is a request of the kubelet. msg NULL: the kubelet waits for no answer. Not while the driver works
 * for it, and in a batch only at its end. */
void retry_fail(struct op *op, const char *msg);
/* Call it when the kubelet has registered this plugin, or another one of the node. Before that, each try of
 * the kubelet to prepare a pod with a claim of that plugin has failed, and requests have had no effect.
 * Requests are sent for
 * - the kept Prepares whose cause is gone;
 * - the claims that are recorded as started, without an operation: of an earlier process, or no longer kept;
 * - the claims of the earlier boot, whose pods the kubelet starts again;
 * - the claims whose Prepare this process has answered with success in the last RETRY_RECENT_MS. Their pods
 *   may wait for the other plugin, which the kubelet calls after this one. For a pod that runs, the request
 *   has no effect. These requests are sent RETRY_REGISTERED_MS after the last registration, so that a restart
 *   of the kubelet, which registers both plugins, causes one request. */
void retry_registered(struct claims *c);
/* Ends the kept Prepare of the claim. */
void retry_forget(struct claims *c, const char *uid);
/* The same, when the kubelet prepares the claim again; but if several pods may wait for the claim, it is for
 * one of them only. */
void retry_prepare(struct claims *c, const char *uid);
/* Judges the kept Prepares, and sends the requests that are due. */
void retry_reevaluate(struct claims *c);
/* Sends the request for a claim that is prepared now, but whose Prepare got no answer or was answered as
 * failed. */
void retry_succeeded(struct claims *c, const char *uid);
