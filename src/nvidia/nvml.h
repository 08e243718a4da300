/* SPDX-License-Identifier: Apache-2.0 */
/* nvml: the driver's facts, asked in a child process.
 *
 * The library lives under the driver root, may be large, hang or crash; so the program runs itself as a child
 * with the arguments "nvml <path of libnvidia-ml.so.1>", whose main is nvml_child_main(): it prints one line
 * of JSON. Declarations of the NVML ABI are ours, from the public documentation of nvml.h. */
#ifndef NVIDIA_NVML_H
#define NVIDIA_NVML_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/child.h"
#include "base/err.h"
#include "base/mem.h"

struct nvml_gpu {
        const char *name, *uuid;
        int64_t fabric_call;   /* nvmlReturn_t of the fabric query; 3 is NOT_SUPPORTED */
        int64_t fabric_state;  /* 0 not supported, 1 not started, 2 in progress, 3 completed */
        int64_t fabric_status; /* nvmlReturn_t of the registration when completed */
        int64_t clique_id;
        const char *cluster_uuid; /* canonical lower case text */
};

struct nvml_facts {
        const char *driver_version;
        struct nvml_gpu *gpus;
        size_t n_gpus;
};

/* The child's main: argv[0] is the library's path. Returns the exit status; prints facts or {"error": "..."}
 * to stdout. */
int nvml_child_main(int argc, char **argv);

/* Decodes what the child printed. */
int nvml_facts_decode(struct str text, struct arena *a, struct nvml_facts *ret, struct err *e);

/* Runs the child (our own binary, /proc/self/exe) on a library, with a time-out (ms). The result arrives
 * once; facts live in the arena that the callback may keep (it owns it) and are NULL on error. */
typedef void(nvml_done_fn)(void *u, const struct nvml_facts *facts, struct arena *a, const struct err *e);
struct nvml_probe;
struct nvml_probe *nvml_probe_start(uv_loop_t *loop, const char *library, unsigned timeout_ms,
                                    nvml_done_fn *fn, void *u);
void nvml_probe_cancel(struct nvml_probe *p);

/* Compares dotted versions numerically: <0, 0, >0. */
int nvml_version_cmp(const char *a, const char *b);

#endif
