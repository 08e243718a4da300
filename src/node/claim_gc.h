/* SPDX-License-Identifier: Apache-2.0 */
/* claim_gc: removes leftovers that no request of the kubelet cleans up: files of claims that are not in the
 * journal, claims of another boot, and claims whose object no longer exists. */
#pragma once

#include "node/ops.h"

struct claim_gc;

struct claim_gc *claim_gc_new(struct claims *c);
void claim_gc_free(struct claim_gc *s);

/* Handles the result of journal_sync(). Called with the node lock held. May change the table; *ret_changed:
 * the table must be written. After an error, entries may be missing, so the caller must not act on the
 * table. */
int claim_gc_after_sync(struct claims *c, enum journal_event event, const char *aside, bool *ret_changed,
                        struct err *e);
/* Removes CDI files without an entry in the journal, and calls the driver to remove its unused resources. If
 * such a CDI file is of this boot, adds an entry for it instead; the table must then be written. Called once
 * at the start, with the node lock held. */
void claim_gc_files(struct claims *c);
/* Looks up each recorded claim in the API, one after the other. Unprepares the claims that no longer exist
 * and that the kubelet has not unprepared. Runs automatically every ten minutes.
 *
 * A claim no longer exists on this node if the server answers that the object does not exist (ERR_NOT_FOUND),
 * that an object of this name has another UID, or that no device of the recorded pools is allocated to the
 * claim any more (driver and pool are compared). The last case exists because a claim that was created by
 * name may be allocated again, on another node. If it is allocated again on this node, even to another
 * device, it stays prepared: the kubelet then starts the new pod with the prepared device, without a Prepare
 * (isPrepared in pkg/kubelet/cm/dra/manager.go). Two rounds, at least CLAIM_GC_APART_MS apart, must agree. A
 * round with any other answer proves nothing, and voids earlier findings. The driver makes the final decision
 * (may_collect()). now_ms: uv_now(). */
enum { CLAIM_GC_APART_MS = 450000 /* the shortest interval of ten minutes with jitter */ };
void claim_gc_deleted_claims(struct claim_gc *s, uint64_t now_ms);

/* Looks up the claim with this UID now, and again after CLAIM_GC_HOLDER_MS, because a Prepare waits for one
 * of its devices. Unprepares the claim if both look-ups find that it no longer exists on this node. Does
 * nothing while such a look-up runs.
 *
 * This short interval is enough here because the Prepare is further evidence. Its claim was read from the
 * same server, and the scheduler allocates a device to one claim at a time, so the holder has lost the
 * device. Both look-ups read the stored state, not a cache. A claim is deallocated, and its object deleted,
 * only when no pod in the API reserves it (finalizer resource.kubernetes.io/delete-protection). Then the
 * kubelet would unprepare the claim as well, whether or not its containers have ended: once a minute, its
 * reconcile loop does so for pods that the API no longer has (pkg/kubelet/cm/dra/manager.go, Kubernetes 1.32
 * to 1.37). So this function takes nothing from a container that the kubelet would not take. The interval is
 * longer than the default termination grace period of 30 s, so that a force-deleted pod has ended. It is
 * shorter than the time for which a Prepare waits (WAITS_BUDGET_MS). */
enum { CLAIM_GC_HOLDER_MS = 35000 };
void claim_gc_holder(struct claim_gc *s, const char *uid);
/* Writes the result of the first look-up, for the message of a Prepare that waits. The text begins with "; ",
 * or is "" if there is nothing to report. */
void claim_gc_explain(const struct claim_gc *s, const char *uid, char *ret, size_t size);

/* Adds an entry that is rebuilt from the claim's CDI file. Uses only the driver, the node and the boot ID of
 * the options. Returns false if the file has no devices of this driver, or if it is of another boot.
 * `undated`: a file without a boot ID, such as those of the Go driver, counts as one of this boot. Pure. */
bool claim_gc_rebuild(struct checkpoint *table, const struct claims_options *o, const char *uid,
                      struct str cdi_file, bool undated);
