/* SPDX-License-Identifier: Apache-2.0 */
/* cd_objects: creates and changes the objects in the API server for the ComputeDomain plugin of node n0
 * (world/api.h): claims, ComputeDomains, the fabric object of the partition, the Go driver's
 * ComputeDomainClique, and the plugin's own Pod. */
#pragma once

#include <stdbool.h>

#define BOOT "11111111-1111-4111-8111-111111111111"
#define DOMAIN_A "aaaaaaaa-0000-4000-8000-000000000001"
#define DOMAIN_B "bbbbbbbb-0000-4000-8000-000000000002"
#define CLAIM_1 "c0000000-0000-4000-8000-000000000001"
#define CLAIM_2 "c0000000-0000-4000-8000-000000000002"
#define DAEMON_1 "d0000000-0000-4000-8000-000000000001"  /* of this driver's daemon */
#define GO_DAEMON "d0000000-0000-4000-8000-0000000000ff" /* of a daemon of the Go driver */
#define GO_ADDRESS "10.0.0.9"
#define CHANNEL "ComputeDomainChannelConfig"
#define DAEMON "ComputeDomainDaemonConfig"
#define FABRIC "fab00000-0000-4000-8000-000000000001"
#define CLIQUE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2"
#define POD "plugin-n0" /* in namespace "driver" */

/* Creates a claim. `extra` is added to the parameters of status.allocation.devices.config after domainID. */
void api_claim(const char *ns, const char *name, const char *uid, const char *device, const char *config_kind,
               const char *domain, const char *extra);
/* Create the claim <ns>/daemon-claim of this driver's daemon, and the claim driver/go-claim (GO_DAEMON) of
 * the Go driver's daemon of DOMAIN_A. */
void api_daemon_claim(const char *ns, const char *uid, const char *extra);
void api_go_claim(void);
void api_claim_json(const char *ns, const char *name, const char *json);
void api_remove_claim(const char *ns, const char *name);

void api_domain(const char *ns, const char *name, const char *uid, bool deleting);
void api_remove_domain(const char *uid);
/* Annotates a ComputeDomain with the mode in which it was formed; NULL: none. */
void api_domain_mode(const char *uid, const char *mode);

/* Gives a ComputeDomain the annotation of a start gate, and the condition StartGateOpen with this status and
 * message; NULL: without the annotation, or the condition. Its watch shows this. */
void api_domain_gate(const char *uid, const char *annotation, const char *status, const char *message);

/* Replaces the fabric object `name` in the API server with one of version `rv`, with this text in "channels",
 * and with the members of `more`; channels NULL: removes the object. The watch of the object shows the change
 * only after api_fabric_event(). */
void api_fabric(const char *name, int rv, const char *channels, const char *more);
void api_fabric_event(void);
/* Sets the `tableOf` of fabric objects that are created from now on; NULL: their own UID. */
void api_table_of(const char *uid);
/* Like api_fabric() and then api_fabric_event(), for a fabric object that assigns index 3 with epoch 1 in
 * this ComputeDomain's IMEX domain to the node, for claim DAEMON_1. */
void api_assigned(const char *domain);

/* Replaces the ComputeDomainClique of the ComputeDomain and CLIQUE. In the new object, n1 is Ready, and this
 * node has this address and status. status "": this node has no entry; NULL: removes the object. */
void api_clique_at(const char *domain, const char *address, const char *status);
void api_clique(const char *domain, const char *status); /* at GO_ADDRESS */
/* The Node has the label of this ComputeDomain; NULL: of none. */
void api_node_label(const char *domain);

/* Returns an annotation of the plugin's own Pod in the API server, valid until the next call, or NULL if
 * there is none. */
const char *pod_annotation(const char *key);
/* Replaces the Pod by one without annotations, for processes that start later. */
void pod_replaced(void);
/* Removes all annotations of the Pod, as a restore of etcd does. The watch shows this. */
void pod_restored(void);
