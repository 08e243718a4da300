/* SPDX-License-Identifier: Apache-2.0 */
/* channels: simulates clusters in which each ComputeDomain has its own channel in each partition
 * (imex.isolation=channel). A node has room for sixteen pods, and administrators delete and restore fabric
 * objects. Either the host runs IMEX and there are no daemons, or the daemons of a partition run one standing
 * IMEX domain for all ComputeDomains. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

/* Enables assigned channels. Call it before the world begins. */
void channels_use(unsigned n_domains, bool standing);
/* Enables changes of the isolation during the storm; at first it is "domain". The functions below then answer
 * for the present configuration, and each claim has the isolation of its template. */
void channels_use_changes(unsigned n_domains);
/* Returns whether programs still restart because of such a change. */
bool channels_restart(void);
bool channels_change(void);
void channels_begin(void);
void channels_calm(void);
bool channels_used(void);
/* Enables ComputeDomains whose pods share one claim. Call it after channels_use(). */
void channels_use_shared(void);
bool channels_shared(void);
/* Returns true if the kubelets have the version 1.36, otherwise they have 1.37. With 1.37, the API server
 * also serves PodGroups. */
bool channels_old_kubelets(void);
bool channels_pod_groups(void);
bool channels_of_host(void);
bool channels_standing(void);
/* Returns the IMEX domain that a pod of that ComputeDomain uses on a node of that partition; a static string
 * if it is a standing domain. `own`: the pod's claim is for an assigned channel. */
const char *channels_imex_domain(bool own, const char *domain_uid, const char *clique);
/* Returns true if the UID is the UID of a standing domain. */
bool channels_stands(const char *uid);
/* Returns true if the mode of the ComputeDomain differs from the configured mode. */
bool channels_other_mode(const struct version *domain);
/* Returns the number of channels on a node. It is small, so that channels are often reused. */
unsigned channels_count(void);
/* Returns the maximum number of pods with a channel that a node has room for, in any of the modes. */
unsigned channels_pods_max(void);

#define CHANNELS_POD "plugin-%s" /* the name of a plugin's Pod */
#define CHANNELS_LABEL "plugin"

/* Returns whether a claim template is for an assigned channel. */
bool channels_of_template(const struct version *template);
/* Does the work of a kubelet and of the DaemonSet controller for one node in one step: updates the Lease and
 * the plugin's Pod `pod`. The Pod is Ready while the plugin runs and the API server hears the kubelet. The
 * plugin starts and ends with the Pod. `gone_ms`: when the Node was deleted; 0: it exists. `ahead_s`: how far
 * the kubelet's clock is ahead, in seconds. */
enum channels_pod { CHANNELS_POD_STAYS, CHANNELS_POD_GOES, CHANNELS_POD_COMES };
enum channels_pod channels_step(const char *node, const char *pod, bool heard, bool runs, int64_t gone_ms,
                                int64_t ahead_s);

/* Causes a fault. "fabric_deleted": somebody deletes a fabric object. "fabric_restored": somebody deletes a
 * fabric object and creates an older version of it. */
void channels_fault(const char *name);

/* Returns the time in a static buffer, as a kubelet writes it whose clock is `ahead_s` seconds ahead of the
 * world's. */
const char *channels_now_text(int64_t ahead_s);

/* Returns true if the fabric object lists the ID as a channel that this owner is releasing. After a restore
 * of etcd another owner can have the same ID; new pods of this owner then get another ID. */
bool channels_is_releasing(const char *clique, int64_t id, const char *owner);

/* Returns the channel ID in the CDI file of a claim, or -1 if the file has none. */
int64_t channels_id(const char *cdi_path);
