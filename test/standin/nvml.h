/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the NVML stand-in. */
#pragma once

#include <stdbool.h>

#include "conf.h"

#define EXPORT __attribute__((visibility("default")))

enum {
        NVML_SUCCESS = 0,
        NVML_ERROR_UNINITIALIZED = 1,
        NVML_ERROR_INVALID_ARGUMENT = 2,
        NVML_ERROR_NOT_SUPPORTED = 3,
        NVML_ERROR_NO_PERMISSION = 4,
        NVML_ERROR_NOT_FOUND = 6,
        NVML_ERROR_INSUFFICIENT_SIZE = 7,
        NVML_ERROR_GPU_IS_LOST = 15,
        NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
};
enum { MAX_GPUS = 64 };

typedef int nvmlReturn_t;

struct device {
        unsigned index;
        bool lost; /* it has reported XID 79 in this session */
};
typedef struct device *nvmlDevice_t;

#define NVML_VERSIONED(type, number) ((unsigned)(sizeof(type) | ((number) << 24U)))

/* The key of the GPU ("GPU1_CLIQUE_ID") takes precedence over that of the node ("CLIQUE_ID"). */
const char *gpu_text(unsigned gpu, const char *key, const char *otherwise);
long gpu_number(unsigned gpu, const char *key, long otherwise);
/* The device node of this name and number exists. Outside of containers all of them do. */
bool in_sight(const char *node, unsigned number);
nvmlReturn_t put_text(const char *text, char *out, unsigned length);

/* The folder of the library. */
const char *nvml_folder(void);
nvmlDevice_t nvml_device(unsigned gpu);
void nvml_crash(void);
nvmlReturn_t injected(unsigned gpu, const char *call);
/* Checks that every call on a device makes first. */
nvmlReturn_t check_call(nvmlDevice_t device, const void *out, const char *call);
#define check(device, out) check_call((device), (out), __func__)

/* nvml_mig.c: MIG devices have their own handles. */
bool is_mig(nvmlDevice_t device);
/* The GPU of a MIG device; a GPU itself. */
nvmlDevice_t gpu_of(nvmlDevice_t device);
nvmlReturn_t mig_uuid(nvmlDevice_t device, char *uuid, unsigned length);
