/* SPDX-License-Identifier: Apache-2.0 */
/* slice_publisher: keeps this node's ResourceSlices as they should be.
 *
 * The plugin watches only this driver's slices of its node. It creates a missing slice, updates one with
 * other content in place, and deletes surplus ones; one request at a time. */
#pragma once

#include "kube/kube_client.h"
#include "node/slice.h"

struct slice_publisher;

/* Reads the node's UID and watches. Nothing is written before slice_set() and slice_start(). */
struct slice_publisher *slice_publisher_new(struct kube_client *c, const char *driver, const char *node);
/* The kubelet has registered the plugin. From now on it can prepare pods that the scheduler places because of
 * the published devices. A Prepare that arrives earlier fails, and the kubelet retries it only after 60 to
 * 90 s. One call is enough. */
void slice_start(struct slice_publisher *p);
/* Takes ownership of the content's memory. */
void slice_set(struct slice_publisher *p, const struct slice_content *want);
/* The server refuses a device, and `e` has the reason: the others are published without it, until other
 * content is set. Without such a function, a refusal concerns the whole content. The content must have an
 * arena. */
typedef void(slice_refused_fn)(void *u, const char *device, const struct err *e);
void slice_on_refused(struct slice_publisher *p, slice_refused_fn *fn, void *u);
/* The server does not accept some or all taints: the devices are published without them. Called each time
 * that the plugin finds this out. */
typedef void(slice_untainted_fn)(void *u, enum slice_taints taken);
void slice_on_untainted(struct slice_publisher *p, slice_untainted_fn *fn, void *u);
/* A user has annotated a slice of this node with `word`, with any value. Called once for each annotation,
 * also for one that was made while this process did not run. The next write removes the annotation. It is a
 * user's request to the plugin. The deletion of a slice is not, because the kubelet deletes slices when it
 * starts, and when the plugin has been away for 30 s. `word` is borrowed. */
typedef void(slice_annotation_fn)(void *u);
void slice_on_annotation(struct slice_publisher *p, const char *word, slice_annotation_fn *fn, void *u);
/* The server has the desired content. */
bool slice_published(const struct slice_publisher *p);
void slice_publisher_free(struct slice_publisher *p);
