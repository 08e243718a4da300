/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_worker: the process in which NVML is called, because its library may hang or crash. It is our own
 * program, started by nvml_channel with "nvml-worker <role> <path of libnvidia-ml.so.1>": its main calls this
 * with the arguments behind the first, and ends with what it returns.
 *
 * The role "query" answers the questions that come in descriptor 3 (nvml_line.h), one after the other, each
 * in a session of its own: between two questions nothing of the driver is open. A library that cannot be
 * loaded or started is told, and the process ends: the next one begins with nothing left over. It ends, too,
 * when nobody asks any more.
 *
 * With MASK_NVIDIA_DRIVER_PARAMS=true in the environment (chart value maskNvidiaDriverParams, a name of the
 * Go driver's chart) NVML is called in a mount namespace of the process in which the driver's parameters say
 * ModifyDeviceFiles: 0 (params_mask.h). Otherwise libnvidia-ml makes the device nodes of all GPUs in the
 * plugin's container, as in any container that may: where a "node" is itself a container with some of a
 * machine's GPUs (nvkind), each node would offer all of them.
 *
 * The role "events" is asked once, and tells of events then until it is ended: its session stays open.
 */
#pragma once

#define NVML_WORKER "nvml-worker"
#define NVML_WORKER_QUERY "query"
#define NVML_WORKER_EVENTS "events"
/* environment MASK_NVIDIA_DRIVER_PARAMS of compute-domain-kubelet-plugin, gpu-kubelet-plugin: with the
 * value true, the driver's parameters are hidden from NVML, so that it creates no device nodes */
#define NVML_WORKER_MASK "MASK_NVIDIA_DRIVER_PARAMS"

int nvml_worker_main(int argc, char **argv);
