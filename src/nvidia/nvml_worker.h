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
 * The role "events" is asked once, and tells of events then until it is ended: its session stays open.
 */
#pragma once

#define NVML_WORKER "nvml-worker"
#define NVML_WORKER_QUERY "query"
#define NVML_WORKER_EVENTS "events"

int nvml_worker_main(int argc, char **argv);
