/* SPDX-License-Identifier: Apache-2.0 */
/* names: the strings that are a contract with users and with the Go driver (reference section 3). */
#pragma once

#define CD_GROUP "resource.nvidia.com"
#define CD_API_VERSION "resource.nvidia.com/v1beta1"
#define CD_KIND "ComputeDomain"
#define CD_CLIQUE_KIND "ComputeDomainClique"
#define CD_FABRIC_KIND "ComputeDomainFabric"

#define CD_LABEL "resource.nvidia.com/computeDomain"                 /* value: UID of the ComputeDomain */
#define CD_LABEL_CLIQUE "resource.nvidia.com/computeDomain.cliqueID" /* on daemon Pods and cliques */
#define CD_LABEL_TARGET                                                                                      \
        "resource.nvidia.com/computeDomainTarget" /* on claim templates: "Daemon" or "Workload" */
/* On Nodes where our daemon is to run: "true". */
#define CD_LABEL_DAEMON "resource.nvidia.com/imex-daemon"
#define CD_LABEL_COMPONENT "app.kubernetes.io/component"
/* The daemons' DaemonSet and claim template, and the value of CD_LABEL_COMPONENT by which they and the
 * daemons' Pods are found. */
#define CD_DAEMON_OBJECT "compute-domain-daemon"
/* The domainID in the configuration of a daemon's claim. It is that of no ComputeDomain: the daemon serves
 * whichever one its node is in. The Go driver's plugin, which knows the kind, can unprepare such a claim. */
#define CD_DAEMON_DOMAIN "818fb0f3-f5f0-4334-937e-f52c07a0c01e"
#define CD_FINALIZER "resource.nvidia.com/computeDomain"
#define GPU_CLIQUE_LABEL "nvidia.com/gpu.clique" /* on Nodes */

/* On the ComputeDomain of a rack, and on a ComputeDomainFabric: which. */
#define CD_LABEL_RACK "resource.nvidia.com/rack"
/* On namespaces: "enabled" for a ComputeDomain of each rack. */
#define CD_LABEL_RACK_DOMAINS "resource.nvidia.com/rack-domains"
#define CD_ATTRIBUTE_RACK "rack" /* of the devices, with racks on */

#define GPU_DRIVER "gpu.nvidia.com"
#define GPU_CDI_KIND_CLAIM "k8s.gpu.nvidia.com/claim"

#define CD_DRIVER "compute-domain.nvidia.com"
#define CD_CLASS_DAEMON "compute-domain-daemon.nvidia.com"
#define CD_CLASS_CHANNEL "compute-domain-default-channel.nvidia.com"
#define CD_REQUEST_CHANNEL "channel"
#define CD_REQUEST_DAEMON "daemon"
#define CD_DEVICE_CHANNEL_PREFIX "channel-"
#define CD_DEVICE_DAEMON "daemon-0"
#define CD_CDI_KIND_CLAIM "k8s.compute-domain.nvidia.com/claim"
#define CD_GO_OBJECT_PREFIX                                                                                  \
        "computedomain-daemon-" /* + UID: the Go driver's DaemonSet and daemon claim template of a domain */

/* Ours, beyond the Go driver. */
#define CD_ANNOTATION_NAME                                                                                   \
        "resource.nvidia.com/computeDomain.name" /* on workloads' claims, so that Prepare needs no look-up   \
                                                  */
#define CD_ANNOTATION_GPU_CLIQUE                                                                             \
        "resource.nvidia.com/gpu-clique-label" /* on Nodes: the value of GPU_CLIQUE_LABEL that we wrote */
#define CD_ANNOTATION_TEMPLATE                                                                               \
        "resource.nvidia.com/template-hash" /* on DaemonSets, daemon Pods and claim templates: hash of what  \
                                               we wrote */
#define CD_ANNOTATION_MODE                                                                                   \
        "resource.nvidia.com/imex-mode" /* on ComputeDomains: the name of the mode they were formed in */
/* On ResourceSlices where the host runs IMEX: the node's clique, "" without one. Where we run it, the devices
 * have it as an attribute. On Nodes that have a daemon, or channels of ComputeDomains: the clique that the
 * slice named last, which counts while there is no slice. */
#define CD_ANNOTATION_CLIQUE "resource.nvidia.com/clique-id"
/* On the ComputeDomain of a rack: its own UID, which tells it from a copy that a person has made; the names
 * of its Nodes, and since when none of them is there. */
#define CD_ANNOTATION_RACK_UID "resource.nvidia.com/rack-domain-uid"
#define CD_ANNOTATION_RACK_NODES "resource.nvidia.com/rack-nodes"
#define CD_ANNOTATION_RACK_EMPTY "resource.nvidia.com/rack-empty-since"
/* On ComputeDomainFabrics: since when there has been no Node, entry or holder of it. */
#define CD_ANNOTATION_FABRIC_EMPTY "resource.nvidia.com/fabric-empty-since"
#define IMEX_ANNOTATION_STATE                                                                                \
        "imex.resource.nvidia.com/state" /* IMEX's word, or STARTING, STOPPED, BACKOFF, NO_FABRIC */
#define IMEX_ANNOTATION_REASON                                                                               \
        "imex.resource.nvidia.com/reason" /* why it is not ready, for people; absent when ready */
#define IMEX_ANNOTATION_NODE_ID "imex.resource.nvidia.com/node-id" /* the id IMEX found for itself */
#define IMEX_ANNOTATION_INDEX "imex.resource.nvidia.com/index"     /* the index it runs with */
#define IMEX_ANNOTATION_PEERS "imex.resource.nvidia.com/peers"     /* "<connected>/<known>" without itself */
#define IMEX_ANNOTATION_READY                                                                                \
        "imex.resource.nvidia.com/ready" /* "true" or "false": local readiness (IMEX READY and id == index)  \
                                          */
/* The nodes that a recovery of IMEX still waits for after a minute, "a,b"; absent when there are none. */
#define IMEX_ANNOTATION_AWAITED "imex.resource.nvidia.com/awaited"
/* On the Pod of a daemon: what it reports to the controller, as model/daemon_report has it. */
#define IMEX_ANNOTATION_REPORT "imex.resource.nvidia.com/report"
/* On the plugin's own Pod: the UID of the claim of a daemon that it has unprepared last. */
#define IMEX_ANNOTATION_UNPREPARED "imex.resource.nvidia.com/unprepared-daemon-claim"
/* On the plugin's own Pod, when the host runs IMEX: "UP", "DEGRADED" or "DOWN"; absent while it has not been
 * asked. */
#define IMEX_ANNOTATION_HOST_STATE "imex.resource.nvidia.com/host-state"
#define IMEX_ANNOTATION_HOST_REASON                                                                          \
        "imex.resource.nvidia.com/host-reason" /* why it is not UP, for people; absent when it is */

/* On the plugin's own Pod, where each ComputeDomain has a channel of its own: which of them the node holds,
 * as model/channel_report has it. */
#define IMEX_ANNOTATION_HOST_CHANNELS "imex.resource.nvidia.com/host-channels"

#define CD_TARGET_DAEMON "Daemon"
#define CD_TARGET_WORKLOAD "Workload"
