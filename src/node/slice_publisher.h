/* SPDX-License-Identifier: Apache-2.0 */
/* slice_publisher: keeps this node's ResourceSlices on the API server equal to the desired content.
 *
 * The plugin watches only this driver's slices of its node. It creates a missing slice, updates a slice with
 * other content in place, and deletes surplus slices, with one request at a time. */
#pragma once

#include "kube/kube_client.h"
#include "node/slice.h"

struct slice_publisher;

/* Creates the publisher, which reads the node's UID and watches the slices. It writes nothing before
 * slice_set() and slice_start(). */
struct slice_publisher *slice_publisher_new(struct kube_client *c, const char *driver, const char *node);
/* Starts to publish. Call it once the kubelet has registered the plugin, because only then can the plugin
 * prepare pods that the scheduler places because of the published devices. A Prepare that arrives earlier
 * fails, and the kubelet retries it only after 60 to 90 s. One call is enough. */
void slice_start(struct slice_publisher *p);
/* Sets the desired content. Takes ownership of its memory. */
void slice_set(struct slice_publisher *p, const struct slice_content *want);
/* Called when the server rejects a device; `e` has the reason. The other devices are published without it,
 * until other content is set. If no such function is set, a rejection concerns the whole content. The content
 * must have an arena. */
typedef void(slice_refused_fn)(void *u, const char *device, const struct err *e);
void slice_on_refused(struct slice_publisher *p, slice_refused_fn *fn, void *u);
/* Called when the server does not accept some or all taints; `taken` states which taints it accepts. The
 * devices are published without the others. Called each time that the plugin finds this out. */
typedef void(slice_untainted_fn)(void *u, enum slice_taints taken);
void slice_on_untainted(struct slice_publisher *p, slice_untainted_fn *fn, void *u);
/* Called when a user has annotated a slice of this node with `word`, with any value. The annotation is the
 * user's request to the plugin. The function is called once for each annotation, also for one that was made
 * while this process was not running. The next write removes the annotation. The deletion of a slice is not
 * such a request, because the kubelet deletes slices when it starts, and after the plugin has been away for
 * 30 s. `word` is borrowed. */
typedef void(slice_annotation_fn)(void *u);
void slice_on_annotation(struct slice_publisher *p, const char *word, slice_annotation_fn *fn, void *u);
/* Returns whether the server has the desired content. */
bool slice_published(const struct slice_publisher *p);
void slice_publisher_free(struct slice_publisher *p);
