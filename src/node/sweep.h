/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: what nobody will tell us to clean up: files of claims that no journal knows, claims of another boot,
 * claims whose object is gone.
 */
#pragma once

#include "node/ops.h"

struct sweep;

struct sweep *sweep_new(struct claims *c);
void sweep_free(struct sweep *s);

/* With the node lock held, when journal_sync() has found something. Changes the table; *ret_changed: it must
 * be written. On an error an entry may be missing from it: nothing may be done on its word. */
int sweep_after_sync(struct claims *c, enum journal_event event, const char *aside, bool *ret_changed,
                     struct err *e);
/* With the node lock held, once at the start: removes CDI files that no entry of the journal stands for,
 * and has the driver remove its things. A CDI file of this boot becomes an entry instead (the table must be
 * written). */
void sweep_files(struct claims *c);
/* Looks each recorded claim up in the API, one after the other, and unprepares those that are gone, which the
 * kubelet has forgotten. Every ten minutes by itself.
 *
 * A claim is gone from this node when the server answers that there is no such object (ERR_NOT_FOUND), that
 * its name has another UID, or that the claim is not allocated to any of the recorded devices (driver, pool
 * and device are compared): a claim that was made by name may be allocated again, on another node. Two
 * rounds, at least SWEEP_APART_MS apart, must have found the same. A round in which one answer is anything
 * else proves nothing, nor does what was found before it. The driver has the last word. now_ms: uv_now(). */
enum { SWEEP_APART_MS = 450000 /* the shortest that the spread makes of the ten minutes */ };
void sweep_gone_claims(struct sweep *s, uint64_t now_ms);

/* A Prepare waits for a device that the claim with this UID has: looks that one up now, and again after
 * SWEEP_HOLDER_MS. Two answers, both as above, unprepare it. Nothing while a look is under way.
 *
 * Why so short a distance is enough here. The Prepare is a third witness: its claim was read from the same
 * server, and the scheduler allocates a device to one claim at a time, so the holder has lost it. Both looks
 * are reads of what is stored now, not of a cache. A claim is deallocated, and its object deleted, only when
 * no pod of the API reserves it (finalizer resource.kubernetes.io/delete-protection), and then the kubelet
 * would unprepare it as well, whether or not its containers have ended: its reconcile loop does so once a
 * minute for pods that the API no longer has (pkg/kubelet/cm/dra/manager.go, Kubernetes 1.32 to 1.37). So
 * this takes nothing from a container that the kubelet would let it keep. The distance is longer than the
 * 30 s that a pod has by default to end, so that a pod deleted by force has ended, and shorter than a Prepare
 * waits (WAITS_BUDGET_MS). */
enum { SWEEP_HOLDER_MS = 35000 };
void sweep_holder(struct sweep *s, const char *uid);
/* What the first look has found of it, for the message of a Prepare that waits for it: begins with "; ". ""
 * when there is nothing to report. */
void sweep_explain(const struct sweep *s, const char *uid, char *ret, size_t size);

/* Pure: an entry as far as the claim's CDI file tells it. False when it is none of ours, or of another boot;
 * `undated`: a file that names no boot, as those of the Go driver, counts as one of this boot. */
bool sweep_rebuild(struct checkpoint *table, const struct node_driver *driver, const char *uid,
                   struct str cdi_file, const char *node, const char *boot_id, bool undated);
