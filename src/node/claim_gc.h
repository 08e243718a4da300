/* SPDX-License-Identifier: Apache-2.0 */
/* claim_gc: removes what no request ever cleans up: files of claims that are not in the journal, claims of
 * another boot, and claims without an object. */
#pragma once

#include "node/ops.h"

struct claim_gc;

struct claim_gc *claim_gc_new(struct claims *c);
void claim_gc_free(struct claim_gc *s);

/* With the node lock held, after journal_sync(). Changes the table; *ret_changed: it must be written. After
 * an error an entry may be missing: do not act on the table. */
int claim_gc_after_sync(struct claims *c, enum journal_event event, const char *aside, bool *ret_changed,
                        struct err *e);
/* With the node lock held, once at the start: removes CDI files without an entry in the journal, and calls
 * the driver to remove its things. A CDI file of this boot becomes an entry instead (the table must then be
 * written). */
void claim_gc_files(struct claims *c);
/* Looks up each recorded claim in the API, one after the other, and unprepares those that no longer exist and
 * that the kubelet has not unprepared. Runs every ten minutes by itself.
 *
 * A claim no longer exists on this node if the server answers that there is no such object (ERR_NOT_FOUND),
 * that its name has another UID, or that the claim is not allocated to any of the recorded devices (driver,
 * pool and device are compared): a claim that was created by name may be allocated again, on another node.
 * Two rounds, at least CLAIM_GC_APART_MS apart, must agree. A round with any other answer proves nothing, and
 * voids earlier findings. The driver decides last. now_ms: uv_now(). */
enum { CLAIM_GC_APART_MS = 450000 /* the minimum of ten minutes with jitter */ };
void claim_gc_deleted_claims(struct claim_gc *s, uint64_t now_ms);

/* A Prepare waits for a device of the claim with this UID: looks that claim up now, and again after
 * CLAIM_GC_HOLDER_MS. Two answers, both as above, unprepare it. Does nothing while such a look-up runs.
 *
 * Why such a short distance is enough here: the Prepare is a third witness. Its claim was read from the same
 * server, and the scheduler allocates a device to one claim at a time, so the holder has lost it. Both
 * look-ups read the stored state, not a cache. A claim is deallocated, and its object deleted, only when no
 * pod of the API reserves it (finalizer resource.kubernetes.io/delete-protection). Then the kubelet would
 * unprepare it as well, whether or not its containers have ended: once a minute its reconcile loop does so
 * for pods that the API no longer has (pkg/kubelet/cm/dra/manager.go, Kubernetes 1.32 to 1.37). So this
 * removes nothing from a container that the kubelet would not remove. The distance is longer than the default
 * termination grace period of 30 s, so that a force-deleted pod has ended, and shorter than a Prepare waits
 * (WAITS_BUDGET_MS). */
enum { CLAIM_GC_HOLDER_MS = 35000 };
void claim_gc_holder(struct claim_gc *s, const char *uid);
/* The result of the first look-up, for the message of a Prepare that waits: begins with "; ", or is "" when
 * there is nothing to report. */
void claim_gc_explain(const struct claim_gc *s, const char *uid, char *ret, size_t size);

/* Pure: adds an entry from the claim's CDI file. Uses only the driver, the node and the boot ID of the
 * options. False when the file is not ours or of another boot; `undated`: a file without a boot ID, like
 * those of the Go driver, counts as one of this boot. */
bool claim_gc_rebuild(struct checkpoint *table, const struct claims_options *o, const char *uid,
                      struct str cdi_file, bool undated);
