/* SPDX-License-Identifier: Apache-2.0 */
/* channels: each ComputeDomain has a channel of its own in each partition (imex.isolation=channel): sixteen
 * places for pods on a node, and objects of fabrics that people delete and put back. IMEX is the host's, and
 * there are no daemons; or the daemons of a partition run one IMEX domain for all ComputeDomains, which
 * stands. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

/* Before the world begins; without it there are none. */
void channels_use(unsigned n_domains, bool standing);
/* The isolation changes during the storm; at first it is "domain". Then the questions below are about what is
 * configured now, and each claim has that of its template. */
void channels_use_changes(unsigned n_domains);
bool channels_change(void);
void channels_begin(void);
void channels_calm(void);
bool channels_used(void);
bool channels_of_host(void);
bool channels_standing(void);
/* The IMEX domain that a pod of that ComputeDomain uses on a node of that partition; static where it stands.
 * `own`: its claim is for an assigned channel. */
const char *channels_imex_domain(bool own, const char *domain_uid, const char *clique);
/* It is a standing domain. */
bool channels_stands(const char *uid);
/* A ComputeDomain was formed in another mode than is configured now. */
bool channels_other_mode(const struct version *domain);
/* How many channels a node has: few, so that they are given again and again. */
unsigned channels_count(void);
/* How many places for pods a node has. */
unsigned channels_seats(void);

#define CHANNELS_POD "plugin-%s" /* of a node's plugin */
#define CHANNELS_LABEL "plugin"

/* What a kubelet and the DaemonSet controller do at each step for one node: the Lease, and the plugin's Pod,
 * which is Ready while the plugin runs and the kubelet is heard, and with which the plugin comes and goes.
 * `gone_ms`: since when there is no such Node, 0: there is one. `ahead_s`: of the kubelet's clock. */
enum channels_pod { CHANNELS_POD_STAYS, CHANNELS_POD_GOES, CHANNELS_POD_COMES };
enum channels_pod channels_step(const char *node, bool heard, bool runs, int64_t gone_ms, int64_t ahead_s);

/* "fabric_deleted": somebody deletes the object of a fabric; "fabric_restored": and puts an older one back.
 */
void channels_fault(const char *name);

/* The time, as a kubelet writes it whose clock is so many seconds ahead of the world's; static. */
const char *channels_now_text(int64_t ahead_s);

/* The fabric's object lists the id as one that its owner gives back: after a restore of etcd another owner
 * has it, too, and new pods of this one get another id. */
bool channels_is_releasing(const char *clique, int64_t id, const char *owner);

/* A claim has been given the channel that its CDI file says; -1: none could be read in it. */
int64_t channels_id(const char *cdi_path);
