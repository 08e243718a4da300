/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_claims: prepares claims on a node with two GPUs and a MIG device (world/node.h): "one", with the UID
 * ONE, and "two". */
#pragma once

#include "gpu_plugin/gpu_driver.h"
#include "world/node.h"

struct gpu_claims {
        char *sys, *proc, *proc_devices;
        struct gpu *gpu;
        struct gates gates;
        struct gpu_devices devices;
        const char *results, *config; /* results and configuration of the claim, as JSON */
        bool nodes;                   /* this machine allows device nodes */
        bool holds, wanted;
        bool ipc_sockets; /* for the next process */
        unsigned looks;   /* number of checks whether the known GPUs are current */
        unsigned verify_wanted; /* the GPUs whose MIG mode was wanted: a bit for each of gpus[] */
        bool unverified;
};
extern struct gpu_claims w;
extern struct gpu_device gpus[3];

#define RESULT(request, device)                                                                              \
        "{\"request\":\"" request "\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"" device    \
        "\"}"

int gpu_claims_setup(void **state);
int gpu_claims_teardown(void **state);
#define T(name) cmocka_unit_test_setup_teardown(name, gpu_claims_setup, gpu_claims_teardown)
/* Skips the test if this machine does not allow device nodes. A test that needs device nodes calls it
 * first. */
void needs_nodes(void);

/* Starts the plugin's process; the previous one has ended (claims_free). */
void start(void);

void refused(const char *name, const char *why);

/* Returns the path of the claim's CDI file. */
char *file_of(const char *uid);
bool is_there(const char *uid);
char *read_file(const char *path);
char *read_checkpoint(void);
void lose_checkpoint(void);
