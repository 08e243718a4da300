/* SPDX-License-Identifier: Apache-2.0 */
/* slice_publisher: this node's ResourceSlices, kept as they should be.
 *
 * The plugin watches the slices of its own node and driver only, and repairs what differs: created when
 * missing, updated in place when its content differs, surplus ones deleted; one request at a time. */
#pragma once

#include "kube/kube_client.h"
#include "node/slice.h"

struct slice_publisher;

/* Reads the node's UID and watches. Nothing is written before slice_set() and slice_start(). */
struct slice_publisher *slice_publisher_new(struct kube_client *c, const char *driver, const char *node);
/* The kubelet has registered the plugin: from here on a pod that the scheduler places for what is published
 * can be prepared. A Prepare that comes earlier fails, and is tried again only 60 to 90 s later. Once is
 * enough. */
void slice_start(struct slice_publisher *p);
/* Takes the content's memory. */
void slice_set(struct slice_publisher *p, const struct slice_content *want);
/* The server refuses a device, and `e` says why: the others are published without it, until other content is
 * set. Without such a function a refusal concerns all of the content. The content must have an arena. */
typedef void(slice_refused_fn)(void *u, const char *device, const struct err *e);
void slice_on_refused(struct slice_publisher *p, slice_refused_fn *fn, void *u);
/* The server does not take some or all taints: the devices are published without. Told each time that it is
 * found out anew. */
typedef void(slice_untainted_fn)(void *u, enum slice_taints taken);
void slice_on_untainted(struct slice_publisher *p, slice_untainted_fn *fn, void *u);
/* Somebody has annotated a slice of this node with `word`, whatever its value: told once for each time that
 * it is done, also while this process was away. It is taken away with the next write. By it people tell a
 * plugin something; that a slice was deleted is nobody's word, because the kubelet deletes them when it
 * starts, and when the plugin is away for 30 s. `word` is borrowed. */
typedef void(slice_word_fn)(void *u);
void slice_on_word(struct slice_publisher *p, const char *word, slice_word_fn *fn, void *u);
/* The server holds what should be. */
bool slice_published(const struct slice_publisher *p);
void slice_publisher_free(struct slice_publisher *p);
