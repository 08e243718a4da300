/* SPDX-License-Identifier: Apache-2.0 */
/* claim_info: simulates how a kubelet prepares and unprepares a claim that several pods of its node share
 * (pkg/kubelet/cm/dra/manager.go of Kubernetes 1.36.3 and 1.37.2). The kubelet has one entry for each claim,
 * with the pods that refer to it. It calls Prepare for the first pod and Unprepare for the last one, and
 * holds no lock during a call.
 *
 * A kubelet of 1.36 (channels_old_kubelets()) lets a pod refer to an entry while Unprepare runs. It then does
 * not call Prepare for this pod, and deletes the entry. So the pod cannot start, or it runs with a claim that
 * is not prepared. It also calls Unprepare if a pod without a reference ends while one other pod refers to
 * the entry. A kubelet of 1.37 refuses the pod until Unprepare has ended, and ignores the end of a pod
 * without a reference. */
#pragma once

#include <stdbool.h>

#include "world_state.h"

/* Makes one step of the kubelet's work to prepare the claim of the pod. `refused`: why the kubelet refuses it
 * before it looks at its entry; NULL: it does not. Returns true if the kubelet can create the pod's sandbox.
 */
bool claim_info_prepare(struct user_pod *p, const char *refused);
/* Returns true if the pod's containers can start with the devices of the claim. */
bool claim_info_start(struct user_pod *p);
/* Makes one step of the kubelet's work after the last container of the pod has ended. Returns true if the pod
 * no longer needs the claim. */
bool claim_info_unprepare(struct user_pod *p);
/* The kubelet restarts with its node: it keeps its entries, and prepares their claims again. */
void claim_info_reboot(const struct node *n);
/* Frees the entries. */
void claim_info_done(void);
