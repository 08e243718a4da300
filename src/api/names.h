/* SPDX-License-Identifier: Apache-2.0 */
/* names: defines the strings that users, other programs and the Go driver know. A name has one comment of the
 * following form for each of its uses. scripts/reference generates docs/reference/labels.md from these
 * comments:
 *
 *     KIND on OBJECT; by WRITER; for READER: meaning */
#pragma once

#define CD_GROUP "resource.nvidia.com"
#define CD_API_VERSION "resource.nvidia.com/v1beta1"
#define CD_KIND "ComputeDomain"
#define CD_CLIQUE_KIND "ComputeDomainClique"
#define CD_FABRIC_KIND "ComputeDomainFabric"

/* The names of all metrics begin with this prefix and "_". */
#define CD_METRICS_PREFIX "nvidia_dra"

/* ---- labels ---- */

/* label on Node; by controller; for controller: UID of the ComputeDomain that uses the node. Only with
 * imex.mode=driverManaged and imex.isolation=domain */
/* label on Pod (daemon); by daemon; for controller: UID of the ComputeDomain that the daemon serves */
/* label on ResourceClaimTemplate; by controller; for controller: UID of the ComputeDomain to which the claim
 * template belongs */
/* label on DaemonSet, Pod, ResourceClaimTemplate, ComputeDomainClique (Go driver); by Go driver; for
 * controller: UID of the ComputeDomain to which the object belongs */
#define CD_LABEL "resource.nvidia.com/computeDomain"
/* label on Pod (daemon); by daemon; for controller: clique ID of the partition of the node */
/* label on ComputeDomainClique (Go driver); by Go driver; for controller: clique ID of the partition */
#define CD_LABEL_CLIQUE "resource.nvidia.com/computeDomain.cliqueID"
/* label on ResourceClaimTemplate; by controller; for controller: Workload for the claim template of pods; the
 * Go driver's claim template of a daemon has Daemon */
#define CD_LABEL_TARGET "resource.nvidia.com/computeDomainTarget"
#define CD_TARGET_DAEMON "Daemon"
#define CD_TARGET_WORKLOAD "Workload"
/* label on Node; by controller; for DaemonSet compute-domain-daemon, plugin: set to true on nodes for a
 * daemon */
#define CD_LABEL_DAEMON "resource.nvidia.com/imex-daemon"
/* label on DaemonSet, Pod (daemon), ResourceClaimTemplate (daemon); by controller; for controller,
 * NetworkPolicy: set to compute-domain-daemon */
#define CD_LABEL_COMPONENT "app.kubernetes.io/component"
/* label on Node; by controller; for scheduler: set to true on nodes that offer channels, once a ComputeDomain
 * has a shared claim. The ResourceSlice of the shared device selects it */
#define CD_LABEL_SHARED "resource.nvidia.com/shared-channel"
/* The name of the daemons' DaemonSet and claim template, and the value of CD_LABEL_COMPONENT. */
#define CD_DAEMON_OBJECT "compute-domain-daemon"
/* label on ComputeDomain, ComputeDomainFabric; by controller; for controller: name of the rack */
#define CD_LABEL_RACK "resource.nvidia.com/rack"
/* label on Namespace; by administrator; for controller: set to enabled to get a ComputeDomain for each rack
 * in the namespace, with rackDomains.enabled */
#define CD_LABEL_RACK_DOMAINS "resource.nvidia.com/rack-domains"
/* label on Pod; by user; for controller, MutatingAdmissionPolicy: set to enabled in a pod template to get a
 * ComputeDomain for the workload, with autoDomains.enabled */
/* label on ComputeDomain; by controller; for people: set to enabled if the controller created it for such
 * pods */
#define CD_LABEL_AUTO "resource.nvidia.com/auto-domain"
/* label on Pod; by JobSet; for controller: name of the JobSet to which the pod belongs */
#define JOBSET_LABEL_NAME "jobset.sigs.k8s.io/jobset-name"
/* label on Pod; by JobSet; for controller: UID of the JobSet to which the pod belongs */
#define JOBSET_LABEL_UID "jobset.sigs.k8s.io/jobset-uid"
#define JOBSET_API_VERSION "jobset.x-k8s.io/v1alpha2"
#define JOBSET_KIND "JobSet"
/* label on Pod; by LeaderWorkerSet; for controller: name of the LeaderWorkerSet to which the pod belongs */
#define LWS_LABEL_NAME "leaderworkerset.sigs.k8s.io/name"
/* annotation on Pod; by user; for controller, MutatingAdmissionPolicy: name of a group of the workload, or
 * none. With autoDomains.enabled, a pod with it gets a ComputeDomain as with the label
 * resource.nvidia.com/auto-domain, one for each group. Pods that Grove manages are left to Grove */
#define GROVE_ANNOTATION "grove.io/mnnvl-group"
/* label on Node; by controller, GPU Feature Discovery; for pod affinities of users: clique ID of the NVLink
 * partition of the node. The controller writes it only if it is missing or its own */
#define GPU_CLIQUE_LABEL "nvidia.com/gpu.clique"
/* label on Node; by GPU Operator, administrator; for controller, node affinity of the plugin: set to true on
 * nodes with an NVIDIA GPU */
#define GPU_PRESENT_LABEL "nvidia.com/gpu.present"
/* label on Node; by Node Feature Discovery; for controller, node affinity of the plugin: set to true on nodes
 * with an NVIDIA device */
#define NFD_LABEL_NVIDIA "feature.node.kubernetes.io/pci-10de.present"
/* label on Node; by Node Feature Discovery; for controller, node affinity of the plugin: set to true on nodes
 * with an NVIDIA 3D controller */
#define NFD_LABEL_NVIDIA_3D "feature.node.kubernetes.io/pci-0302_10de.present"
/* label on Node; by Node Feature Discovery; for controller, node affinity of the plugin: set to true on nodes
 * with an NVIDIA VGA controller */
#define NFD_LABEL_NVIDIA_VGA "feature.node.kubernetes.io/pci-0300_10de.present"
/* label on Node; by Node Feature Discovery; for controller, node affinity of the plugin: set to NVIDIA on
 * nodes with an NVIDIA processor */
#define NFD_LABEL_CPU_VENDOR "feature.node.kubernetes.io/cpu-model.vendor_id"

/* ---- annotations ---- */

/* annotation on ResourceClaim; by claim template; for plugin: name of the ComputeDomain, so that Prepare
 * finds it without a list of the namespace */
#define CD_ANNOTATION_NAME "resource.nvidia.com/computeDomain.name"
/* annotation on Node; by controller; for controller: the value of the label nvidia.com/gpu.clique that the
 * controller has written. A label with another value is not the controller's */
#define CD_ANNOTATION_GPU_CLIQUE "resource.nvidia.com/gpu-clique-label"
/* annotation on DaemonSet, Pod (daemon), ResourceClaimTemplate; by controller; for controller: hash of the
 * written object, which shows whether it is outdated */
#define CD_ANNOTATION_TEMPLATE "resource.nvidia.com/template-hash"
/* annotation on ComputeDomain; by controller; for controller, plugin: the mode in which the ComputeDomain was
 * formed */
#define CD_ANNOTATION_MODE "resource.nvidia.com/imex-mode"
/* annotation on ResourceSlice; by plugin; for controller: clique ID of the partition of the node, empty
 * without one. Only with imex.mode=hostManaged, or if the node withholds its devices with
 * imex.isolation=channel */
/* annotation on Node; by controller; for controller: the clique ID that the ResourceSlice named last, which
 * counts while no ResourceSlice exists. Only on nodes with a daemon or a channel */
#define CD_ANNOTATION_CLIQUE "resource.nvidia.com/clique-id"
/* annotation on ComputeDomain (of a rack); by controller; for controller: the UID of this object. A copy has
 * another UID */
#define CD_ANNOTATION_RACK_UID "resource.nvidia.com/rack-domain-uid"
/* annotation on ComputeDomain (of a rack); by controller; for controller: comma-separated names of the Nodes
 * of the rack */
#define CD_ANNOTATION_RACK_NODES "resource.nvidia.com/rack-nodes"
/* annotation on ComputeDomain (of a rack); by controller; for controller: the time since which the rack has
 * no Node */
#define CD_ANNOTATION_RACK_EMPTY "resource.nvidia.com/rack-empty-since"
/* annotation on ComputeDomainFabric; by controller; for controller: the time since which the partition has no
 * Node, no entry and no channel that a node holds */
#define CD_ANNOTATION_FABRIC_EMPTY "resource.nvidia.com/fabric-empty-since"
/* annotation on Pod (daemon); by daemon; for controller: a state of api/states.def, such as IDLE or READY */
#define IMEX_ANNOTATION_STATE "imex.resource.nvidia.com/state"
/* annotation on Pod (daemon); by daemon; for controller: why the daemon is not ready; absent when it is ready
 */
#define IMEX_ANNOTATION_REASON "imex.resource.nvidia.com/reason"
/* annotation on Pod (daemon); by daemon; for people: the index that nvidia-imex has determined for its node
 */
#define IMEX_ANNOTATION_NODE_ID "imex.resource.nvidia.com/node-id"
/* annotation on Pod (daemon); by daemon; for people: the index of the node in the IMEX domain */
#define IMEX_ANNOTATION_INDEX "imex.resource.nvidia.com/index"
/* annotation on Pod (daemon); by daemon; for controller: connected and known peers, as 16/17 */
#define IMEX_ANNOTATION_PEERS "imex.resource.nvidia.com/peers"
/* annotation on Pod (daemon); by daemon; for controller: set to true if nvidia-imex is READY with the index
 * of the node, otherwise to false */
#define IMEX_ANNOTATION_READY "imex.resource.nvidia.com/ready"
/* annotation on Pod (daemon); by daemon; for controller: comma-separated nodes for which a recovery of IMEX
 * has waited longer than a minute; absent without any */
#define IMEX_ANNOTATION_AWAITED "imex.resource.nvidia.com/awaited"
/* annotation on Pod (daemon); by daemon; for controller: the report of the daemon, as JSON */
#define IMEX_ANNOTATION_REPORT "imex.resource.nvidia.com/report"
/* annotation on Pod (plugin); by plugin; for controller: UID of the daemon claim that was unprepared last */
#define IMEX_ANNOTATION_UNPREPARED "imex.resource.nvidia.com/unprepared-daemon-claim"
/* annotation on Pod (plugin); by plugin; for controller: UID of the daemon's Pod that the plugin refused
 * last, because the claim of the Pod was unprepared before */
#define IMEX_ANNOTATION_REFUSED "imex.resource.nvidia.com/refused-daemon-pod"
/* annotation on Pod (plugin); by plugin; for controller: UP, DEGRADED or DOWN, with imex.mode=hostManaged;
 * absent until nvidia-imex of the host was queried */
#define IMEX_ANNOTATION_HOST_STATE "imex.resource.nvidia.com/host-state"
/* annotation on Pod (plugin); by plugin; for controller: why the host's nvidia-imex is not UP; absent when it
 * is UP */
#define IMEX_ANNOTATION_HOST_REASON "imex.resource.nvidia.com/host-reason"
/* annotation on Pod (plugin); by plugin; for controller: the channels that the node holds, with
 * imex.isolation=channel, as JSON */
#define IMEX_ANNOTATION_HOST_CHANNELS "imex.resource.nvidia.com/host-channels"
/* annotation on Pod (plugin); by plugin; for kubectl plugin: why the node offers no devices, as the reason
 * and the message of the Event ComputeDomainDevicesWithheld; absent when it offers them */
#define IMEX_ANNOTATION_WITHHELD "imex.resource.nvidia.com/withheld"
/* annotation on Pod (workload, daemon); by plugin, GPU plugin; for kubelet: when the plugin last asked the
 * kubelet to call Prepare again: the cause of a failure is gone, or the Pod may wait for a plugin that is
 * registered now. The kubelet syncs a Pod when an annotation changes */
#define CD_ANNOTATION_RETRY "resource.nvidia.com/retry-prepare"
/* annotation on ComputeDomain; by user; for controller, plugin: "true" if its pods start only when all its
 * nodes are connected; "false" or absent otherwise */
#define CD_ANNOTATION_START_GATE "resource.nvidia.com/start-gate"
/* annotation on ResourceSlice (GPUs); by administrator; for GPU plugin: any value clears the XIDs that the
 * GPUs of the node have reported; the plugin then removes the annotation */
#define GPU_ANNOTATION_CLEAR_XIDS "gpu.nvidia.com/clear-xids"
/* annotation on Pod (daemon); by controller; for cluster autoscaler: set to false, so that a node that is
 * scaled down keeps its daemon until its workloads are drained */
#define AUTOSCALER_EVICTION "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
/* annotation on Pod; by kubelet; for controller: the Pod represents a static Pod of its node. The API server
 * lets a node create only such Pods, and does not let it remove the annotation */
#define POD_ANNOTATION_MIRROR "kubernetes.io/config.mirror"
/* annotation on CustomResourceDefinition; by chart, controller; for controller: number of the schema, which
 * each change of the schema increases. A controller keeps a schema with a higher number than its own */
#define CD_ANNOTATION_SCHEMA "resource.nvidia.com/schema"

/* ---- finalizers, taints ---- */

/* finalizer on ComputeDomain, ResourceClaimTemplate; by controller; for controller: the resources of the
 * ComputeDomain are released before the object is deleted */
#define CD_FINALIZER "resource.nvidia.com/computeDomain"
/* taint on Node; by administrator; for controller: the machine is off, so that nothing on it still runs or
 * holds a channel */
#define NODE_TAINT_OUT_OF_SERVICE "node.kubernetes.io/out-of-service"
/* taint on device (GPU); by GPU plugin; for scheduler: the value is the XID. Effect NoSchedule, or None for
 * an error of a program */
#define GPU_TAINT_XID "gpu.nvidia.com/xid"
/* taint on device (GPU); by GPU plugin; for scheduler: the GPU has fallen off the bus. Effect NoSchedule */
#define GPU_TAINT_LOST "gpu.nvidia.com/gpu-lost"
/* taint on device (GPU); by GPU plugin; for people: errors of the GPU are not monitored. Effect None */
#define GPU_TAINT_UNMONITORED "gpu.nvidia.com/unmonitored"

/* ---- drivers, devices ---- */

/* driver on ResourceSlice, ResourceClaim; by plugin; for scheduler, kubelet: the DRA driver of ComputeDomains
 */
#define CD_DRIVER "compute-domain.nvidia.com"
/* driver on ResourceSlice, ResourceClaim; by GPU plugin; for scheduler, kubelet: the DRA driver of GPUs */
#define GPU_DRIVER "gpu.nvidia.com"
#define CD_CLASS_DAEMON "compute-domain-daemon.nvidia.com"
#define CD_CLASS_CHANNEL "compute-domain-default-channel.nvidia.com"
#define CD_CLASS_SHARED "compute-domain-shared-channel.nvidia.com"
/* request on ResourceClaim; by claim template; for plugin: the request for a channel device */
#define CD_REQUEST_CHANNEL "channel"
/* request on ResourceClaim (daemon); by claim template; for plugin: the request for the daemon device */
#define CD_REQUEST_DAEMON "daemon"
/* device on ResourceSlice; by plugin; for scheduler, plugin: a number follows. channel-0, and with
 * imex.isolation=channel up to channel-15; the number is not a channel ID */
#define CD_DEVICE_CHANNEL_PREFIX "channel-"
/* device on ResourceSlice (shared); by controller; for scheduler, plugin: the device of shared claims, one
 * for the cluster */
#define CD_DEVICE_SHARED "channel-shared"
/* The pool and the ResourceSlice of this device. No Node has a name with a slash. */
#define CD_POOL_SHARED "shared/channel"
#define CD_SLICE_SHARED "compute-domain.nvidia.com-shared"
/* device on ResourceSlice; by plugin; for scheduler, plugin: the device of the daemon claim, one for each
 * node
 */
#define CD_DEVICE_DAEMON "daemon-0"
/* device attribute on device; by plugin, controller; for scheduler, device classes: channel, daemon or
 * shared-channel */
#define CD_ATTRIBUTE_TYPE "type"
/* device attribute on device; by plugin; for device classes: 0 */
#define CD_ATTRIBUTE_ID "id"
/* device attribute on device; by plugin; for scheduler, controller: clique ID of the partition of the node.
 * Absent without a partition, and with imex.mode=hostManaged and imex.isolation=domain */
#define CD_ATTRIBUTE_CLIQUE "cliqueID"
/* device attribute on device; by plugin; for scheduler: name of the rack, with rackDomains.enabled */
#define CD_ATTRIBUTE_RACK "rack"
/* CDI kind on CDI file; by plugin; for container runtime: the devices of claims of ComputeDomains */
#define CD_CDI_KIND_CLAIM "k8s.compute-domain.nvidia.com/claim"
/* CDI kind on CDI file; by GPU plugin; for container runtime: the devices of claims of GPUs */
#define GPU_CDI_KIND_CLAIM "k8s.gpu.nvidia.com/claim"
/* The domainID in the configuration of a daemon claim. No ComputeDomain has this UID, because a daemon can
 * serve any ComputeDomain. The plugin of the Go driver knows this kind of configuration, so it can unprepare
 * the claim. */
#define CD_DAEMON_DOMAIN "818fb0f3-f5f0-4334-937e-f52c07a0c01e"

/* ---- field managers ---- */

/* field manager on DaemonSet, CustomResourceDefinition and the other objects that it writes; by controller;
 * for API server: server-side apply, and merge patches */
#define CD_FIELD_MANAGER "compute-domain-controller"
