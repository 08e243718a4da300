/* SPDX-License-Identifier: Apache-2.0 */
/* channels: host-managed IMEX where each ComputeDomain has a channel of its own in each partition
 * (imex.isolation=channel): no daemons, sixteen places for pods on a node, and objects of fabrics that people
 * delete and put back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

/* Before the world begins; without it there are none. */
void channels_use(unsigned n_domains);
bool channels_used(void);
/* How many channels a node has: few, so that they are given again and again. */
unsigned channels_count(void);
/* How many places for pods a node has. */
unsigned channels_seats(void);

#define CHANNELS_POD "plugin-%s" /* of a node's plugin */
#define CHANNELS_LABEL "plugin"

/* What a kubelet and the DaemonSet controller do at each step for one node: the Lease, and the plugin's Pod,
 * which is Ready while the plugin runs and the kubelet is heard, and with which the plugin comes and goes.
 * `gone_ms`: since when there is no such Node, 0: there is one. */
enum channels_pod { CHANNELS_POD_STAYS, CHANNELS_POD_GOES, CHANNELS_POD_COMES };
enum channels_pod channels_step(const char *node, bool heard, bool runs, int64_t gone_ms);

/* "fabric_deleted": somebody deletes the object of a fabric; "fabric_restored": and puts an older one back.
 */
void channels_fault(const char *name);

/* A claim has been given the channel that its CDI file says; -1: none could be read in it. */
int64_t channels_id(const char *cdi_path);
