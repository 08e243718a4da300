/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_worker: runs as a separate process that calls NVML, because NVML's library may hang or crash.
 * nvml_session starts our own program with "nvml-worker <role> <path of libnvidia-ml.so.1>". main() calls
 * nvml_worker_main() with the arguments behind the first, and exits with its result.
 *
 * The role "query" answers the questions from descriptor 3 (nvml_line.h), one after the other. Each question
 * has its own session, so the process closes the driver between two questions. If the library cannot be
 * loaded or started, the process reports this and ends, so that the next process starts clean. It also ends
 * when descriptor 3 is closed.
 *
 * With MASK_NVIDIA_DRIVER_PARAMS=true in the environment (chart value maskNvidiaDriverParams, a name of the
 * Go driver's chart) the process calls NVML in its own mount namespace, in which the driver's parameters
 * contain ModifyDeviceFiles: 0 (params_mask.h). Otherwise libnvidia-ml creates the device nodes of all GPUs
 * in the plugin's container, as it does in any container that may create device nodes. If a "node" is itself
 * a container with some of a machine's GPUs (nvkind), each node would then offer all of the machine's GPUs.
 *
 * The role "events" gets one question, and then reports events until it is stopped. Its session stays
 * open. */
#pragma once

#define NVML_WORKER "nvml-worker"
#define NVML_WORKER_QUERY "query"
#define NVML_WORKER_EVENTS "events"
/* environment MASK_NVIDIA_DRIVER_PARAMS of compute-domain-kubelet-plugin, gpu-kubelet-plugin: with the
 * value true, the driver's parameters are hidden from NVML, so that it creates no device nodes */
#define NVML_WORKER_MASK "MASK_NVIDIA_DRIVER_PARAMS"

int nvml_worker_main(int argc, char **argv);
